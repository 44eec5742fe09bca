//go:build real

package executor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/services/executor"
	"github.com/pointsman/pointsman/test/real/trino"
)

const (
	trinoSlow   = "SELECT count(*) FROM tpch.sf1.lineitem a CROSS JOIN tpch.sf1.orders b"
	trinoGreedy = "SELECT count(*) FROM (SELECT DISTINCT rpad(CAST(n AS varchar), 100, 'x') FROM TABLE(sequence(1, 400000)) AS t(n))"
	// trinoLong runs for some seconds, and counts to 300 million.
	trinoLong = "SELECT count(*) FROM TABLE(sequence(1, 3000)) AS a(n) CROSS JOIN TABLE(sequence(1, 100000)) AS b(m)"
)

// TestTrino runs Tasks on a real Trino, which is two pools: one whose queries get little memory, and one whose queries get more.
func TestTrino(t *testing.T) {
	server := trino.Start(t)
	require.NoError(t, server.Run("pm", "CREATE TABLE memory.default.written (n bigint)"))
	b := newBench(t, 2)
	b.servers = nil
	b.config = func(c *executor.Config) {
		c.Engines = nil
		c.Attempts.LookUpTimeout = 10 * time.Second
		for _, name := range []string{interactive, batch} {
			c.Engines = append(c.Engines, executor.EngineConfig{
				Name: name, Kind: "trino", URL: server.URL(), User: "pm", Database: "memory.default", Slots: 4,
				Queues: map[string]executor.QueueConfig{"etl": {Settings: map[string]string{"client_tags": "narrow"}}},
			})
		}
		c.Engines[0].Limits.MaxMemory = 20_000_000
	}
	other, err := engines.Open(engines.Config{Name: "other", Kind: "trino", URL: server.URL(), User: "pm"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Close() })
	state := func(id string) engine.RunState {
		run, err := other.Find(t.Context(), id)
		require.NoError(t, err)
		return run.State
	}
	a := b.start()

	t.Run("rows, in the Task's catalog and schema", func(t *testing.T) {
		b.decide(b.route("rows", "SELECT bigint '9007199254740993' AS n, CAST(NULL AS varchar) AS s, date '2026-11-30' AS d, decimal '1.50' AS p, count(*) AS c FROM region",
			func(d *event.RouteDecision) { d.Task.Catalog, d.Task.Schema = "tpch", "tiny" }))
		o := b.outcome("rows")
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		require.Equal(t, `[["9007199254740993",null,"2026-11-30","1.50","5"]]`, string(o.Result.Inline))
		require.EqualValues(t, 5, *o.Stats.ReadRows)
	})
	t.Run("a query over its memory succeeds on the other pool", func(t *testing.T) {
		b.decide(b.route("greedy", trinoGreedy))
		o := b.outcome("greedy")
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		require.Equal(t, batch, o.Cluster)
		failed := b.change("greedy/1", "failed")
		require.Equal(t, string(failure.MemoryLimit), failed.Failure.Class)
		require.Equal(t, "EXCEEDED_LOCAL_MEMORY_LIMIT", failed.Failure.Name)
	})
	t.Run("a wrong column fails at once", func(t *testing.T) {
		b.decide(b.route("wrong", "SELECT no_such_column FROM tpch.tiny.region"))
		o := b.outcome("wrong")
		require.Equal(t, event.Failed, o.Status)
		require.Equal(t, string(failure.Semantic), o.Failure.Class)
		require.Equal(t, 1, o.Attempts)
	})
	t.Run("a cancel stops it at the engine", func(t *testing.T) {
		b.decide(b.route("cancelled", trinoSlow))
		b.change("cancelled/1", "running")
		b.decide(cancelOf("cancelled"))
		require.Equal(t, event.Cancelled, b.outcome("cancelled").Status)
		require.Equal(t, engine.RunCancelled, state("cancelled/1"))
	})
	t.Run("the queue of a decision is a resource group", func(t *testing.T) {
		narrow, err := engines.Open(engines.Config{Name: "narrow", Kind: "trino", URL: server.URL(), User: "pm", Group: "global.narrow"})
		require.NoError(t, err)
		t.Cleanup(func() { _ = narrow.Close() })
		holds := func(running, queued float64) {
			t.Helper()
			require.Eventually(t, func() bool {
				o, err := narrow.Observe(t.Context())
				return err == nil && o.Values[signal.Running].Or(-1) == running && o.Values[signal.Queued].Or(-1) == queued
			}, patience, 50*time.Millisecond)
		}
		inETL := func(d *event.RouteDecision) { d.Queue = "etl" }
		b.decide(b.route("etl1", trinoSlow, inETL))
		b.change("etl1/1", "running")
		holds(1, 0)
		b.decide(b.route("etl2", trinoSlow, inETL), b.route("beside", trinoSlow))
		b.change("beside/1", "running") // it is in another group
		b.change("etl2/1", "queued")
		holds(1, 1)
		b.decide(cancelOf("etl2"), cancelOf("etl1"), cancelOf("beside"))
		for _, id := range []string{"etl1", "etl2", "beside"} {
			require.Equal(t, event.Cancelled, b.outcome(id).Status)
		}
		holds(0, 0)
	})
	t.Run("the deadline stops it at the engine", func(t *testing.T) {
		b.decide(b.route("late", trinoSlow, func(d *event.RouteDecision) { d.Deadline = time.Now().Add(1500 * time.Millisecond) }))
		o := b.outcome("late")
		require.Equal(t, event.Expired, o.Status)
		require.NotEqual(t, engine.RunActive, state("late/1"))
	})
	t.Run("a kill -9 while a read and a write run", func(t *testing.T) {
		b.decide(
			b.route("read", trinoLong),
			b.route("write", "INSERT INTO written "+trinoLong, func(d *event.RouteDecision) { d.ReadOnly, d.Cluster = false, batch }),
		)
		b.change("read/1", "running")
		b.change("write/1", "running")
		a.crash()
		b.start()
		o := b.outcome("read")
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		require.GreaterOrEqual(t, o.Attempts, 2, "its first run is stopped, or its rows are nobody's")
		o = b.outcome("write")
		require.Equal(t, event.Succeeded, o.Status, "the history vouches for it: %+v", o.Failure)
		require.Equal(t, 1, o.Attempts)
		b.decide(b.route("count", "SELECT count(*) FROM written"))
		require.Equal(t, `[["1"]]`, string(b.outcome("count").Result.Inline), "it ran once")
	})
	b.committed()
}
