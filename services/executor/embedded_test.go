package executor_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/services/executor"
)

// newRealBench is a bench whose clusters are ClickHouse engines in processes of their own.
func newRealBench(t *testing.T) (b *bench, small, large *chdb.Engine) {
	t.Helper()
	small = chdbtest.Start(t, chdb.Config{Name: interactive, Caps: map[string]string{"max_memory_usage": "60000000"}})
	large = chdbtest.Start(t, chdb.Config{Name: batch})
	b = newBench(t, 2)
	b.servers = nil
	b.config = func(c *executor.Config) {
		c.Engines = nil
		c.Attempts.LookUpTimeout = 10 * time.Second // a real engine may be slow, and is not gone for that
		for name, e := range map[string]*chdb.Engine{interactive: small, batch: large} {
			c.Engines = append(c.Engines, executor.EngineConfig{Name: name, Kind: "clickhouse", URL: e.URL(), User: "default", Slots: 8})
		}
		c.Engines[0].Limits.Settings = map[string]string{"max_threads": "2"}
	}
	return b, small, large
}

const (
	greedy = "SELECT count() FROM (SELECT number FROM numbers_mt(3000000) GROUP BY number)"
	slow   = "SELECT sum(sleepEachRow(0.1)) FROM numbers(300) SETTINGS max_block_size = 1"
)

func TestRealEngines(t *testing.T) {
	b, small, _ := newRealBench(t)
	b.start()

	t.Run("rows", func(t *testing.T) {
		b.decide(b.route("rows", "SELECT toInt64(9007199254740993) AS n, NULL::Nullable(String) AS s, toDate('2026-11-30') AS d"))
		o := b.outcome("rows")
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		require.Equal(t, `[["9007199254740993",null,"2026-11-30"]]`, string(o.Result.Inline))
		require.Equal(t, "n", o.Result.Columns[0].Name)
		require.NotNil(t, o.Stats.ReadRows)
	})
	t.Run("a query over its memory succeeds on the other pool", func(t *testing.T) {
		b.decide(b.route("greedy", greedy))
		o := b.outcome("greedy")
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		require.Equal(t, batch, o.Cluster)
		require.Equal(t, 2, o.Attempts)
		require.Equal(t, `[["3000000"]]`, string(o.Result.Inline))
		failed := b.change("greedy/1", "failed")
		require.Equal(t, "241", failed.Failure.Code)
		require.Equal(t, string(failure.MemoryLimit), failed.Failure.Class)
	})
	t.Run("a wrong column fails at once", func(t *testing.T) {
		b.decide(b.route("wrong", "SELECT no_such_column FROM numbers(1)"))
		o := b.outcome("wrong")
		require.Equal(t, event.Failed, o.Status)
		require.Equal(t, string(failure.Semantic), o.Failure.Class)
		require.Equal(t, "47", o.Failure.Code)
		require.Equal(t, 1, o.Attempts)
	})
	t.Run("a cancel stops it at the engine", func(t *testing.T) {
		b.decide(b.route("cancelled", slow))
		b.change("cancelled/1", "running")
		b.decide(cancelOf("cancelled"))
		require.Equal(t, event.Cancelled, b.outcome("cancelled").Status)
		conn := chdbtest.Open(t, small)
		var running uint64
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query_id = 'cancelled/1'").Scan(&running))
		require.Zero(t, running)
	})
	t.Run("the deadline stops it at the engine", func(t *testing.T) {
		b.decide(b.route("late", slow, func(d *event.RouteDecision) { d.Deadline = time.Now().Add(1200 * time.Millisecond) }))
		o := b.outcome("late")
		require.Equal(t, event.Expired, o.Status)
		require.Equal(t, string(failure.Timeout), o.Failure.Class)
	})
	t.Run("a large result", func(t *testing.T) {
		b.decide(b.route("large", "SELECT number, repeat('x', 100) FROM numbers(50000)"))
		o := b.outcome("large")
		require.Equal(t, event.Succeeded, o.Status)
		require.EqualValues(t, 50_000, o.Result.Rows)
		require.Equal(t, "ndjson", o.Result.Format)
		require.NotNil(t, o.Stats.ReadRows)
		require.EqualValues(t, 50_000, *o.Stats.ReadRows)
	})
	t.Run("the engine dies under a query", func(t *testing.T) {
		b.decide(b.route("killed", slow))
		b.change("killed/1", "running")
		small.Kill()
		lost := b.change("killed/1", "lost")
		require.Equal(t, event.RemedyReroute, first(lost.Remedy, event.RemedyRetry, event.RemedyReroute), "it is gone, whichever way it was found out")
		b.decide(b.route("killed", slow, func(d *event.RouteDecision) {
			d.DecisionID, d.Attempt, d.Cluster = "killed/2", 2, batch
		}), cancelOf("killed"))
		require.Equal(t, event.Cancelled, b.outcome("killed").Status)
	})
	b.committed()
}

