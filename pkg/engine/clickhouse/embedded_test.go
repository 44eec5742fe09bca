package clickhouse_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/clickhouse"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/test/ports"
)

// typesRow has one column per type that the port has to carry; its values are at the edges. The embedded engine answers in a
// revision without time zones in the names of DateTime types.
var typesRow = []struct {
	sql, typ string
	want     any
}{
	{"toUInt8(255)", "UInt8", uint64(255)},
	{"toInt8(-128)", "Int8", int64(-128)},
	{"toInt64(-9223372036854775807 - 1)", "Int64", int64(-9223372036854775808)},
	{"toUInt64(18446744073709551615)", "UInt64", uint64(18446744073709551615)},
	{"toUInt64(9007199254740993)", "UInt64", uint64(9007199254740993)},
	{"toInt256('-57896044618658097711785492504343953926634992332820282019728792003956564819968')", "Int256", json.Number("-57896044618658097711785492504343953926634992332820282019728792003956564819968")},
	{"toUInt128('340282366920938463463374607431768211455')", "UInt128", json.Number("340282366920938463463374607431768211455")},
	{"toDecimal32('-1.25', 4)", "Decimal(9, 4)", json.Number("-1.2500")},
	{"toDecimal128('12345678901234567890.123456789012345678', 18)", "Decimal(38, 18)", json.Number("12345678901234567890.123456789012345678")},
	{"toFloat32(0.1)", "Float32", 0.1},
	{"toFloat64(1) / 3", "Float64", 1.0 / 3},
	{"true", "Bool", true},
	{"'x\\0\\n é'", "String", "x\x00\n é"},
	{"toFixedString('ab', 2)", "FixedString(2)", "ab"},
	{"toLowCardinality('low')", "LowCardinality(String)", "low"},
	{"CAST(NULL AS Nullable(Int64))", "Nullable(Int64)", nil},
	{"CAST(0 AS Nullable(Int64))", "Nullable(Int64)", int64(0)},
	{"CAST(NULL AS LowCardinality(Nullable(String)))", "LowCardinality(Nullable(String))", nil},
	{"toDate('2026-11-30')", "Date", time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)},
	{"toDate32('1925-01-01')", "Date32", time.Date(1925, 1, 1, 0, 0, 0, 0, time.UTC)},
	{"toDateTime('2026-11-30 09:15:00', 'UTC')", "DateTime", time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)},
	{"toDateTime64('2026-11-30 09:15:00.123456789', 9, 'Asia/Kolkata')", "DateTime64(9, 'Asia/Kolkata')", time.Date(2026, 11, 30, 3, 45, 0, 123456789, time.UTC)},
	{"toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')", "UUID", "61f0c404-5cb3-11e7-907b-a6006ad3dba0"},
	{"toIPv4('192.0.2.1')", "IPv4", "192.0.2.1"},
	{"toIPv6('2001:db8::1')", "IPv6", "2001:db8::1"},
	{"CAST('b' AS Enum8('a' = 1, 'b' = 2))", "Enum8('a' = 1, 'b' = 2)", "b"},
	{"[toInt64(9007199254740993), 2]", "Array(Int64)", []any{int64(9007199254740993), int64(2)}},
	{"CAST([] AS Array(Nullable(String)))", "Array(Nullable(String))", []any{}},
	{"[[CAST(NULL AS Nullable(UInt8)), 1]]", "Array(Array(Nullable(UInt8)))", []any{[]any{nil, uint64(1)}}},
	{"map('k', toUInt64(1))", "Map(String, UInt64)", map[string]any{"k": uint64(1)}},
	{"map(toInt32(7), ['v'])", "Map(Int32, Array(String))", map[string]any{"7": []any{"v"}}},
	{"tuple(toUInt8(1), 'two')", "Tuple(UInt8, String)", []any{uint64(1), "two"}},
	{"NULL", "Nullable(Nothing)", nil},
	{"toIntervalDay(3)", "IntervalDay", "3 Days"},
	{"CAST((1, 'x') AS Tuple(a Int64, b String))", "Tuple(a Int64, b String)", map[string]any{"a": int64(1), "b": "x"}},
}

