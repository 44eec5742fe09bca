//go:build real

package executor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/services/executor"
	"github.com/pointsman/pointsman/test/real/spark"
)

const (
	sparkSlow = "SELECT count(*) FROM range(0, 100000000000000, 1, 4) WHERE id % 7919 = 1"
	// sparkLong runs for some seconds.
	sparkLong = "SELECT count(*) AS n FROM range(0, 3000000000, 1, 2) WHERE id % 7919 = 1"
	sparkSum  = "378836" // of sparkLong
)

// TestSpark runs Tasks on a real Spark, which is two pools for the router.
func TestSpark(t *testing.T) {
	server := spark.Start(t, "spark.scheduler.mode=FAIR")
	gate := enginetest.NewGate(t, server.Addr)
	way := gate.Addr // of the executor that is killed; another one has its own
	b := newBench(t, 2)
	b.servers = nil
	b.config = func(c *executor.Config) {
		c.Engines = nil
		c.Attempts.LookUpTimeout = 10 * time.Second
		for _, name := range []string{interactive, batch} {
			c.Engines = append(c.Engines, executor.EngineConfig{
				Name: name, Kind: "spark", URL: "sc://" + way, Slots: 4,
				Queues: map[string]executor.QueueConfig{"etl": {Settings: map[string]string{"spark.scheduler.pool": "etl"}}},
			})
		}
	}
	other, err := engines.Open(engines.Config{Name: "other", Kind: "spark", URL: "sc://" + server.Addr})
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Close() })
	rows, err := other.Submit(t.Context(), engine.Query{ID: "lake/1", SQL: "CREATE DATABASE lake"})
	require.NoError(t, err)
	require.NoError(t, rows.Close())
	state := func(id string) engine.RunState {
		run, err := other.Find(t.Context(), id)
		require.NoError(t, err)
		return run.State
	}
	idle := func() {
		t.Helper()
		require.Eventually(t, func() bool { n, err := server.RunningJobs(); return err == nil && n == 0 }, patience, 50*time.Millisecond)
	}
	inLake := func(d *event.RouteDecision) { d.Task.Schema = "lake" }
	a := b.start()

	t.Run("a write and rows, in the Task's schema", func(t *testing.T) {
		b.decide(b.route("table", "CREATE TABLE written (n bigint) USING parquet", inLake, func(d *event.RouteDecision) { d.ReadOnly = false }))
		o := b.outcome("table")
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		b.decide(b.route("rows", "SELECT 9007199254740993 AS n, CAST(NULL AS string) AS s, DATE'2026-11-30' AS d, CAST(1.5 AS decimal(10,2)) AS p, "+
			"TIMESTAMP'2026-11-30 09:15:00+05:30' AS t, count(*) AS c FROM written", inLake))
		o = b.outcome("rows")
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		require.Equal(t, `[["9007199254740993",null,"2026-11-30","1.50","2026-11-30T03:45:00Z","0"]]`, string(o.Result.Inline))
	})
	t.Run("a wrong column fails at once", func(t *testing.T) {
		b.decide(b.route("wrong", "SELECT no_such_column FROM written", inLake))
		o := b.outcome("wrong")
		require.Equal(t, event.Failed, o.Status)
		require.Equal(t, string(failure.Semantic), o.Failure.Class)
		require.Equal(t, 1, o.Attempts)
	})
	t.Run("the queue of a decision is a pool of the scheduler, and a cancel stops it there", func(t *testing.T) {
		b.decide(b.route("cancelled", sparkSlow, func(d *event.RouteDecision) { d.Queue = "etl" }), b.route("beside", sparkSlow))
		b.change("cancelled/1", "running")
		b.change("beside/1", "running")
		require.Eventually(t, func() bool {
			pools, err := server.RunningPools()
			return err == nil && pools["etl"] == 1 && pools["default"] == 1
		}, patience, 50*time.Millisecond)
		b.decide(cancelOf("cancelled"), cancelOf("beside"))
		for _, id := range []string{"cancelled", "beside"} {
			require.Equal(t, event.Cancelled, b.outcome(id).Status)
			require.NotEqual(t, engine.RunActive, state(id+"/1"))
		}
		idle()
	})
	t.Run("the deadline stops it at the engine", func(t *testing.T) {
		b.decide(b.route("late", sparkSlow, func(d *event.RouteDecision) { d.Deadline = time.Now().Add(2 * time.Second) }))
		require.Equal(t, event.Expired, b.outcome("late").Status)
		require.NotEqual(t, engine.RunActive, state("late/1"))
		idle()
	})
	t.Run("a kill -9 while a read and a write run", func(t *testing.T) {
		b.decide(
			b.route("read", sparkLong),
			b.route("write", "INSERT INTO written "+sparkLong, inLake, func(d *event.RouteDecision) { d.ReadOnly, d.Cluster = false, batch }),
		)
		b.change("read/1", "running")
		b.change("write/1", "running")
		a.crash()
		gate.Set(enginetest.Fault{Deaf: true})
		gate.CutAll() // nothing that it still does reaches the server
		way = server.Addr
		b.start()
		o := b.outcome("read")
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		require.GreaterOrEqual(t, o.Attempts, 2, "its first run is stopped, or its rows are nobody's")
		require.Equal(t, `[["`+sparkSum+`"]]`, string(o.Result.Inline))
		o = b.outcome("write")
		require.Equal(t, event.Succeeded, o.Status, "the server was asked for its end: %+v", o.Failure)
		require.Equal(t, 1, o.Attempts)
		b.decide(b.route("count", "SELECT count(*), max(n) FROM written", inLake))
		require.Equal(t, `[["1","`+sparkSum+`"]]`, string(b.outcome("count").Result.Inline), "it ran once, to its end")
	})
	b.committed()
}