// first accepts one of several remedies and gives the last of them.
func first(have event.Remedy, ok ...event.Remedy) event.Remedy {
	if slices.Contains(ok, have) {
		return ok[len(ok)-1]
	}
	return have
}

// TestRealEngineSurvivesItsExecutor kills an executor whose query runs on a real engine.
func TestRealEngineSurvivesItsExecutor(t *testing.T) {
	b, _, _ := newRealBench(t)
	a := b.start()
	b.decide(b.route("t1", "SELECT count(), sum(sleepEachRow(0.05)) FROM numbers(40) SETTINGS max_block_size = 1"))
	b.change("t1/1", "running")
	a.crash()
	b.start()
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
	require.GreaterOrEqual(t, o.Attempts, 2)
	require.LessOrEqual(t, o.Attempts, 3, "the group may move the partition once more when it notices who is gone")
	var rows [][]json.RawMessage
	require.NoError(t, json.Unmarshal(o.Result.Inline, &rows))
	require.Equal(t, `"40"`, string(rows[0][0]))
	b.committed()
}

func TestEngineConfig(t *testing.T) {
	good := executor.EngineConfig{Name: "x", Kind: "clickhouse", Slots: 1, URL: "http://127.0.0.1:8123"}
	require.NoError(t, good.Validate())
	for name, edit := range map[string]func(*executor.EngineConfig){
		"no name":        func(c *executor.EngineConfig) { c.Name = "" },
		"unknown kind":   func(c *executor.EngineConfig) { c.Kind = "oracle" },
		"no slots":       func(c *executor.EngineConfig) { c.Slots = 0 },
		"no scheme":      func(c *executor.EngineConfig) { c.URL = "127.0.0.1:8123" },
		"no port":        func(c *executor.EngineConfig) { c.URL = "http://127.0.0.1" },
		"other scheme":   func(c *executor.EngineConfig) { c.URL = "ftp://127.0.0.1:1" },
		"user in URL":    func(c *executor.EngineConfig) { c.URL = "http://u:p@127.0.0.1:8123" },
		"path":           func(c *executor.EngineConfig) { c.URL = "http://127.0.0.1:8123/x" },
		"several hosts":  func(c *executor.EngineConfig) { c.URL = "http://a:8123,b:8123" },
		"nothing at all": func(c *executor.EngineConfig) { c.URL = "" },
	} {
		c := good
		edit(&c)
		require.Error(t, c.Validate(), name)
	}
	for _, url := range []string{"https://h:8443", "clickhouse://h:9000", "clickhouses://h:9440", "http://a:8123/"} {
		c := good
		c.URL = url
		require.NoError(t, c.Validate(), url)
	}
	cfg := executor.Default()
	require.NoError(t, config.Validate(cfg))
	cfg.Engines = []executor.EngineConfig{good, good}
	require.ErrorContains(t, config.Validate(cfg), "engines[1].name")
	cfg = executor.Default()
	cfg.Attempts.GuardLeave = 0
	require.ErrorContains(t, config.Validate(cfg), "guardLeave")
}
