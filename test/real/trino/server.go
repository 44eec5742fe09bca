// Package trino starts a real Trino for a test: one node on a free loopback port, in a process of the test's own, with the
// tpch and memory catalogs and the resource groups of etc/.
//
// Tests that use it carry the build tag "real". A machine without a JDK 24 or newer skips them with a word, even where other
// real servers are required: no distribution brings one yet.
package trino

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
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

//go:embed etc
var etc embed.FS

// Server is a running Trino.
type Server struct {
	*process.Process

	Addr string
	t    testing.TB
}

// Start starts a server and waits until it has finished a query. properties are lines of config.properties: name=value.
func Start(t testing.TB, properties ...string) *Server {
	t.Helper()
	java := script(t, "java")
	home := script(t, "fetch")
	dir := t.TempDir()
	port := ports.Free(t)
	if err := fill(dir, port, properties); err != nil {
		t.Fatalf("making the server's folder: %v", err)
	}
	if err := os.Symlink(filepath.Join(home, "plugin"), filepath.Join(dir, "plugin")); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-cp", filepath.Join(home, "lib") + "/*"}, lines(t, "etc/jvm.config")...)
	for _, line := range lines(t, "etc/node.properties") {
		args = append(args, "-D"+line)
	}
	args = append(args, "-Dconfig=etc/config.properties", "-Dlog.levels-file=etc/log.properties", "io.trino.server.TrinoServer")
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), t: t}
	s.Process = process.As{}.Start(t, dir, java, args...)
	t.Cleanup(func() { s.End(syscall.SIGKILL) }) // its data is gone with the test, and it would take its time
	s.AwaitReady()
	return s
}

// URL is the coordinator's.
func (s *Server) URL() string { return "http://" + s.Addr }

// AwaitReady waits until a query has finished: a server that says it has started does not count as its own worker yet.
func (s *Server) AwaitReady() {
	s.t.Helper()
	s.Ready(func() error {
		time.Sleep(200 * time.Millisecond) // each try is a query
		return s.Run("ready", "SELECT count(*) FROM tpch.tiny.nation")
	})
}

// Restart ends the server, with all that runs there, and starts it again.
func (s *Server) Restart() {
	s.t.Helper()
	s.End(syscall.SIGTERM)
	s.Again()
	s.AwaitReady()
}

// Run runs a statement to its end, in the least code that speaks the protocol, so that no test depends on what it tests.
func (s *Server) Run(user, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	method, uri, body := http.MethodPost, s.URL()+"/v1/statement", sql
	for uri != "" {
		text, err := s.Do(ctx, method, uri, user, body)
		if err != nil {
			return err
		}
		if _, failed, found := strings.Cut(text, `"error":{`); found {
			return fmt.Errorf("running %q: %s", sql, failed[:min(len(failed), 300)])
		}
		_, rest, _ := strings.Cut(text, `"nextUri":"`)
		uri, _, _ = strings.Cut(rest, `"`)
		method, body = http.MethodGet, ""
		if uri == "" && !strings.Contains(text, `"state":"FINISHED"`) {
			return fmt.Errorf("running %q: it ended without having finished", sql)
		}
	}
	return nil
}

// Do sends one request to the server. uri is a path or an address, headers are names and values by turns.
func (s *Server) Do(ctx context.Context, method, uri, user, body string, headers ...string) (string, error) {
	if strings.HasPrefix(uri, "/") {
		uri = s.URL() + uri
	}
	req, err := http.NewRequestWithContext(ctx, method, uri, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Trino-User", user)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s", method, req.URL.Path, resp.Status)
	}
	return string(text), err
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// script asks trino.sh, which lies beside this source, for a JDK or for the server's folder.
func script(t testing.TB, what string) string {
	t.Helper()
	out, missing := process.Ask(t, process.Beside(t, "trino.sh"), what)
	switch {
	case missing != "" && what == "java":
		t.Skipf("SKIP real trino: %s", missing) // also where real servers are required
	case missing != "":
		process.Skip(t, "trino", missing)
	}
	return out
}

func lines(t testing.TB, name string) []string {
	t.Helper()
	text, err := etc.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// fill writes the server's configuration.
func fill(dir string, port int, properties []string) error {
	if err := os.CopyFS(dir, etc); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		return err
	}
	text, err := fs.ReadFile(etc, "etc/config.properties")
	if err != nil {
		return err
	}
	set := strings.ReplaceAll(string(text), "@PORT@", strconv.Itoa(port))
	for _, p := range properties {
		name, _, _ := strings.Cut(p, "=")
		var kept []string
		for line := range strings.SplitSeq(set, "\n") {
			if !strings.HasPrefix(line, name+"=") { // a property may be there once only
				kept = append(kept, line)
			}
		}
		set = strings.TrimRight(strings.Join(kept, "\n"), "\n") + "\n" + p + "\n"
	}
	return os.WriteFile(filepath.Join(dir, "etc/config.properties"), []byte(set), 0o600)
}
