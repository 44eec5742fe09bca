//go:build real

package postgres_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/postgres"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/test/ports"
	real "github.com/pointsman/pointsman/test/real/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func day(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }

// typesRow has one column per type that the port has to carry; its values are at the edges.
var typesRow = []struct {
	sql, typ string
	want     any
}{
	{"true", "boolean", true},
	{"(-32768)::smallint", "smallint", int64(-32768)},
	{"2147483647", "integer", int64(2147483647)},
	{"9223372036854775807", "bigint", int64(9223372036854775807)},
	{"(-9223372036854775808)::bigint", "bigint", int64(-9223372036854775808)},
	{"9007199254740993", "bigint", int64(9007199254740993)},
	{"4294967295::oid", "oid", int64(4294967295)},
	{"12345678901234567890123456789.123456789012345678901", "numeric", json.Number("12345678901234567890123456789.123456789012345678901")},
	{"(-1.50)::numeric(10,2)", "numeric(10,2)", json.Number("-1.50")},
	{"1250::numeric(5,-2)", "numeric(5,-2)", json.Number("1300")},
	{"'NaN'::numeric", "numeric", "NaN"},
	{"'-Infinity'::numeric", "numeric", "-Infinity"},
	{"0.1::real", "real", 0.1},
	{"0.1::double precision + 0.2::double precision", "double precision", 0.30000000000000004},
	{"'Infinity'::double precision", "double precision", math.Inf(1)},
	{"E'x\\n é'", "text", "x\n é"},
	{"'abc'::varchar(5)", "character varying(5)", "abc"},
	{"'ab'::char(3)", "character(3)", "ab "},
	{"NULL::bigint", "bigint", nil},
	{"NULL", "text", nil},
	{"''", "text", ""},
	{"'\\x00ff'::bytea", "bytea", "0x00ff"},
	{"date '2026-11-30'", "date", day(2026, 11, 30)},
	{"date '0044-03-15 BC'", "date", "0044-03-15 BC"},
	{"date 'infinity'", "date", "infinity"},
	{"timestamptz '2026-11-30 09:15:00.123456+05:30'", "timestamp with time zone", time.Date(2026, 11, 30, 3, 45, 0, 123456000, time.UTC)},
	{"timestamptz '2026-11-30 09:15:00+00'", "timestamp with time zone", time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)},
	{"timestamptz(0) 'infinity'", "timestamp(0) with time zone", "infinity"},
	{"timestamp '2026-11-30 09:15:00.5'", "timestamp without time zone", "2026-11-30T09:15:00.5"},
	{"time '24:00:00'", "time without time zone", "24:00:00"},
	{"interval '1 year 2 days 03:04:05.06'", "interval", "1 year 2 days 03:04:05.06"},
	{"uuid '61f0c404-5cb3-11e7-907b-a6006ad3dba0'", "uuid", "61f0c404-5cb3-11e7-907b-a6006ad3dba0"},
	{"inet '192.0.2.1/24'", "inet", "192.0.2.1/24"},
	{`jsonb '{"a": 12345678901234567890.10, "b": null}'`, "jsonb", `{"a": 12345678901234567890.10, "b": null}`},
	{`json '{"a":1,  "a":2}'`, "json", `{"a":1,  "a":2}`},
	{"jsonb 'null'", "jsonb", "null"},
	{"B'101'::bit(3)", "bit(3)", "101"},
	{"ARRAY[9007199254740993, NULL]::bigint[]", "bigint[]", []any{int64(9007199254740993), nil}},
	{"ARRAY[[1,2],[3,4]]", "integer[]", []any{[]any{int64(1), int64(2)}, []any{int64(3), int64(4)}}},
	{"'{}'::text[]", "text[]", []any{}},
	{`ARRAY['a "b"', 'NULL', NULL, 'c\d,{}', '']`, "text[]", []any{`a "b"`, "NULL", nil, `c\d,{}`, ""}},
	{"ARRAY[1.10, 2]::numeric(10,2)[]", "numeric(10,2)[]", []any{json.Number("1.10"), json.Number("2.00")}},
	{"ARRAY[timestamptz '2026-11-30 00:00:00+00']", "timestamp with time zone[]", []any{day(2026, 11, 30)}},
	{"'[0:1]={7,8}'::int[]", "integer[]", []any{int64(7), int64(8)}},
	{"'calm'::mood", "mood", "calm"},
	{"ARRAY['calm', NULL]::mood[]", "mood[]", []any{"calm", nil}},
	{"ROW(1, 'x')", "record", "(1,x)"},
	{"int4range(1, 5)", "int4range", "[1,5)"},
	{"box '((1,2),(3,4))'", "box", "(3,4),(1,2)"},
}

