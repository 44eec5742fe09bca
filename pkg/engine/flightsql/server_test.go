package flightsql_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/flightsql"
	"github.com/pointsman/pointsman/pkg/engine/flightsql/flightsqltest"
	"github.com/pointsman/pointsman/pkg/failure"
)

func open(t *testing.T, cfg flightsql.Config) *flightsql.Engine {
	t.Helper()
	e, err := flightsql.Open(cfg)
	require.NoError(t, err)
	return e
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	return addr
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
			return open(t, flightsql.Config{Name: "dead", Addr: closedPort(t), DialTimeout: time.Second})
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

func TestServer(t *testing.T) {
	server := flightsqltest.Start(t, flightsqltest.Config{Engine: chdbtest.Start(t, chdb.Config{Name: "under-test"}).URL()})
	f := fixture(server.Addr())
	f.Record, f.Engine, f.Proof = "flightsql-actions", "Flight SQL, with our actions", "own server over the embedded engine, version 26.7"
	enginetest.Exercise(t, f)
}