func typesFixture() (sql string, columns []event.Column, values []any) {
	for i, c := range typesRow {
		name := "c" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		if i > 0 {
			sql += ", "
		}
		sql += c.sql + " AS " + name
		columns = append(columns, event.Column{Name: name, Type: c.typ})
		values = append(values, c.want)
	}
	return "SELECT " + sql, columns, values
}

func open(t *testing.T, cfg clickhouse.Config) engine.Engine {
	t.Helper()
	e, err := clickhouse.Open(cfg)
	require.NoError(t, err)
	return e
}

func TestExplainSaysWhatWouldBeRead(t *testing.T) {
	server := chdbtest.Start(t, chdb.Config{Name: "explains"})
	e := open(t, clickhouse.Config{Name: "c", Addrs: []string{server.Addr()}})
	t.Cleanup(func() { _ = e.Close() })
	for _, sql := range []string{
		"CREATE DATABASE lake", "CREATE TABLE lake.t (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS index_granularity = 1000",
		"INSERT INTO lake.t SELECT number FROM numbers(100000)",
	} {
		rows, err := e.Submit(t.Context(), engine.Query{ID: "explains/" + sql[:9], SQL: sql})
		require.NoError(t, err)
		require.NoError(t, rows.Close())
	}
	plan, err := e.(engine.Explainer).Explain(t.Context(), engine.Query{SQL: "SELECT count() FROM t WHERE n < 5 ; ", Database: "lake"})
	require.NoError(t, err)
	require.NotNil(t, plan.ReadRows)
	require.InDelta(t, 1000, *plan.ReadRows, 1000, "one granule, or two")
	require.Contains(t, plan.Text, "ReadFromMergeTree")
	plan, err = e.(engine.Explainer).Explain(t.Context(), engine.Query{SQL: "SELECT number FROM numbers(10)"})
	require.NoError(t, err)
	require.Nil(t, plan.ReadRows, "it is not known, and no zero")
}

func TestEmbeddedEngine(t *testing.T) {
	server := chdbtest.Start(t, chdb.Config{Name: "under-test"})
	sql, columns, values := typesFixture()
	enginetest.Exercise(t, enginetest.Fixture{
		Record: "clickhouse-embedded", Engine: "ClickHouse over HTTP", Proof: "embedded engine, version 26.7",
		Kind: clickhouse.Kind,
		Open: func(t *testing.T) engine.Engine {
			return open(t, clickhouse.Config{Name: "c", Addrs: []string{server.Addr()}, Canary: "SELECT count() FROM system.parts"})
		},
		Dead: func(t *testing.T) engine.Engine {
			return open(t, clickhouse.Config{Name: "dead", Addrs: []string{ports.Closed(t)}, DialTimeout: time.Second})
		},
		One: "SELECT toUInt8(1) AS n", Empty: "SELECT number FROM numbers(10) WHERE number > 100",
		Addr: server.Addr(),
		OpenAt: func(t *testing.T, addr string) engine.Engine {
			return open(t, clickhouse.Config{Name: "c", Addrs: []string{addr}, DialTimeout: time.Second})
		},
		CutAt:    20 << 20, // the first block alone has 7 MB
		NoResult: "CREATE TABLE IF NOT EXISTS nothing (n UInt8) ENGINE = Memory",
		Writes:   "INSERT INTO nothing SELECT 1", Written: "SELECT count() FROM nothing",
		Types: sql, Columns: columns, Values: values,
		Wrong: "SELECT * FROM no_such_table", Syntax: "SELEKT 1",
		Greedy: "SELECT groupArray(toString(number)) FROM numbers_mt(20000000)", MemoryLimit: 50_000_000,
		Slow:  "SELECT sum(sleepEachRow(0.1)) FROM numbers(300) SETTINGS max_block_size = 1",
		Large: "SELECT number, randomPrintableASCII(100) FROM numbers(1000000)", LargeRows: 1_000_000,
		Breaks:      "SELECT number, randomPrintableASCII(100), throwIf(number = 900000, 'the ice is thin') FROM numbers(1000000) SETTINGS max_threads = 1",
		BreaksClass: failure.Semantic,
		Echo:        "SELECT toUInt32(%d)",
		Explain:     "SELECT number FROM numbers(1000) LIMIT 10",
		Setting:     "SELECT value FROM system.settings WHERE name = 'max_block_size'", SettingName: "max_block_size", SettingValue: "4242",
	})
}
