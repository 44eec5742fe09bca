//go:build real

package executor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/services/executor"
	"github.com/pointsman/pointsman/test/real/mariadb"
	"github.com/pointsman/pointsman/test/real/postgres"
)

// database is a server that is two pools, in its own dialect.
type database struct {
	kind   string
	config func(t *testing.T) executor.EngineConfig // makes a table "written", of one number, which is empty

	rows, want   string
	wrong, code  string
	slow         string // thirty seconds
	read, answer string // three seconds, and what comes of it
	write        string // three seconds, and one row more in "written"
	sneaky       string // looks like a read and writes
}

var databases = []database{
	{
		kind: "postgres",
		config: func(t *testing.T) executor.EngineConfig {
			s := postgres.Start(t)
			s.Exec("CREATE SCHEMA lake", "CREATE TABLE lake.written (n int)", "CREATE SEQUENCE lake.counter")
			return executor.EngineConfig{Kind: "postgres", URL: "postgres://" + s.Addr + "?sslmode=disable", User: postgres.User, Database: "postgres"}
		},
		rows:  "SELECT 9007199254740993 AS n, NULL::text AS s, date '2026-11-30' AS d, 1.50::numeric(10,2) AS p, timestamptz '2026-11-30 09:15:00+05:30' AS t, count(*) AS c FROM written",
		want:  `[["9007199254740993",null,"2026-11-30","1.50","2026-11-30T03:45:00Z","0"]]`,
		wrong: "SELECT no_such_column FROM written", code: "42703",
		slow: "SELECT pg_sleep(30)",
		read: "SELECT 7 FROM pg_sleep(3)", answer: `[[7]]`,
		write:  "INSERT INTO written SELECT 1 FROM pg_sleep(3)",
		sneaky: "SELECT nextval('counter')",
	},
	{
		kind: "mysql",
		config: func(t *testing.T) executor.EngineConfig {
			s := mariadb.Start(t)
			s.Exec("CREATE DATABASE lake", "CREATE TABLE lake.written (n int)",
				"CREATE FUNCTION lake.sneaky() RETURNS int BEGIN INSERT INTO lake.written VALUES (1); RETURN 1; END")
			return executor.EngineConfig{Kind: "mysql", URL: "mysql://" + s.Addr, User: mariadb.User}
		},
		rows:  "SELECT 9007199254740993 AS n, NULL AS s, DATE '2026-11-30' AS d, CAST(1.5 AS DECIMAL(10,2)) AS p, TIMESTAMP '2026-11-30 03:45:00' AS t, COUNT(*) AS c FROM written",
		want:  `[["9007199254740993",null,"2026-11-30","1.50","2026-11-30T03:45:00","0"]]`,
		wrong: "SELECT no_such_column FROM written", code: "1054",
		slow: "SELECT SLEEP(30)",
		read: "SELECT 7 + SLEEP(3)", answer: `[[7]]`,
		write:  "INSERT INTO written SELECT 1 + SLEEP(3)",
		sneaky: "SELECT sneaky()",
	},
}

// TestDatabases runs Tasks on a real PostgreSQL and a real MariaDB.
func TestDatabases(t *testing.T) {
	for _, d := range databases {
		t.Run(d.kind, func(t *testing.T) { d.run(t) })
	}
}

