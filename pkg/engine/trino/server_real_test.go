//go:build real

package trino_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/trino"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/test/ports"
	real "github.com/pointsman/pointsman/test/real/trino"
)

// typesRow has one column per type that the port has to carry; its values are at the edges.
var typesRow = []struct {
	sql, typ string
	want     any
}{
	{"true", "boolean", true},
	{"tinyint '-128'", "tinyint", int64(-128)},
	{"smallint '32767'", "smallint", int64(32767)},
	{"2147483647", "integer", int64(2147483647)},
	{"bigint '9223372036854775807'", "bigint", int64(math.MaxInt64)},
	{"bigint '-9223372036854775808'", "bigint", int64(math.MinInt64)},
	{"bigint '9007199254740993'", "bigint", int64(9007199254740993)},
	{"real '0.1'", "real", 0.1},
	{"double '1' / 3", "double", 1.0 / 3},
	{"double '5e-324'", "double", 5e-324},
	{"infinity()", "double", math.Inf(1)},
	{"-infinity()", "double", math.Inf(-1)},
	{"decimal '12345678901234567890.123456789012345678'", "decimal(38, 18)", json.Number("12345678901234567890.123456789012345678")},
	{"CAST('-1.50' AS decimal(10,2))", "decimal(10, 2)", json.Number("-1.50")},
	{"CAST(1200 AS decimal(38,0))", "decimal(38, 0)", json.Number("1200")},
	{"'x\n é \U0001F600'", "varchar(6)", "x\n é \U0001F600"},
	{"CAST('ab' AS char(4))", "char(4)", "ab  "},
	{"''", "varchar(0)", ""},
	{"X'00FF41'", "varbinary", "0x00ff41"},
	{"X''", "varbinary", "0x"},
	{"CAST(NULL AS bigint)", "bigint", nil},
	{"NULL", "unknown", nil},
	{"date '2026-11-30'", "date", day(2026, 11, 30)},
	{"date '-0044-03-15'", "date", "-0044-03-15"},
	{"date '10000-01-01'", "date", "+10000-01-01"},
	{"timestamp '2026-11-30 09:15:00'", "timestamp(0)", "2026-11-30T09:15:00"},
	{"timestamp '2026-11-30 09:15:00.250'", "timestamp(3)", "2026-11-30T09:15:00.25"},
	{"timestamp '2026-11-30 09:15:00.123456789012'", "timestamp(12)", "2026-11-30T09:15:00.123456789012"},
	{"timestamp '2026-11-30 09:15:00.123456 +05:30'", "timestamp(6) with time zone", time.Date(2026, 11, 30, 3, 45, 0, 123456000, time.UTC)},
	{"timestamp '2026-11-30 09:15:00.123456789 Asia/Kolkata'", "timestamp(9) with time zone", time.Date(2026, 11, 30, 3, 45, 0, 123456789, time.UTC)},
	{"timestamp '2026-11-30 09:15:00.123456789012 UTC'", "timestamp(12) with time zone", "2026-11-30 09:15:00.123456789012 UTC"},
	{"timestamp '2026-07-01 12:00:00 Europe/Berlin'", "timestamp(0) with time zone", time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)},
	// An hour that the zone has twice: the server sends the same text for both.
	{"from_unixtime(1792888200, 'Europe/Berlin')", "timestamp(3) with time zone", "2026-10-25 02:30:00.000 Europe/Berlin"},
	{"from_unixtime(1792891800, 'Europe/Berlin')", "timestamp(3) with time zone", "2026-10-25 02:30:00.000 Europe/Berlin"},
	{"time '23:59:59.999'", "time(3)", "23:59:59.999"},
	{"time '01:02:03 +02:00'", "time(0) with time zone", "01:02:03+02:00"},
	{"interval '3' day", "INTERVAL DAY TO SECOND", "3 00:00:00.000"},
	{"interval '14' month", "INTERVAL YEAR TO MONTH", "1-2"},
	{"uuid '61f0c404-5cb3-11e7-907b-a6006ad3dba0'", "uuid", "61f0c404-5cb3-11e7-907b-a6006ad3dba0"},
	{"ipaddress '2001:db8::1'", "ipaddress", "2001:db8::1"},
	{`json '{"a": 12345678901234567890.5, "b": null}'`, "json", `{"a":1.2345678901234567E19,"b":null}`},
	{"json 'null'", "json", "null"},
	{"ARRAY[bigint '9007199254740993', NULL]", "array(bigint)", []any{int64(9007199254740993), nil}},
	{"ARRAY[ARRAY['a'], ARRAY[]]", "array(array(varchar(1)))", []any{[]any{"a"}, []any{}}},
	{"ARRAY[decimal '1.10']", "array(decimal(3, 2))", []any{json.Number("1.10")}},
	{"MAP(ARRAY['k', 'n'], ARRAY[bigint '9007199254740993', NULL])", "map(varchar(1), bigint)", map[string]any{"k": int64(9007199254740993), "n": nil}},
	{"MAP(ARRAY[7], ARRAY[ARRAY[date '2026-11-30']])", "map(integer, array(date))", map[string]any{"7": []any{day(2026, 11, 30)}}},
	{"CAST(ROW(1, 'x', NULL) AS ROW(a bigint, b varchar, c double))", "row(a bigint, b varchar, c double)", map[string]any{"a": int64(1), "b": "x", "c": nil}},
	{"ROW(1, ROW(2.5, infinity()))", "row(integer, row(decimal(2, 1), double))", []any{int64(1), []any{json.Number("2.5"), math.Inf(1)}}},
	{"CAST(ROW(1, 2) AS ROW(a bigint, a bigint))", "row(a bigint, a bigint)", []any{int64(1), int64(2)}},
	{"ARRAY[CAST(ROW(X'01') AS ROW(v varbinary))]", "array(row(v varbinary))", []any{map[string]any{"v": "0x01"}}},
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

