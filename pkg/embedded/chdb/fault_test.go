package chdb_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/embedded/supervise"
)

func TestACrashedEngineComesBack(t *testing.T) {
	changes := make(chan supervise.Change, 100)
	engine := chdbtest.Start(t, chdb.Config{Name: "crashing", OnChange: func(c supervise.Change) { changes <- c }})
	ok(t, post(t, engine, "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 10"))
	ok(t, post(t, engine, "1\n2\n", "query", "INSERT INTO t FORMAT CSV", "insert_deduplication_token", "a"))
	addr, pid := engine.Addr(), engine.Pid()
	engine.Kill()
	for _, want := range []supervise.State{supervise.Starting, supervise.Ready, supervise.Waiting, supervise.Starting, supervise.Ready} {
		select {
		case c := <-changes:
			require.Equal(t, want, c.State)
		case <-time.After(20 * time.Second):
			t.Fatalf("waiting for %s", want)
		}
	}
	require.Equal(t, addr, engine.Addr(), "on the same port")
	require.NotEqual(t, pid, engine.Pid())
	require.Equal(t, 1, engine.Restarts())
	ok(t, post(t, engine, "1\n2\n", "query", "INSERT INTO t FORMAT CSV", "insert_deduplication_token", "a"))
	require.Equal(t, "2\n", ok(t, post(t, engine, "SELECT count() FROM t")), "the rows and the token are still there")
	require.Contains(t, ok(t, post(t, engine, "SELECT query_id FROM system.processes", "query_id", "mine")), "mine")
}

func TestASecondStartOnTheSameData(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
		engine, err := chdb.Start(t.Context(), chdb.Config{Name: "again", DataDir: dir, LibPath: chdbtest.Library(t), Logger: discard()})
		require.NoError(t, err)
		ok(t, post(t, engine, "CREATE TABLE IF NOT EXISTS t (n UInt64) ENGINE = MergeTree ORDER BY n"))
		ok(t, post(t, engine, "INSERT INTO t VALUES ("+strconv.Itoa(i)+")"))
		require.Equal(t, strconv.Itoa(i+1)+"\n", ok(t, post(t, engine, "SELECT count() FROM t")))
		if i == 0 {
			_, err := chdb.Start(t.Context(), chdb.Config{Name: "second", DataDir: dir, LibPath: chdbtest.Library(t), Logger: discard()})
			require.ErrorContains(t, err, "in use", "two engines on one folder would ruin it")
		}
		require.NoError(t, engine.Stop(t.Context()))
		require.Equal(t, supervise.Stopped, engine.State())
		require.Zero(t, engine.Pid())
	}
}

// TestStopEndsRunningQueries: a stop takes no longer than the grace and a little, and the data is whole.
func TestStopEndsRunningQueries(t *testing.T) {
	dir := t.TempDir()
	cfg := chdb.Config{Name: "stopping", DataDir: dir, LibPath: chdbtest.Library(t), StopGrace: 300 * time.Millisecond, Logger: discard()}
	engine, err := chdb.Start(t.Context(), cfg)
	require.NoError(t, err)
	ok(t, post(t, engine, "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n"))
	done := later(t, engine, forever, "query_id", "running")
	conn := chdbtest.Open(t, engine)
	require.Eventually(t, func() bool { return runs(t, conn, "running") }, patience, tick)
	start := time.Now()
	require.NoError(t, engine.Stop(t.Context()))
	require.Less(t, time.Since(start), 3*time.Second)
	told := <-done
	require.Equal(t, "394", code(told), "its client is told: %s", told.body)

	engine, err = chdb.Start(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, "0\n", ok(t, post(t, engine, "SELECT count() FROM t")))
	stopped, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, engine.Stop(stopped))
}

// parentMark makes the test binary play a parent that is killed under its engine.
const parentMark = "POINTSMAN_TEST_PARENT"

func runParent() {
	engine, err := chdb.Start(context.Background(), chdb.Config{Name: "orphan", DataDir: os.Getenv(parentMark), Logger: discard()})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(engine.Pid())
	time.Sleep(time.Minute)
}

func TestAKilledParentLeavesNoOrphan(t *testing.T) {
	lib := chdbtest.Library(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentMark+"="+t.TempDir(), "CHDB_LIB_PATH="+lib)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err, line)
	require.NoError(t, syscall.Kill(child, 0), "it runs")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return !alive(child) }, patience, tick)
}

// alive says that the process exists and is not a zombie that nobody waits for.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}