func (d database) run(t *testing.T) {
	cfg := d.config(t)
	b := newBench(t, 2)
	b.servers = nil
	b.config = func(c *executor.Config) {
		c.Engines = nil
		c.Attempts.LookUpTimeout = 10 * time.Second
		for _, name := range []string{interactive, batch} {
			e := cfg
			e.Name, e.Slots = name, 4
			c.Engines = append(c.Engines, e)
		}
		c.Engines[0].Limits.MaxExecution = 20 * time.Second
	}
	other, err := engines.Open(engines.Config{Name: "other", Kind: cfg.Kind, URL: cfg.URL, User: cfg.User, Database: cfg.Database})
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Close() })
	state := func(id string) engine.RunState {
		run, err := other.Find(t.Context(), id)
		require.NoError(t, err)
		return run.State
	}
	inLake := func(r *event.RouteDecision) { r.Task.Schema = "lake" }
	a := b.start()

	t.Run("rows, in the Task's schema", func(t *testing.T) {
		b.decide(b.route("rows", d.rows, inLake))
		o := b.outcome("rows")
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		require.Equal(t, d.want, string(o.Result.Inline))
		require.Nil(t, o.Stats.ReadRows, "it is not known, and no zero")
	})
	t.Run("a wrong column fails at once", func(t *testing.T) {
		b.decide(b.route("wrong", d.wrong, inLake))
		o := b.outcome("wrong")
		require.Equal(t, event.Failed, o.Status)
		require.Equal(t, string(failure.Semantic), o.Failure.Class)
		require.Equal(t, d.code, o.Failure.Code)
		require.Equal(t, 1, o.Attempts)
	})
	t.Run("a write that was taken for a read does nothing", func(t *testing.T) {
		b.decide(b.route("sneaky", d.sneaky, inLake))
		o := b.outcome("sneaky")
		require.Equal(t, event.Failed, o.Status)
		require.Equal(t, string(failure.Semantic), o.Failure.Class)
		require.Equal(t, 1, o.Attempts)
	})
	t.Run("a cancel stops it at the engine", func(t *testing.T) {
		b.decide(b.route("cancelled", d.slow))
		b.change("cancelled/1", "running")
		b.decide(cancelOf("cancelled"))
		require.Equal(t, event.Cancelled, b.outcome("cancelled").Status)
		require.Equal(t, engine.RunUnknown, state("cancelled/1"))
	})
	t.Run("the deadline stops it at the engine", func(t *testing.T) {
		b.decide(b.route("late", d.slow, func(r *event.RouteDecision) { r.Deadline = time.Now().Add(1500 * time.Millisecond) }))
		require.Equal(t, event.Expired, b.outcome("late").Status)
		require.Equal(t, engine.RunUnknown, state("late/1"))
	})
	t.Run("an operator kills it", func(t *testing.T) {
		b.decide(b.route("killed", d.slow))
		b.change("killed/1", "running")
		killed, err := other.Kill(t.Context(), "killed/1")
		require.NoError(t, err)
		require.True(t, killed)
		o := b.outcome("killed")
		require.Equal(t, event.Failed, o.Status)
		require.Equal(t, string(failure.KilledByOperator), o.Failure.Class)
		require.Equal(t, 1, o.Attempts)
	})
	t.Run("a kill -9 while a read and a write run", func(t *testing.T) {
		b.decide(
			b.route("read", d.read),
			b.route("write", d.write, inLake, func(r *event.RouteDecision) { r.ReadOnly, r.Cluster = false, batch }),
		)
		b.change("read/1", "running")
		b.change("write/1", "running")
		a.crash()
		b.start()
		o := b.outcome("read")
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		require.GreaterOrEqual(t, o.Attempts, 2, "its first run is stopped, or its rows are nobody's")
		require.Equal(t, d.answer, string(o.Result.Inline))
		o = b.outcome("write")
		require.Equal(t, event.Failed, o.Status, "nobody has seen its end")
		require.Equal(t, string(failure.SubmitUnknown), o.Failure.Class)
		require.Equal(t, 1, o.Attempts, "and it is not run again")
		b.decide(b.route("count", "SELECT COUNT(*) FROM written", inLake))
		require.Equal(t, `[["1"]]`, string(b.outcome("count").Result.Inline), "it ran once, to its end")
	})
	b.committed()
}

// TestAWriteThatGivesMoreThanIsKept: a write whose rows are cut off has been done nevertheless, as its Outcome says.
func TestAWriteThatGivesMoreThanIsKept(t *testing.T) {
	s := mariadb.Start(t)
	s.Exec("CREATE DATABASE lake", "CREATE TABLE lake.written (n int, s text) ENGINE=InnoDB")
	b := newBench(t, 1)
	b.servers = nil
	b.config = func(c *executor.Config) {
		c.Engines = []executor.EngineConfig{{Name: interactive, Kind: "mysql", URL: "mysql://" + s.Addr, User: mariadb.User, Database: "lake", Slots: 4}}
		c.Results.Inline, c.Results.Max = 10*config.KiB, 300*config.KiB
	}
	b.start()
	b.decide(b.route("t1", "INSERT INTO written SELECT seq, REPEAT('x', 1000) FROM seq_1_to_50000 RETURNING n, s", func(d *event.RouteDecision) { d.ReadOnly = false }))
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
	require.True(t, o.Result.Truncated)
	b.decide(b.route("t2", "SELECT COUNT(*) FROM written"))
	require.JSONEq(t, `[["50000"]]`, string(b.outcome("t2").Result.Inline))
}