// slow runs for minutes, and gives one row.
const slow = "SELECT count(*) FROM tpch.sf1.lineitem a CROSS JOIN tpch.sf1.orders b"

// large has twice as many bytes as the server and the connection keep for a reader that does not read.
const large = "SELECT n, rpad('', 200, 'x') FROM TABLE(sequence(1, 300000)) AS t(n)"

// TestServer runs everything on one server, since starting one takes longer than most of it.
func TestServer(t *testing.T) {
	server := real.Start(t)
	t.Run("Suite", func(t *testing.T) { suite(t, server) })
	t.Run("Errors", func(t *testing.T) { nativeErrors(t, server) })
	t.Run("Killed", func(t *testing.T) { killed(t, server) })
	t.Run("ResourceGroups", func(t *testing.T) { resourceGroups(t, server) })
	t.Run("Statistics", func(t *testing.T) { statistics(t, server) })
	t.Run("Abandoned", func(t *testing.T) { abandoned(t, server) })
	t.Run("Restart", func(t *testing.T) { restart(t, server) })
}

func suite(t *testing.T, server *real.Server) {
	sql, columns, values := typesFixture()
	enginetest.Exercise(t, enginetest.Fixture{
		Record: "trino", Engine: "Trino", Proof: "real server, version 476",
		Exceptions: map[string]string{
			"ReadsDoNotWrite": "Trino has no session that can't write, and a read-only transaction would send two statements more through the queue for each read",
		},
		Kind: trino.Kind, OwnNetwork: func(t *testing.T) { network(t, server) },
		Open: func(t *testing.T) engine.Engine {
			return open(t, trino.Config{Name: "c", URL: server.URL(), Database: "tpch.tiny", ResourceGroup: "global.user-pm", Canary: "SELECT count(*) FROM tpch.tiny.region"})
		},
		Dead: func(t *testing.T) engine.Engine {
			return open(t, trino.Config{Name: "dead", URL: "http://" + ports.Closed(t), DialTimeout: time.Second})
		},
		One: "SELECT count(*) FROM region WHERE regionkey = 1", Empty: "SELECT name FROM region WHERE regionkey = 100",
		NoResult: "CREATE TABLE IF NOT EXISTS memory.default.nothing (n bigint)",
		Types:    sql, Columns: columns, Values: values,
		Wrong: "SELECT * FROM no_such_table", Syntax: "SELEKT 1",
		Greedy: "SELECT count(*) FROM (SELECT DISTINCT comment, partkey FROM tpch.sf1.lineitem)", MemoryLimit: 20_000_000,
		Slow:  slow,
		Large: large, LargeRows: 300_000,
		Breaks: "SELECT n, rpad('', 200, 'x'), 1 / (n - 290000) FROM TABLE(sequence(1, 300000)) AS t(n)", BreaksClass: failure.Semantic,
		Echo:    "SELECT %d",
		Explain: "SELECT name FROM tpch.tiny.nation WHERE nationkey < 10", ExplainsRows: true,
		Setting: "SELECT current_timezone()", SettingName: "time_zone_id", SettingValue: "Asia/Tokyo",
	})
}
