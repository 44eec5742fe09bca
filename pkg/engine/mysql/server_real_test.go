//go:build real

package mysql_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/mysql"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/test/ports"
	real "github.com/pointsman/pointsman/test/real/mariadb"
)

// typesRow has one column per type that the port has to carry; its values are at the edges.
var typesRow = []struct {
	def, sql, typ string
	want          any
}{
	{"tinyint(1)", "TRUE", "TINYINT", int64(1)},
	{"tinyint", "-128", "TINYINT", int64(-128)},
	{"tinyint unsigned", "255", "TINYINT UNSIGNED", int64(255)},
	{"smallint", "-32768", "SMALLINT", int64(-32768)},
	{"mediumint", "8388607", "MEDIUMINT", int64(8388607)},
	{"int", "2147483647", "INT", int64(2147483647)},
	{"int unsigned", "4294967295", "INT UNSIGNED", int64(4294967295)},
	{"bigint", "9223372036854775807", "BIGINT", int64(9223372036854775807)},
	{"bigint", "-9223372036854775808", "BIGINT", int64(-9223372036854775808)},
	{"bigint unsigned", "18446744073709551615", "BIGINT UNSIGNED", uint64(18446744073709551615)},
	{"bigint", "9007199254740993", "BIGINT", int64(9007199254740993)},
	{"decimal(65,30)", "12345678901234567890123456789012345.123456789012345678901234567890", "DECIMAL", json.Number("12345678901234567890123456789012345.123456789012345678901234567890")},
	{"decimal(10,2)", "-1.5", "DECIMAL", json.Number("-1.50")},
	{"decimal(10,2) unsigned", "1.5", "DECIMAL", json.Number("1.50")},
	{"float", "0.1", "FLOAT", 0.1},
	{"double", "1/3", "DOUBLE", 0.333333333},
	{"double", "0.1e0 + 0.2e0", "DOUBLE", 0.30000000000000004},
	{"varchar(20)", "'x\\n é'", "VARCHAR", "x\n é"},
	{"char(3)", "'ab'", "CHAR", "ab"},
	{"text", "''", "TEXT", ""},
	{"bigint", "NULL", "BIGINT", nil},
	{"varchar(3)", "NULL", "VARCHAR", nil},
	{"blob", "X'00ff'", "BLOB", "0x00ff"},
	{"binary(2)", "X'00ff'", "BINARY", "0x00ff"},
	{"bit(64)", "18446744073709551615", "BIT", uint64(18446744073709551615)},
	{"bit(3)", "b'101'", "BIT", uint64(5)},
	{"date", "'2026-11-30'", "DATE", time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)},
	{"date", "'0000-00-00'", "DATE", "0000-00-00"},
	{"datetime(6)", "'2026-11-30 09:15:00.123456'", "DATETIME", "2026-11-30T09:15:00.123456"},
	{"datetime", "'9999-12-31 23:59:59'", "DATETIME", "9999-12-31T23:59:59"},
	{"timestamp(6) null", "'2026-11-30 03:45:00.123456'", "TIMESTAMP", time.Date(2026, 11, 30, 3, 45, 0, 123456000, time.UTC)},
	{"time(6)", "'-838:59:59'", "TIME", "-838:59:59.000000"},
	{"year", "2026", "YEAR", int64(2026)},
	{"enum('a','b')", "'b'", "ENUM", "b"},
	{"set('a','b')", "'a,b'", "SET", "a,b"},
	{"json", `'{"a": 12345678901234567890.10, "b": null}'`, "TEXT", `{"a": 12345678901234567890.10, "b": null}`},
}

// typesFixture makes a table with one row: expressions would have types of their own.
func typesFixture(server *real.Server) (sql string, columns []event.Column, values []any) {
	var defs, row string
	for i, c := range typesRow {
		name := fmt.Sprintf("c%02d", i)
		if i > 0 {
			defs, row = defs+", ", row+", "
		}
		defs, row = defs+name+" "+c.def, row+c.sql
		columns = append(columns, event.Column{Name: name, Type: c.typ})
		values = append(values, c.want)
	}
	server.Exec("SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES'")
	server.Exec("SET GLOBAL sql_mode = '', time_zone = '+00:00'")
	server.Exec("CREATE TABLE work.types ("+defs+")", "INSERT INTO work.types VALUES ("+row+")", "SET GLOBAL time_zone = '-03:00'")
	return "SELECT * FROM types", columns, values
}

func open(t *testing.T, cfg mysql.Config) engine.Engine {
	t.Helper()
	if cfg.User == "" {
		cfg.User, cfg.Database = real.User, "work"
	}
	e, err := mysql.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func TestMariaDB(t *testing.T) {
	server := real.Start(t)
	sql, columns, values := typesFixture(server)
	enginetest.Exercise(t, enginetest.Fixture{
		Record: "mysql-mariadb", Engine: "MariaDB", Proof: "real server, version 10.11",
		Kind: string(mysql.MariaDB),
		Open: func(t *testing.T) engine.Engine {
			return open(t, mysql.Config{Name: "m", Addr: server.Addr, Flavour: mysql.MariaDB})
		},
		Addr: server.Addr,
		OpenAt: func(t *testing.T, addr string) engine.Engine {
			return open(t, mysql.Config{Name: "m", Addr: addr, Flavour: mysql.MariaDB})
		},
		Dead: func(t *testing.T) engine.Engine {
			return open(t, mysql.Config{Name: "dead", Addr: ports.Closed(t), Flavour: mysql.MariaDB, DialTimeout: time.Second})
		},
		One: "SELECT 1 AS n", Empty: "SELECT c00 FROM types WHERE FALSE",
		NoResult: "CREATE TABLE IF NOT EXISTS nothing (n integer)",
		Types:    sql, Columns: columns, Values: values,
		Wrong: "SELECT * FROM no_such_table", Syntax: "SELEKT 1",
		Greedy: "SELECT COUNT(*) FROM (SELECT LPAD(seq, 100, 'x') AS x FROM seq_1_to_1000000 GROUP BY x) t", MemoryLimit: 50_000_000,
		GreedySettings: map[string]string{"tmp_memory_table_size": "1000000000", "max_heap_table_size": "1000000000"},
		Slow:           "SELECT SLEEP(30)",
		Large:          "SELECT seq, REPEAT('x', 100) FROM seq_1_to_1000000", LargeRows: 1_000_000,
		Breaks:      "SELECT seq, REPEAT('x', 100), CAST(900000 - seq AS UNSIGNED) FROM seq_1_to_1000000",
		BreaksClass: failure.Semantic,
		Echo:        "SELECT %d",
		Writes:      "INSERT INTO nothing VALUES (1)", Written: "SELECT COUNT(*) FROM nothing",
		Explain: "SELECT seq FROM seq_1_to_1000 LIMIT 10",
		Setting: "SELECT CAST(@@sort_buffer_size AS CHAR)", SettingName: "sort_buffer_size", SettingValue: "4194304",
	})
}

// TestSparesThatSayNothing: connections were kept ready, and then the network lost them without a word. Nothing of the statement
// has left while its session is set up, so that another one is made, and not waited for the Task's deadline.
func TestSparesThatSayNothing(t *testing.T) {
	g := enginetest.NewGate(t, real.Start(t).Addr)
	e := open(t, mysql.Config{Name: "m", Addr: g.Addr, Flavour: mysql.MariaDB, Spares: 3, DialTimeout: time.Second})
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
	e := open(t, mysql.Config{Name: "m", Addr: g.Addr, Flavour: mysql.MariaDB, Spares: -1})
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
