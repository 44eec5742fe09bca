// Package spark starts a real Spark with its Spark Connect server for a test: one process on free loopback ports, with a catalog in
// memory.
//
// Tests that use it carry the build tag "real". A machine without Java 17, or that has not fetched Spark yet and has no Python with venv
// and pip, skips them with a word.
package spark

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pointsman/pointsman/test/ports"
	"github.com/pointsman/pointsman/test/real/process"
)

// Server is a running Spark.
type Server struct {
	*process.Process

	Addr string
	ui   string
	t    testing.TB
}

// Start starts a server and waits until it takes connections. settings are properties of Spark: name=value.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	java := script(t, "java")
	home := script(t, "fetch")
	dir := t.TempDir()
	port, ui := ports.Free(t), ports.Free(t)
	options, err := os.ReadFile(process.Beside(t, "jvm.options"))
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-cp", home + "/conf:" + home + "/jars/*"}, strings.Fields(string(options))...)
	args = append(args,
		"-Djava.io.tmpdir="+dir, "org.apache.spark.deploy.SparkSubmit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
		"--properties-file", process.Beside(t, "spark.conf"))
	for _, s := range append([]string{
		"spark.master=local[2]", "spark.connect.grpc.binding.port=" + strconv.Itoa(port), "spark.ui.port=" + strconv.Itoa(ui),
		"spark.sql.warehouse.dir=" + filepath.Join(dir, "warehouse"), "spark.local.dir=" + filepath.Join(dir, "local"),
	}, settings...) {
		args = append(args, "--conf", s)
	}
	args = append(args, "spark-internal")
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), ui: "http://127.0.0.1:" + strconv.Itoa(ui), t: t}
	s.Process = process.As{Env: []string{"SPARK_HOME=" + home, "SPARK_LOCAL_IP=127.0.0.1"}}.Start(t, dir, java, args...)
	t.Cleanup(func() { s.End(syscall.SIGKILL) }) // its data is gone with the test, and it would take its time
	s.AwaitReady()
	return s
}

// AwaitReady waits until the server takes connections.
func (s *Server) AwaitReady() {
	s.t.Helper()
	s.Ready(func() error {
		time.Sleep(100 * time.Millisecond)
		conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// Restart kills the server, with all that runs there, and starts it again.
func (s *Server) Restart() {
	s.t.Helper()
	s.End(syscall.SIGKILL)
	s.Again()
	s.AwaitReady()
}

// RunningJobs counts the jobs that run, by the server's user interface: it is another way to ask than the one under test.
func (s *Server) RunningJobs() (int, error) {
	total := 0
	err := each(s, "jobs?status=running", func(struct{}) { total++ })
	return total, err
}

// RunningPools counts the stages that run, by the scheduler's pool that they are in.
func (s *Server) RunningPools() (map[string]int, error) {
	pools := map[string]int{}
	err := each(s, "stages?status=active", func(stage struct {
		Pool string `json:"schedulingPool"`
	},
	) {
		pools[stage.Pool]++
	})
	return pools, err
}

// each lists something of all applications.
func each[T any](s *Server, what string, take func(T)) error {
	var apps []struct {
		ID string `json:"id"`
	}
	if err := s.get("/api/v1/applications", &apps); err != nil {
		return err
	}
	for _, a := range apps {
		var found []T
		if err := s.get("/api/v1/applications/"+a.ID+"/"+what, &found); err != nil {
			return err
		}
		for _, f := range found {
			take(f)
		}
	}
	return nil
}

func (s *Server) get(path string, into any) error {
	resp, err := client.Get(s.ui + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}

// script asks spark.sh, which lies beside this source, for a Java or for Spark's folder.
func script(t testing.TB, what string) string {
	t.Helper()
	out, missing := process.Ask(t, process.Beside(t, "spark.sh"), what)
	if missing != "" {
		process.Skip(t, "spark", missing)
	}
	return out
}
