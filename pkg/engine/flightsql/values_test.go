package flightsql

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// built makes an array of a type and hands its builder over.
func built[B array.Builder](t arrow.DataType, fill func(b B)) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, t).(B)
	fill(b)
	return b.NewArray()
}

// fromJSON makes an array of what a type's JSON is in Arrow.
func fromJSON(t *testing.T, typ arrow.DataType, text string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(text))
	require.NoError(t, err)
	return a
}

func bigInt(t *testing.T, text string) *big.Int {
	t.Helper()
	n, ok := new(big.Int).SetString(text, 10)
	require.True(t, ok)
	return n
}

func TestValues(t *testing.T) {
	wide := "-12345678901234567890123456789012345678901234567890"
	for _, c := range []struct {
		name  string
		array arrow.Array
		typ   string
		want  []any
	}{
		{"int64", fromJSON(t, arrow.PrimitiveTypes.Int64, `[9223372036854775807, null, -9223372036854775808]`), "Int64", []any{int64(math.MaxInt64), nil, int64(math.MinInt64)}},
		{"uint64", built(arrow.PrimitiveTypes.Uint64, func(b *array.Uint64Builder) { b.Append(math.MaxUint64); b.AppendNull() }), "UInt64", []any{uint64(math.MaxUint64), nil}},
		{"int8", fromJSON(t, arrow.PrimitiveTypes.Int8, `[-128]`), "Int8", []any{int64(-128)}},
		{"uint32", fromJSON(t, arrow.PrimitiveTypes.Uint32, `[4294967295]`), "UInt32", []any{uint64(math.MaxUint32)}},
		{"null", array.NewNull(2), "Null", []any{nil, nil}},
		{"bool", fromJSON(t, arrow.FixedWidthTypes.Boolean, `[true, false, null]`), "Bool", []any{true, false, nil}},
		{"float32", fromJSON(t, arrow.PrimitiveTypes.Float32, `[0.1]`), "Float32", []any{0.1}},
		{"float64", built(arrow.PrimitiveTypes.Float64, func(b *array.Float64Builder) { b.Append(math.Inf(-1)) }), "Float64", []any{math.Inf(-1)}},
		{"decimal128", built(&arrow.Decimal128Type{Precision: 38, Scale: 3}, func(b *array.Decimal128Builder) {
			b.Append(decimal128.FromI64(-5))
			b.Append(decimal128.FromBigInt(bigInt(t, "12345678901234567890123456789012345678")))
			b.AppendNull()
			b.Append(decimal128.FromI64(0))
		}), "decimal(38, 3)", []any{json.Number("-0.005"), json.Number("12345678901234567890123456789012345.678"), nil, json.Number("0.000")}},
		{"decimal128 of tens", built(&arrow.Decimal128Type{Precision: 5, Scale: -2}, func(b *array.Decimal128Builder) { b.Append(decimal128.FromI64(7)); b.Append(decimal128.FromI64(0)) }), "decimal(5, -2)", []any{json.Number("700"), json.Number("0")}},
		{"decimal256", built(&arrow.Decimal256Type{Precision: 76, Scale: 10}, func(b *array.Decimal256Builder) { b.Append(decimal256.FromBigInt(bigInt(t, wide))) }), "decimal(76, 10)", []any{json.Number("-1234567890123456789012345678901234567890.1234567890")}},
		{"decimal32", fromJSON(t, &arrow.Decimal32Type{Precision: 9, Scale: 2}, `["-1.25"]`), "decimal(9, 2)", []any{json.Number("-1.25")}},
		{"text", fromJSON(t, arrow.BinaryTypes.String, `["é", "", null]`), "String", []any{"é", "", nil}},
		{"large text", fromJSON(t, arrow.BinaryTypes.LargeString, `["x"]`), "String", []any{"x"}},
		{"text view", fromJSON(t, arrow.BinaryTypes.StringView, `["longer than what fits beside its length"]`), "String", []any{"longer than what fits beside its length"}},
		{"text that is none", built(arrow.BinaryTypes.String, func(b *array.StringBuilder) { b.Append("\xff\x00") }), "String", []any{"0xff00"}},
		{"binary", built(arrow.BinaryTypes.Binary, func(b *array.BinaryBuilder) { b.Append([]byte("A")); b.Append(nil); b.AppendNull() }), "Binary", []any{"0x41", "0x", nil}},
		{"fixed binary", built(&arrow.FixedSizeBinaryType{ByteWidth: 2}, func(b *array.FixedSizeBinaryBuilder) { b.Append([]byte{0, 255}) }), "Binary", []any{"0x00ff"}},
		{"date", fromJSON(t, arrow.FixedWidthTypes.Date32, `["1925-01-01", null]`), "Date", []any{time.Date(1925, 1, 1, 0, 0, 0, 0, time.UTC), nil}},
		{"a date past the calendar", built(arrow.FixedWidthTypes.Date32, func(b *array.Date32Builder) { b.Append(2_932_897) }), "Date", []any{"10000-01-01"}},
		{"instant", built(&arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Asia/Kolkata"}, func(b *array.TimestampBuilder) { b.Append(1_796_010_300_123_456_789) }), "timestamp(9) with time zone", []any{time.Unix(0, 1_796_010_300_123_456_789).UTC()}},
		{"local time", built(&arrow.TimestampType{Unit: arrow.Microsecond}, func(b *array.TimestampBuilder) { b.Append(1_796_010_300_250_000) }), "timestamp(6)", []any{time.Unix(1_796_010_300, 250_000_000).UTC().Format("2006-01-02T15:04:05.99")}},
		{"time of day", built(arrow.FixedWidthTypes.Time64us, func(b *array.Time64Builder) { b.Append(3_723_000_001) }), "time(6)", []any{"01:02:03.000001"}},
		{"duration", built(arrow.FixedWidthTypes.Duration_ms, func(b *array.DurationBuilder) { b.Append(1500) }), "Duration", []any{"1500 ms"}},
		{"list", fromJSON(t, arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[1, null], [], null]`), "array(Int64)", []any{[]any{int64(1), nil}, []any{}, nil}},
		{"fixed list", fromJSON(t, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int16), `[[1, 2]]`), "array(Int16)", []any{[]any{int64(1), int64(2)}}},
		{"nested", fromJSON(t, arrow.ListOf(arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true})), `[[{"a": "x"}, {"a": null}]]`), "array(row(a String))", []any{[]any{map[string]any{"a": "x"}, map[string]any{"a": nil}}}},
		{"struct with a name twice", fromJSON(t, arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int8}, arrow.Field{Name: "", Type: arrow.PrimitiveTypes.Int8}), `[{"a": 1, "": 2}]`), "row(a Int8, Int8)", []any{[]any{int64(1), int64(2)}}},
		{"map by day", fromJSON(t, arrow.MapOf(arrow.FixedWidthTypes.Date32, arrow.BinaryTypes.String), `[[{"key": "2026-11-30", "value": "v"}]]`), "map(Date, String)", []any{map[string]any{"2026-11-30": "v"}}},
		{"map by instant", fromJSON(t, arrow.MapOf(arrow.FixedWidthTypes.Timestamp_s, arrow.BinaryTypes.String), `[[{"key": "2026-11-30T00:00:00Z", "value": "v"}]]`), "map(timestamp(0) with time zone, String)", []any{map[string]any{"2026-11-30T00:00:00Z": "v"}}},
		{"map", fromJSON(t, arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String), `[[{"key": 7, "value": "v"}], null]`), "map(Int32, String)", []any{map[string]any{"7": "v"}, nil}},
		{"dictionary", fromJSON(t, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["b", null, "b", "a"]`), "String", []any{"b", nil, "b", "a"}},
		{"runs", fromJSON(t, arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64), `[5, 5, null]`), "Int64", []any{int64(5), int64(5), nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer c.array.Release()
			require.Equal(t, c.typ, typeName(c.array.DataType()))
			read, err := cellOf(c.array)
			require.NoError(t, err)
			got := []any{}
			for i := range c.array.Len() {
				got = append(got, read(i))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if n := c.array.Len(); n > 1 { // a part of an array begins elsewhere in its memory
				part := array.NewSlice(c.array, int64(n-1), int64(n))
				defer part.Release()
				read, err := cellOf(part)
				require.NoError(t, err)
				if diff := cmp.Diff(c.want[n-1], read(0)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestUnionsAreTheirValues(t *testing.T) {
	ids := fromJSON(t, arrow.PrimitiveTypes.Int8, `[1, 0, 1]`)
	numbers, words := fromJSON(t, arrow.PrimitiveTypes.Int64, `[0, 9007199254740993, 0]`), fromJSON(t, arrow.BinaryTypes.String, `["a", "", null]`)
	u, err := array.NewSparseUnionFromArraysWithFields(ids, []arrow.Array{numbers, words}, []string{"n", "w"})
	require.NoError(t, err)
	read, err := cellOf(u)
	require.NoError(t, err)
	require.Equal(t, []any{"a", int64(9007199254740993), nil}, []any{read(0), read(1), read(2)})
}

func TestHeaderNames(t *testing.T) {
	for name, want := range map[string]bool{
		"routing_queue": true, "x-tag": true, "a.b": true, "": false, "Queue": false, "authorization": false, "grpc-timeout": false,
		"pointsman-attempt-id": false, "secret-bin": false, "a b": false, ":path": false, "te": false, "team": true,
	} {
		require.Equal(t, want, headerName(name), name)
	}
}
