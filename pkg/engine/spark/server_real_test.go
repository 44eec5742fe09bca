//go:build real

package spark_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/spark"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/test/ports"
	real "github.com/pointsman/pointsman/test/real/spark"
)

// typesRow has one column per type that the port has to carry; its values are at the edges.
var typesRow = []struct {
	sql, typ string
	want     any
}{
	{"true", "boolean", true},
	{"-128Y", "tinyint", int64(-128)},
	{"32767S", "smallint", int64(32767)},
	{"2147483647", "int", int64(2147483647)},
	{"9223372036854775807L", "bigint", int64(math.MaxInt64)},
	{"-9223372036854775807L - 1", "bigint", int64(math.MinInt64)},
	{"9007199254740993L", "bigint", int64(9007199254740993)},
	{"0.1F", "float", 0.1},
	{"1D / 3", "double", 1.0 / 3},
	{"4.9e-324D", "double", 5e-324},
	{"double('Infinity')", "double", math.Inf(1)},
	{"double('-Infinity')", "double", math.Inf(-1)},
	{"CAST('12345678901234567890.123456789012345678' AS decimal(38,18))", "decimal(38,18)", json.Number("12345678901234567890.123456789012345678")},
	{"CAST('-1.50' AS decimal(10,2))", "decimal(10,2)", json.Number("-1.50")},
	{"CAST(1200 AS decimal(38,0))", "decimal(38,0)", json.Number("1200")},
	{"CAST('-0.0000001' AS decimal(9,7))", "decimal(9,7)", json.Number("-0.0000001")},
	{"'x\\n é \U0001F600'", "string", "x\n é \U0001F600"},
	{"''", "string", ""},
	{"X'00FF41'", "binary", "0x00ff41"},
	{"X''", "binary", "0x"},
	{"CAST(NULL AS bigint)", "bigint", nil},
	{"NULL", "void", nil},
	{"DATE'2026-11-30'", "date", day(2026, 11, 30)},
	{"DATE'-0044-03-15'", "date", "-0044-03-15"},
	{"DATE'+10000-01-01'", "date", "+10000-01-01"},
	{"TIMESTAMP'2026-11-30 09:15:00.123456 +05:30'", "timestamp", time.Date(2026, 11, 30, 3, 45, 0, 123456000, time.UTC)},
	{"TIMESTAMP'2026-11-30 09:15:00'", "timestamp", time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)},
	{"TIMESTAMP'2026-10-25 02:30:00 Europe/Berlin'", "timestamp", time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)},
	{"TIMESTAMP_NTZ'2026-11-30 09:15:00'", "timestamp_ntz", "2026-11-30T09:15:00"},
	{"TIMESTAMP_NTZ'2026-11-30 09:15:00.250'", "timestamp_ntz", "2026-11-30T09:15:00.25"},
	{"TIMESTAMP_NTZ'1500-01-01 00:00:00.000001'", "timestamp_ntz", "1500-01-01T00:00:00.000001"},
	{"INTERVAL '3 04:05:06.789' DAY TO SECOND", "interval day to second", "INTERVAL '3 04:05:06.789' DAY TO SECOND"},
	{"INTERVAL '-1-2' YEAR TO MONTH", "interval year to month", "INTERVAL '-1-2' YEAR TO MONTH"},
	{"INTERVAL '7' HOUR", "interval hour", "INTERVAL '7' HOUR"},
	{"array(9007199254740993L, NULL)", "array<bigint>", []any{int64(9007199254740993), nil}},
	{"array(array('a'), array())", "array<array<string>>", []any{[]any{"a"}, []any{}}},
	{"array(1.10BD)", "array<decimal(3,2)>", []any{json.Number("1.10")}},
	{"map('k', 9007199254740993L, 'n', NULL)", "map<string,bigint>", map[string]any{"k": int64(9007199254740993), "n": nil}},
	{"map(7, array(DATE'2026-11-30'))", "map<int,array<date>>", map[string]any{"7": []any{day(2026, 11, 30)}}},
	{"named_struct('a', 1L, 'b', 'x', 'c', CAST(NULL AS double))", "struct<a:bigint,b:string,c:double>", map[string]any{"a": int64(1), "b": "x", "c": nil}},
	{"array(named_struct('v', X'01'))", "array<struct<v:binary>>", []any{map[string]any{"v": "0x01"}}},
	{"CAST(NULL AS struct<a:int>)", "struct<a:int>", nil},
}

func day(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }

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

const (
	// slow runs for minutes, and gives one row.
	slow = "SELECT count(*) FROM range(0, 100000000000000, 1, 4) WHERE id % 7919 = 1"
	// large is many batches.
	large = "SELECT id, rpad('', 200, 'x') FROM range(0, 300000, 1, 8)"
)

// TestServer runs everything on one server, since starting one takes longer than most of it.
func TestServer(t *testing.T) {
	server := real.Start(t)
	// The first statement compiles much of Spark.
	warm := open(t, spark.Config{Name: "warm", Addr: server.Addr})
	require.NoError(t, warm.Canary(t.Context()))
	t.Run("Suite", func(t *testing.T) { suite(t, server) })
	t.Run("Errors", func(t *testing.T) { nativeErrors(t, server) })
	t.Run("Schemas", func(t *testing.T) { schemas(t, server) })
	t.Run("Streams", func(t *testing.T) { streams(t, server) })
	t.Run("Stopped", func(t *testing.T) { stopped(t, server) })
	t.Run("TakenOver", func(t *testing.T) { takenOver(t, server) })
	t.Run("Restart", func(t *testing.T) { restart(t, server) })
}

func suite(t *testing.T, server *real.Server) {
	sql, columns, values := typesFixture()
	enginetest.Exercise(t, enginetest.Fixture{
		Record: "spark", Engine: "Spark Connect", Proof: "real server, version 4.1.0",
		Exceptions: map[string]string{
			"MemoryLimit":     "Spark has no limit for one statement, and its protocol does not tell what one takes",
			"ReadsDoNotWrite": "Spark has no session that can't write",
		},
		Running: server.RunningJobs,
		Kind:    spark.Kind, OwnNetwork: func(t *testing.T) { network(t, server) },
		Open: func(t *testing.T) engine.Engine { return open(t, spark.Config{Name: "c", Addr: server.Addr}) },
		Dead: func(t *testing.T) engine.Engine {
			return open(t, spark.Config{Name: "dead", Addr: ports.Closed(t), DialTimeout: time.Second})
		},
		One: "SELECT count(*) FROM range(1)", Empty: "SELECT id FROM range(10) WHERE id = 100",
		NoResult: "CREATE TABLE IF NOT EXISTS nothing (n bigint) USING parquet",
		Types:    sql, Columns: columns, Values: values,
		Wrong: "SELECT * FROM no_such_table", Syntax: "SELEKT 1",
		Slow:  slow,
		Large: large, LargeRows: 300_000,
		Breaks: "SELECT id, rpad('', 200, 'x'), 1 / (id - 290000) FROM range(0, 300000, 1, 8)", BreaksClass: failure.Semantic,
		Echo:    "SELECT %d",
		Explain: "SELECT id FROM range(10)", ExplainsRows: true,
		Setting: "SELECT current_timezone()", SettingName: "spark.sql.session.timeZone", SettingValue: "Asia/Tokyo",
	})
}