func typesFixture() (sql string, columns []event.Column, values []any) {
	for i, c := range typesRow {
		name := fmt.Sprintf("c%02d", i)
		if i > 0 {
			sql += ", "
		}
		sql += c.sql + " AS " + name
		columns = append(columns, event.Column{Name: name, Type: c.typ})
		values = append(values, c.want)
	}
	return "SELECT " + sql, columns, values
}

func open(t *testing.T, cfg postgres.Config) engine.Engine {
	t.Helper()
	cfg.User, cfg.Database, cfg.SSLMode = real.User, "postgres", "disable"
	e, err := postgres.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func TestServer(t *testing.T) {
	server := real.Start(t)
	server.Exec("CREATE TYPE mood AS ENUM ('calm', 'grim')")
	sql, columns, values := typesFixture()
	enginetest.Exercise(t, enginetest.Fixture{
		Record: "postgres", Engine: "PostgreSQL", Proof: "real server, version 15",
		Exceptions: map[string]string{"MemoryLimit": "PostgreSQL has no limit for one statement; `work_mem` bounds what a single sort or hash takes"},
		Kind:       postgres.Kind,
		Open:       func(t *testing.T) engine.Engine { return open(t, postgres.Config{Name: "p", Addr: server.Addr}) },
		Addr:       server.Addr,
		OpenAt:     func(t *testing.T, addr string) engine.Engine { return open(t, postgres.Config{Name: "p", Addr: addr}) },
		Dead: func(t *testing.T) engine.Engine {
			return open(t, postgres.Config{Name: "dead", Addr: ports.Closed(t), DialTimeout: time.Second})
		},
		One: "SELECT 1 AS n", Empty: "SELECT relname FROM pg_class WHERE relname = 'none'",
		NoResult: "CREATE TABLE IF NOT EXISTS nothing (n integer)",
		Types:    sql, Columns: columns, Values: values,
		Wrong: "SELECT * FROM no_such_table", Syntax: "SELEKT 1",
		Slow:  "SELECT pg_sleep(30)",
		Large: "SELECT g, repeat('x', 100) FROM generate_series(1, 1000000) g", LargeRows: 1_000_000,
		Breaks:      "SELECT g, repeat('x', 100), 1 / (900000 - g) FROM generate_series(1, 1000000) g",
		BreaksClass: failure.Semantic,
		Echo:        "SELECT %d",
		Writes:      "INSERT INTO nothing VALUES (1)", Written: "SELECT count(*) FROM nothing",
		Explain: "SELECT g FROM generate_series(1, 1000) g LIMIT 10", ExplainsRows: true,
		Setting: "SELECT current_setting('work_mem')", SettingName: "work_mem", SettingValue: "7MB",
	})
}

// TestAReadDoesNotOutliveItsExecutor: nobody tells the server to stop, and it notices by itself. A write is left to end as it
// would.
func TestAReadDoesNotOutliveItsExecutor(t *testing.T) {
	server := real.Start(t)
	other := open(t, postgres.Config{Name: "p", Addr: server.Addr})
	state := func(id string) engine.RunState {
		run, err := other.Find(t.Context(), id)
		require.NoError(t, err)
		return run.State
	}
	for _, readOnly := range []bool{true, false} {
		g := enginetest.NewGate(t, server.Addr)
		mine := open(t, postgres.Config{Name: "p", Addr: g.Addr})
		id := fmt.Sprintf("orphan-%t/1", readOnly)
		ended := make(chan error, 1)
		go func() {
			ended <- enginetest.End(t.Context(), mine, engine.Query{ID: id, SQL: "SELECT pg_sleep(20)", ReadOnly: readOnly})
		}()
		require.Eventually(t, func() bool { return state(id) == engine.RunActive }, 5*time.Second, 10*time.Millisecond)
		g.Set(enginetest.Fault{Deaf: true}) // not even the driver's own wish to stop it comes through
		g.CutAll()
		_, class, phase := enginetest.ClassOf(t, <-ended)
		require.Equal(t, failure.SubmitUnknown, class)
		require.Equal(t, engine.SentUnknown, phase)
		if readOnly {
			require.Eventually(t, func() bool { return state(id) == engine.RunUnknown }, 5*time.Second, 20*time.Millisecond)
			continue
		}
		time.Sleep(1500 * time.Millisecond)
		require.Equal(t, engine.RunActive, state(id))
		killed, err := other.Kill(t.Context(), id)
		require.NoError(t, err)
		require.True(t, killed)
	}
}

// TestAWriteIsNotStoppedByABrokenConnection: the driver would tell the server, and must not.
func TestAWriteIsNotStoppedByABrokenConnection(t *testing.T) {
	server := real.Start(t)
	server.Exec("CREATE TABLE written (n int)")
	g := enginetest.NewGate(t, server.Addr)
	mine := open(t, postgres.Config{Name: "p", Addr: g.Addr})
	other := open(t, postgres.Config{Name: "p", Addr: server.Addr})
	ended := make(chan error, 1)
	go func() {
		ended <- enginetest.End(t.Context(), mine, engine.Query{ID: "write/1", SQL: "INSERT INTO written SELECT 1 FROM pg_sleep(1)"})
	}()
	require.Eventually(t, func() bool {
		run, err := other.Find(t.Context(), "write/1")
		return err == nil && run.State == engine.RunActive
	}, 5*time.Second, 10*time.Millisecond)
	g.CutAll() // the way to the server stays open
	_, class, _ := enginetest.ClassOf(t, <-ended)
	require.Equal(t, failure.SubmitUnknown, class)
	require.Eventually(t, func() bool {
		run, err := other.Find(t.Context(), "write/1")
		return err == nil && run.State == engine.RunUnknown
	}, 5*time.Second, 20*time.Millisecond)
	rows, err := other.Submit(t.Context(), engine.Query{ID: "count/1", SQL: "SELECT count(*) FROM written", ReadOnly: true})
	require.NoError(t, err)
	require.True(t, rows.Next())
	values, err := rows.Values()
	require.NoError(t, err)
	require.Equal(t, []any{int64(1)}, values)
	require.NoError(t, rows.Close())
}

// TestSparesThatSayNothing: connections were kept ready, and then the network lost them without a word. Nothing of the statement
// has left while its session is set up, so that another one is made, and not waited for the Task's deadline.
func TestSparesThatSayNothing(t *testing.T) {
	g := enginetest.NewGate(t, real.Start(t).Addr)
	e := open(t, postgres.Config{Name: "p", Addr: g.Addr, Spares: 3, DialTimeout: time.Second})
	read := func(id string) {
		rows, err := e.Submit(t.Context(), engine.Query{ID: id, SQL: "SELECT 1"})
		require.NoError(t, err)
		require.True(t, rows.Next())
		require.False(t, rows.Next())
		require.NoError(t, rows.Close())
	}
	read("first/1")
	time.Sleep(200 * time.Millisecond) // until the next ones are ready
	g.Mute()
	began := time.Now()
	read("second/1")
	require.Less(t, time.Since(began), 20*time.Second, "a second for each that was ready")
}

// TestALateSessionTakesNoLock: making the session took longer than the guard of the claim. The attempt is submitted again under its
// id, at once, and does not meet itself at the server.
func TestALateSessionTakesNoLock(t *testing.T) {
	g := enginetest.NewGate(t, real.Start(t).Addr)
	e := open(t, postgres.Config{Name: "p", Addr: g.Addr, Spares: -1})
	g.Set(enginetest.Fault{DialDelay: 300 * time.Millisecond, Answer: -1})
	for range 5 {
		_, err := e.Submit(t.Context(), engine.Query{ID: "late/1", SQL: "SELECT 1", SubmitBefore: time.Now().Add(100 * time.Millisecond)})
		require.ErrorIs(t, err, engine.ErrGuardExpired)
		rows, err := e.Submit(t.Context(), engine.Query{ID: "late/1", SQL: "SELECT 1", SubmitBefore: time.Now().Add(time.Minute)})
		require.NoError(t, err)
		require.NoError(t, rows.Close())
		time.Sleep(500 * time.Millisecond) // until that one's session has gone
	}
}
