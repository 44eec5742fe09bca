package flightsql_test

import (
	"encoding/json"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
)

// typesRow has one column per type that the embedded engine can put into Arrow, with values at the edges.
var typesRow = []struct {
	sql, typ string
	want     any
}{
	{"toUInt8(255)", "UInt8", uint64(255)},
	{"toInt8(-128)", "Int8", int64(-128)},
	{"toInt64(-9223372036854775807 - 1)", "Int64", int64(-9223372036854775808)},
	{"toUInt64(18446744073709551615)", "UInt64", uint64(18446744073709551615)},
	{"toUInt64(9007199254740993)", "UInt64", uint64(9007199254740993)},
	{"toDecimal32('-1.25', 4)", "decimal(9, 4)", json.Number("-1.2500")},
	{"toDecimal128('12345678901234567890.123456789012345678', 18)", "decimal(38, 18)", json.Number("12345678901234567890.123456789012345678")},
	{"toDecimal256('-1234567890123456789012345678901234567890.5', 20)", "decimal(76, 20)", json.Number("-1234567890123456789012345678901234567890.50000000000000000000")},
	{"toFloat32(0.1)", "Float32", 0.1},
	{"toFloat64(1) / 3", "Float64", 1.0 / 3},
	{"true", "Bool", true},
	{"'x\\0\\n é'", "String", "x\x00\n é"},
	{"unhex('ff00')", "String", "0xff00"},
	{"toLowCardinality('low')", "String", "low"},
	{"CAST(NULL AS Nullable(Int64))", "Int64", nil},
	{"CAST(0 AS Nullable(Int64))", "Int64", int64(0)},
	{"toDate32('1925-01-01')", "Date", time.Date(1925, 1, 1, 0, 0, 0, 0, time.UTC)},
	{"toDateTime64('2026-11-30 09:15:00.123456789', 9, 'Asia/Kolkata')", "timestamp(9) with time zone", time.Date(2026, 11, 30, 3, 45, 0, 123456789, time.UTC)},
	{"[toInt64(9007199254740993), 2]", "array(Int64)", []any{int64(9007199254740993), int64(2)}},
	{"CAST([] AS Array(Nullable(String)))", "array(String)", []any{}},
	{"[[CAST(NULL AS Nullable(UInt8)), 1]]", "array(array(UInt8))", []any{[]any{nil, uint64(1)}}},
	{"map('k', toUInt64(1))", "map(String, UInt64)", map[string]any{"k": uint64(1)}},
	{"CAST((1, 'x') AS Tuple(a Int64, b String))", "row(a Int64, b String)", map[string]any{"a": int64(1), "b": "x"}},
}

func typesFixture() (sql string, columns []event.Column, values []any) {
	for i, c := range typesRow {
		name := "c" + string(rune('a'+i))
		if i > 0 {
			sql += ", "
		}
		sql += c.sql + " AS " + name
		columns = append(columns, event.Column{Name: name, Type: c.typ})
		values = append(values, c.want)
	}
	return "SELECT " + sql, columns, values
}
