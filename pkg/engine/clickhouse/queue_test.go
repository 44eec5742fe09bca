package clickhouse_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/clickhouse"
)

// TestAQueueIsAWorkload: the settings of a queue put a query into a workload of the server's, whose bound holds for it and for nobody
// else. One that waits there is in no list of the server's.
func TestAQueueIsAWorkload(t *testing.T) {
	server := chdbtest.Start(t, chdb.Config{Name: "workloads"})
	e := open(t, clickhouse.Config{Name: "c", Addrs: []string{server.Addr()}})
	t.Cleanup(func() { _ = e.Close() })
	read := func(ctx context.Context, q engine.Query) (out [][]any, err error) {
		rows, err := e.Submit(ctx, q)
		if err != nil {
			return nil, err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				return nil, err
			}
			out = append(out, values)
		}
		return out, rows.Err()
	}
	for _, sql := range []string{"CREATE RESOURCE query (QUERY)", "CREATE WORKLOAD all", "CREATE WORKLOAD etl IN all SETTINGS max_concurrent_queries = 1"} {
		_, err := read(t.Context(), engine.Query{ID: sql, SQL: sql})
		require.NoError(t, err)
	}
	start := func(ctx context.Context, id, sql string) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := read(ctx, engine.Query{ID: id, SQL: sql, ReadOnly: true, Settings: map[string]string{"workload": "etl"}})
			ended <- err
		}()
		return ended
	}
	shows := func(column, node string, want uint64) {
		t.Helper()
		require.Eventually(t, func() bool {
			got, err := read(t.Context(), engine.Query{ID: "looks", SQL: "SELECT toUInt64(" + column + ") FROM system.scheduler WHERE path = '/all/etl/" + node + "'"})
			return err == nil && len(got) == 1 && got[0][0] == want
		}, 15*time.Second, 20*time.Millisecond, "%s is not %d", column, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := start(ctx, "first/1", "SELECT sum(sleepEachRow(0.1)) FROM numbers(300) SETTINGS max_block_size = 1")
	shows("inflight_requests", "semaphore", 1)
	second := start(t.Context(), "second/1", "SELECT count() FROM numbers(1000)")
	shows("queue_length", "semaphore/fifo", 1)
	found, err := e.Find(t.Context(), "second/1")
	require.NoError(t, err)
	require.Equal(t, engine.RunUnknown, found.State, "as docs/engines.md says")
	_, err = read(t.Context(), engine.Query{ID: "other/1", SQL: "SELECT 1", Settings: map[string]string{"workload": "no_such"}})
	require.NoError(t, err, "one without a place in the workload does not wait")
	require.Empty(t, second)
	cancel()
	require.Error(t, <-first)
	require.NoError(t, <-second)
	shows("inflight_requests", "semaphore", 0)
}
