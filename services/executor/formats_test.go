package executor_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/rows"
	"github.com/pointsman/pointsman/services/executor"
)

var update = flag.Bool("update", false, "write the golden files anew")

// types are an expression of each type that the embedded engine has.
var types = []string{
	"toInt8(-128)", "toInt16(-32768)", "toInt32(-2147483648)", "toInt64(-9223372036854775808)", "toInt128('-170141183460469231731687303715884105728')",
	"toInt256('-57896044618658097711785492504343953926634992332820282019728792003956564819968')",
	"toUInt8(255)", "toUInt16(65535)", "toUInt32(4294967295)", "toUInt64(18446744073709551615)", "toUInt128('340282366920938463463374607431768211455')",
	"toFloat32(0.1)", "toFloat64(0.1)", "nan", "-inf", "toFloat64(5e-324)",
	"toDecimal32('-0.01', 2)", "toDecimal64('123456789012345.678', 3)", "toDecimal128('12345678901234567890.123456789012345678', 18)",
	"toDecimal256('123456789012345678901234567890123456789012345678901234567890.5', 1)",
	"true", "toNullable(false)", "NULL", "NULL::Nullable(UInt64)", "NULL::Nullable(Decimal(9,2))", "NULL::Nullable(DateTime)",
	"''", "' a \"quoted\", line\nbreak'", "'é😀'", "toFixedString('abc', 3)", "toLowCardinality('low')", "NULL::LowCardinality(Nullable(String))",
	"'b'::Enum8('a' = 1, 'b' = 2)", "toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')", "toIPv4('192.168.0.1')", "toIPv6('2001:db8::1')",
	"toDate('2026-11-30')", "toDate32('1925-01-01')", "toDateTime('2026-03-29 01:30:00', 'UTC')", "toDateTime('2026-03-29 03:30:00', 'Europe/Berlin')",
	"toDateTime64('2026-11-30 09:15:00.123', 3, 'Asia/Kolkata')", "toDateTime64('2026-11-30 09:15:00.123456789', 9, 'UTC')",
	"[1, NULL]::Array(Nullable(Int64))", "[]::Array(UInt8)", "[['a'], []]::Array(Array(String))", "[toDate('2026-11-30')]",
	"(1, 'x', NULL)::Tuple(UInt8, String, Nullable(UInt64))", "(1, 2)::Tuple(a UInt64, b Int32)", "map('k', toUInt64(18446744073709551615))::Map(String, UInt64)",
	"[(toUInt64(1), 'x')]::Array(Tuple(UInt64, String))",
}

// TestTypesInEveryFormat runs every type through the engine, its driver, the executor and each format of a file.
func TestTypesInEveryFormat(t *testing.T) {
	small := chdbtest.Start(t, chdb.Config{Name: interactive})
	b := newBench(t, 1)
	b.servers = nil
	b.config = func(c *executor.Config) {
		c.Engines = []executor.EngineConfig{{Name: interactive, Kind: "clickhouse", URL: small.URL(), User: "default", Slots: 8}}
		c.Results.Inline = 0 // all are files
	}
	b.start()
	var sql strings.Builder
	for i, expr := range types {
		fmt.Fprintf(&sql, "%s %s AS c%d", []string{"SELECT", ","}[min(i, 1)], expr, i)
	}
	files := map[rows.Format][]byte{}
	var columns []event.Column
	for _, f := range []rows.Format{rows.NDJSON, rows.CSV, rows.Arrow, rows.JSON, ""} {
		id := "types-" + string(f)
		b.decide(b.route(id, sql.String(), func(d *event.RouteDecision) { d.Task.ResultFormat = string(f); d.TaskDigest = d.Task.Digest() }))
		o := b.outcome(id)
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		data, err := os.ReadFile(filepath.Join(b.results, o.Result.File))
		require.NoError(t, err)
		require.EqualValues(t, len(data), o.Result.Bytes)
		if f == rows.JSON || f == "" {
			require.Equal(t, string(rows.NDJSON), o.Result.Format, "a file of one array helps nobody")
			require.Equal(t, files[rows.NDJSON], data)
			continue
		}
		require.Equal(t, string(f), o.Result.Format)
		require.NotNil(t, o.Result.ExpiresAt)
		files[f], columns = data, o.Result.Columns
	}
	var golden bytes.Buffer
	var json []any
	require.NoError(t, rows.Read(bytes.NewReader(files[rows.NDJSON]), false, func(row []any) error { json = row; return nil }))
	r, err := ipc.NewReader(bytes.NewReader(files[rows.Arrow]))
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	for i, expr := range types {
		one := columns[i : i+1]
		line, err := rows.NewEncoder(one).Line(json[i : i+1])
		require.NoError(t, err)
		var field bytes.Buffer
		w, err := rows.NewWriter(rows.CSV, &field, []event.Column{{Name: "-", Type: one[0].Type}})
		require.NoError(t, err)
		require.NoError(t, w.Write(json[i:i+1]))
		require.NoError(t, w.Close())
		csv := strings.TrimSuffix(strings.TrimPrefix(field.String(), "-\r\n"), "\r\n")
		require.Contains(t, string(files[rows.CSV]), csv)
		col := r.RecordBatch().Column(i)
		value := "NULL"
		if !col.IsNull(0) {
			value = col.ValueStr(0)
		}
		fmt.Fprintf(&golden, "%s\n  type   %s\n  json   %s\n  csv    %s\n  arrow  %s: %s\n", expr, one[0].Type, bytes.TrimSpace(line), strings.ReplaceAll(csv, "\n", `\n`), col.DataType(), strings.ReplaceAll(value, "\n", `\n`))
	}
	path := filepath.Join("testdata", "types.golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, golden.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), golden.String())
}
