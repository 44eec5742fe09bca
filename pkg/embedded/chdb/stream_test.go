package chdb_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
)

func TestLargeResultsPassThroughInBoundedMemory(t *testing.T) {
	engine := chdbtest.Start(t, chdb.Config{Name: "stream", Settings: map[string]string{"max_threads": "2"}})
	before := memory(t, engine.Pid(), "VmHWM")
	const rows = 256 << 20
	resp, err := plain.Post(engine.URL(), "", strings.NewReader("SELECT number FROM numbers(268435456) FORMAT RowBinary"))
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.EqualValues(t, 8*rows, n)

	// The same through clickhouse-go, whose blocks are re-framed on the way.
	conn := chdbtest.Open(t, engine)
	result, err := conn.Query(clickhouse.Context(t.Context(), clickhouse.WithBlockBufferSize(1)), "SELECT number, 'a string of some length' FROM numbers(4000000)")
	require.NoError(t, err)
	count := 0
	for result.Next() {
		count++
	}
	require.NoError(t, result.Err())
	require.NoError(t, result.Close())
	require.Equal(t, 4_000_000, count)

	grown := memory(t, engine.Pid(), "VmHWM") - before
	require.Less(t, grown, int64(400<<20), "2 GiB went through")
	t.Logf("2 GiB of result: the engine's process grew by %d MiB", grown>>20)
}

func TestResultsHeldBackGoToDisk(t *testing.T) {
	engine := shared(t)
	before := memory(t, engine.Pid(), "VmRSS")
	a := post(t, engine, "SELECT number FROM numbers(25000000) FORMAT RowBinary", "wait_end_of_query", "1")
	require.Len(t, ok(t, a), 200_000_000)
	require.Contains(t, a.header.Get("X-ClickHouse-Summary"), `"result_rows":"25000000"`)
	require.Less(t, memory(t, engine.Pid(), "VmRSS")-before, int64(150<<20))
}

// TestQueriesRunSideBySide: four queries that each sleep take the time of one.
func TestQueriesRunSideBySide(t *testing.T) {
	engine := shared(t)
	start := time.Now()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			// A request of its own, not by the helper, which must not fail off the test's goroutine.
			resp, err := plain.Post(engine.URL(), "", strings.NewReader("SELECT sum(sleepEachRow(0.05)) FROM numbers(20) SETTINGS max_block_size = 1, max_threads = 1"))
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("query failed: %v", err)
			}
		})
	}
	all.Wait()
	took := time.Since(start)
	require.GreaterOrEqual(t, took, time.Second)
	require.Less(t, took, 2500*time.Millisecond, "one after another they take 4 s")
}
