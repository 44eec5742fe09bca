package flightsql_test

import (
	"context"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/flightsql"
	"github.com/pointsman/pointsman/pkg/engine/flightsql/flightsqltest"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/test/ports"
)

func open(t *testing.T, cfg flightsql.Config) *flightsql.Engine {
	t.Helper()
	e, err := flightsql.Open(cfg)
	require.NoError(t, err)
	return e
}

// fixture is the embedded engine's, behind a server of Flight SQL.
func fixture(addr string) enginetest.Fixture {
	sql, columns, values := typesFixture()
	return enginetest.Fixture{
		Kind: flightsql.Kind,
		Open: func(t *testing.T) engine.Engine {
			return open(t, flightsql.Config{Name: "f", Addr: addr, Canary: "SELECT count() FROM system.parts"})
		},
		Dead: func(t *testing.T) engine.Engine {
			return open(t, flightsql.Config{Name: "dead", Addr: ports.Closed(t), DialTimeout: time.Second})
		},
		Addr: addr,
		OpenAt: func(t *testing.T, addr string) engine.Engine {
			return open(t, flightsql.Config{Name: "f", Addr: addr, DialTimeout: time.Second})
		},
		One: "SELECT toUInt8(1) AS n", Empty: "SELECT number FROM numbers(10) WHERE number > 100",
		NoResult: "CREATE TABLE IF NOT EXISTS nothing (n UInt8) ENGINE = Memory",
		Writes:   "INSERT INTO nothing SELECT 1", Written: "SELECT count() FROM nothing",
		Types: sql, Columns: columns, Values: values,
		Wrong: "SELECT * FROM no_such_table", Syntax: "SELEKT 1",
		Greedy: "SELECT groupArray(toString(number)) FROM numbers_mt(20000000)", MemoryLimit: 50_000_000,
		Slow:  "SELECT sum(sleepEachRow(0.1)) FROM numbers(300) SETTINGS max_block_size = 1",
		Large: "SELECT number, repeat('x', 100) FROM numbers(1000000)", LargeRows: 1_000_000,
		Breaks:      "SELECT number, repeat('x', 100), throwIf(number = 900000, 'the ice is thin') FROM numbers(1000000) SETTINGS max_threads = 1",
		BreaksClass: failure.Semantic,
		Echo:        "SELECT toUInt32(%d)",
		Setting:     "SELECT value FROM system.settings WHERE name = 'max_block_size'", SettingName: "max_block_size", SettingValue: "4242",
	}
}

const noPlans = "the protocol has no plans"

// TestServer is the suite at a server that can be asked for an attempt.
func TestServer(t *testing.T) {
	server := flightsqltest.Start(t, flightsqltest.Config{Engine: chdbtest.Start(t, chdb.Config{Name: "under-test"}).URL()})
	f := fixture(server.Addr())
	f.Record, f.Engine, f.Proof = "flightsql-actions", "Flight SQL with pointsman's actions", "own server over the embedded engine, version 26.7"
	f.Exceptions = map[string]string{"Explain": noPlans}
	enginetest.Exercise(t, f)
}

// TestPlainServer is the suite at a server that knows the protocol and nothing else. What the protocol can't show, the list of
// running queries of the engine behind it does.
func TestPlainServer(t *testing.T) {
	behind := chdbtest.Start(t, chdb.Config{Name: "under-test"})
	server := flightsqltest.Start(t, flightsqltest.Config{Engine: behind.URL(), Plain: true})
	list := chdbtest.Open(t, behind)
	f := fixture(server.Addr())
	f.Record, f.Engine, f.Proof = "flightsql", "Flight SQL", "own server over the embedded engine, version 26.7"
	f.Exceptions = map[string]string{
		"Explain":         noPlans,
		"MemoryLimit":     "the protocol has no such limit; a server may have a header for one, which a resource profile can set",
		"FindAndKill":     "the protocol can't be asked for a statement by a name of the client's",
		"HonestProgress":  "the protocol says nothing of a query but its rows, and nothing at all to another process",
		"DuplicateID":     "a server does not know the attempt id, so it can't refuse one that it runs",
		"ReadsDoNotWrite": "the protocol has no way to say that a query must not write",
	}
	watched := func(open func(t *testing.T) engine.Engine) func(t *testing.T) engine.Engine {
		return func(t *testing.T) engine.Engine { return &watcher{open(t), list} }
	}
	f.Open = watched(f.Open)
	at := f.OpenAt
	f.OpenAt = func(t *testing.T, addr string) engine.Engine { return &watcher{at(t, addr), list} }
	enginetest.Exercise(t, f)
}

// watcher sees what runs by the list of the engine behind a server, where the comment in front of a statement names its attempt.
type watcher struct {
	engine.Engine
	list driver.Conn
}

const listed = "FROM system.processes WHERE query NOT LIKE '%system.processes%'"

func (w *watcher) Find(ctx context.Context, id string) (engine.Run, error) {
	if run, err := w.Engine.Find(ctx, id); err != nil { // the server's own word counts if it gives none
		return run, err
	}
	var n uint64
	err := w.list.QueryRow(ctx, "SELECT count() "+listed+" AND query LIKE ?", "%/* pointsman:"+id+" */%").Scan(&n)
	if n > 0 {
		return engine.Run{State: engine.RunActive}, err
	}
	return engine.Run{State: engine.RunUnknown}, err
}

func (w *watcher) Observe(ctx context.Context) (signal.Observation, error) {
	o, err := w.Engine.Observe(ctx)
	if err != nil {
		return o, err
	}
	var n uint64
	err = w.list.QueryRow(ctx, "SELECT count() "+listed).Scan(&n)
	o.Values[signal.Running] = signal.Of(float64(n), signal.Count, "list", o.At)
	return o, err
}
