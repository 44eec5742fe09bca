package rows_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/rows"
)

func write(t require.TestingT, f rows.Format, columns []event.Column, data ...[]any) []byte {
	var out bytes.Buffer
	w, err := rows.NewWriter(f, &out, columns)
	require.NoError(t, err)
	for _, row := range data {
		require.NoError(t, w.Write(row))
	}
	require.NoError(t, w.Close())
	require.EqualValues(t, out.Len(), w.Size(), "%s: the size is exact once it is closed", f)
	return out.Bytes()
}

// arrowText shows an Arrow stream's columns: type, then values.
func arrowText(t require.TestingT, data []byte) [][]string {
	r, err := ipc.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	defer r.Release()
	out := make([][]string, r.Schema().NumFields())
	for i := range out {
		out[i] = []string{r.Schema().Field(i).Type.String()}
	}
	for r.Next() {
		batch := r.RecordBatch()
		for i := range out {
			col := batch.Column(i)
			for j := range col.Len() {
				if col.IsNull(j) {
					out[i] = append(out[i], "NULL")
				} else {
					out[i] = append(out[i], col.ValueStr(j))
				}
			}
		}
	}
	require.NoError(t, r.Err())
	return out
}

var at = time.Date(2026, 11, 30, 9, 15, 0, 123456789, time.UTC)

// TestValues has each type with a value, and what it is in each format. Types are those of ClickHouse, PostgreSQL, MySQL and Trino.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		typ              string
		value            any
		json, csv, arrow string
		arrowType        string
	}{
		{"Int8", int64(-128), `-128`, `-128`, `-128`, "int8"},
		{"UInt8", uint64(255), `255`, `255`, `255`, "uint8"},
		{"Nullable(Int32)", int64(-1), `-1`, `-1`, `-1`, "int32"},
		{"Nullable(Int32)", nil, `null`, ``, `NULL`, "int32"},
		{"Int64", int64(9007199254740993), `"9007199254740993"`, `9007199254740993`, `9007199254740993`, "int64"},
		{"Int64", int64(math.MinInt64), `"-9223372036854775808"`, `-9223372036854775808`, `-9223372036854775808`, "int64"},
		{"UInt64", uint64(math.MaxUint64), `"18446744073709551615"`, `18446744073709551615`, `18446744073709551615`, "uint64"},
		{"Int128", json.Number("170141183460469231731687303715884105727"), `"170141183460469231731687303715884105727"`, `170141183460469231731687303715884105727`, `170141183460469231731687303715884105727`, "utf8"},
		{"int8", int64(9007199254740993), `"9007199254740993"`, `9007199254740993`, `9007199254740993`, "int64"},
		{"int4", int64(1), `1`, `1`, `1`, "int32"},
		{"BIGINT", int64(1), `"1"`, `1`, `1`, "int64"},
		{"UNSIGNED BIGINT", uint64(math.MaxUint64), `"18446744073709551615"`, `18446744073709551615`, `18446744073709551615`, "uint64"},
		{"integer", int64(1), `1`, `1`, `1`, "int32"},
		{"a new type", int64(1), `"1"`, `1`, `1`, "utf8"},
		{"Decimal(38, 18)", json.Number("12345678901234567890.123456789012345678"), `"12345678901234567890.123456789012345678"`, `12345678901234567890.123456789012345678`, `12345678901234567890.123456789012345678`, "decimal(38, 18)"},
		{"Decimal(9, 2)", json.Number("-0.01"), `"-0.01"`, `-0.01`, `-0.01`, "decimal(9, 2)"},
		{"decimal(9,2)", json.Number("1"), `"1"`, `1`, `1`, "decimal(9, 2)"},
		{"Decimal(76, 1)", json.Number("123456789012345678901234567890123456789012345678901234567890.5"), `"123456789012345678901234567890123456789012345678901234567890.5"`, `123456789012345678901234567890123456789012345678901234567890.5`, `123456789012345678901234567890123456789012345678901234567890.5`, "decimal256(76, 1)"},
		{"numeric", json.Number("NaN"), `"NaN"`, `NaN`, `NaN`, "utf8"},
		{"Float64", 0.1, `0.1`, `0.1`, `0.1`, "float64"},
		{"Float64", math.NaN(), `"NaN"`, `NaN`, `NaN`, "float64"},
		{"Float64", math.Inf(-1), `"-Infinity"`, `-Infinity`, `-Inf`, "float64"},
		{"Float64", 5e-324, `5e-324`, `5e-324`, `5e-324`, "float64"},
		{"String", "a<b> \" \n é", `"a<b> \" \n é"`, "\"a<b> \"\" \n é\"", "a<b> \" \n é", "utf8"},
		{"String", "", `""`, `""`, ``, "utf8"},
		{"String", " x", `" x"`, `" x"`, ` x`, "utf8"},
		{"String", "NULL", `"NULL"`, `NULL`, `NULL`, "utf8"},
		{"String", "a\xffb", "\"a\\ufffdb\"", "a\xffb", "a\ufffdb", "utf8"},
		{"String", "a\xff\xfe\xe2\x82b\ufffd", "\"a\\ufffd\\ufffd\\ufffd\\ufffdb\ufffd\"", "a\xff\xfe\xe2\x82b\ufffd", "a\ufffd\ufffd\ufffd\ufffdb\ufffd", "utf8"},
		{"LowCardinality(Nullable(String))", nil, `null`, ``, `NULL`, "utf8"},
		{"Bool", true, `true`, `true`, `true`, "bool"},
		{"Date", at, `"2026-11-30"`, `2026-11-30`, `2026-11-30`, "date32"},
		{"DateTime", at.Truncate(time.Second), `"2026-11-30T09:15:00Z"`, `2026-11-30T09:15:00Z`, `2026-11-30T09:15:00Z`, "timestamp[s, tz=UTC]"},
		{"DateTime64(9, 'Asia/Kolkata')", at, `"2026-11-30T09:15:00.123456789Z"`, `2026-11-30T09:15:00.123456789Z`, `2026-11-30T14:45:00.123456789+05:30`, "timestamp[ns, tz=Asia/Kolkata]"},
		{"timestamptz", at.Truncate(time.Microsecond), `"2026-11-30T09:15:00.123456Z"`, `2026-11-30T09:15:00.123456Z`, `2026-11-30T09:15:00.123456Z`, "timestamp[us, tz=UTC]"},
		{"timestamp(3) with time zone", at.Truncate(time.Millisecond), `"2026-11-30T09:15:00.123Z"`, `2026-11-30T09:15:00.123Z`, `2026-11-30T09:15:00.123Z`, "timestamp[ms, tz=UTC]"},
		{"timestamp with time zone", "2026-11-30T09:15:00Z", `"2026-11-30T09:15:00Z"`, `2026-11-30T09:15:00Z`, `2026-11-30T09:15:00Z`, "timestamp[us, tz=UTC]"},
		{"bigint[]", []any{int64(1)}, `["1"]`, `"[""1""]"`, `[1]`, "list<item: int64, nullable>"},
		{"array(integer)", []any{int64(1)}, `[1]`, `[1]`, `[1]`, "list<item: int32, nullable>"},
		{"DATETIME", "2026-11-30 09:15:00", `"2026-11-30 09:15:00"`, `2026-11-30 09:15:00`, `2026-11-30 09:15:00`, "utf8"},
		{"Array(Int64)", []any{int64(1), nil}, `["1",null]`, `"[""1"",null]"`, `[1,null]`, "list<item: int64, nullable>"},
		{"Array(Array(UInt8))", []any{[]any{uint64(1)}, []any{}}, `[[1],[]]`, `"[[1],[]]"`, `[[1],[]]`, "list<item: list<item: uint8, nullable>, nullable>"},
		{"JSON(a Int32, d Date)", map[string]any{"b": int64(9007199254740993), "t": at}, `{"b":"9007199254740993","t":"2026-11-30T09:15:00.123456789Z"}`, `"{""b"":""9007199254740993"",""t"":""2026-11-30T09:15:00.123456789Z""}"`, `{"b":"9007199254740993","t":"2026-11-30T09:15:00.123456789Z"}`, "utf8"},
		{"Tuple(UInt8, UInt64)", []any{uint64(1), uint64(2)}, `["1","2"]`, `"[""1"",""2""]"`, `["1","2"]`, "utf8"},
		{"Map(String, UInt64)", map[string]any{"b": uint64(2), "a": uint64(1)}, `{"a":"1","b":"2"}`, `"{""a"":""1"",""b"":""2""}"`, `{"a":"1","b":"2"}`, "utf8"},
	} {
		columns := []event.Column{{Name: "c", Type: c.typ}}
		line := write(t, rows.NDJSON, columns, []any{c.value})
		require.Equal(t, "["+c.json+"]\n", string(line), c.typ)
		require.True(t, json.Valid(line))
		require.Equal(t, "c\r\n"+c.csv+"\r\n", string(write(t, rows.CSV, columns, []any{c.value})), c.typ)
		require.Equal(t, [][]string{{c.arrowType, c.arrow}}, arrowText(t, write(t, rows.Arrow, columns, []any{c.value})), c.typ)

		// What is lent is written as what is given, also within a column that has no values of its kind.
		if l := lent(c.value); l != nil {
			for _, typ := range []string{c.typ, "String"} {
				for _, f := range []rows.Format{rows.NDJSON, rows.CSV, rows.Arrow} {
					columns := []event.Column{{Name: "c", Type: typ}}
					require.Equal(t, write(t, f, columns, []any{c.value}), write(t, f, columns, []any{l}), "%s %s as %s", c.typ, f, typ)
				}
			}
		}

		// What was kept as JSON and is read back is written as it would have been at once.
		var again []any
		require.NoError(t, rows.Read(bytes.NewReader(line), false, func(row []any) error { again = row; return nil }))
		if strings.Contains(c.csv, "\xff") {
			continue // JSON has no place for bytes that are no text
		}
		require.Equal(t, string(line), string(write(t, rows.NDJSON, columns, again)), c.typ)
		require.Equal(t, "c\r\n"+c.csv+"\r\n", string(write(t, rows.CSV, columns, again)), c.typ)
		require.Equal(t, [][]string{{c.arrowType, c.arrow}}, arrowText(t, write(t, rows.Arrow, columns, again)), c.typ)
	}
}

// lent is the value as an engine lends it, nil if it does not.
func lent(v any) any {
	switch x := v.(type) {
	case string:
		return &x
	case int64:
		return &x
	case uint64:
		return &x
	case float64:
		return &x
	case time.Time:
		return &x
	default:
		return nil
	}
}

func TestWhatDoesNotFitIsAnError(t *testing.T) {
	for _, c := range []struct {
		typ   string
		value any
	}{
		{"Int8", int64(128)},
		{"Int8", "x"},
		{"UInt8", int64(-1)},
		{"UInt8", uint64(256)},
		{"UInt64", json.Number("18446744073709551616")},
		{"Decimal(9, 2)", json.Number("0.001")},
		{"Decimal(3, 2)", json.Number("10.00")},
		{"Decimal(9, 2)", json.Number("NaN")},
		{"Bool", "true"},
		{"Date", "30.11.2026"},
		{"Array(UInt8)", uint64(1)},
		{"Array(UInt8)", []any{int64(-1)}},
		{"Float64", "much"},
		{"date", "infinity"},
		{"DateTime64(8)", time.Date(2299, 12, 31, 0, 0, 0, 0, time.UTC)}, // in nanoseconds, which Arrow counts to 2262
		{"String", struct{}{}},
	} {
		var out bytes.Buffer
		w, err := rows.NewWriter(rows.Arrow, &out, []event.Column{{Name: "price", Type: c.typ}})
		require.NoError(t, err)
		err = w.Write([]any{c.value})
		require.ErrorContains(t, err, "price", "%s %v", c.typ, c.value)
		if c.typ != "String" {
			require.ErrorIs(t, err, rows.ErrUnfit)
		}
		if l := lent(c.value); l != nil {
			require.ErrorIs(t, w.Write([]any{l}), rows.ErrUnfit, "%s %v", c.typ, c.value)
		}
	}
	for _, f := range []rows.Format{rows.NDJSON, rows.CSV} {
		w, err := rows.NewWriter(f, &bytes.Buffer{}, []event.Column{{Name: "x", Type: "String"}})
		require.NoError(t, err)
		require.Error(t, w.Write([]any{struct{}{}}))
	}
	_, err := rows.NewWriter(rows.JSON, &bytes.Buffer{}, nil)
	require.Error(t, err)
	_, err = rows.NewWriter("xlsx", &bytes.Buffer{}, nil)
	require.Error(t, err)
}

func TestNoRows(t *testing.T) {
	columns := []event.Column{{Name: "a,b", Type: "String"}, {Name: "", Type: "UInt64"}}
	require.Empty(t, write(t, rows.NDJSON, columns))
	require.Equal(t, "\"a,b\",\"\"\r\n", string(write(t, rows.CSV, columns)))
	require.Equal(t, [][]string{{"utf8"}, {"uint64"}}, arrowText(t, write(t, rows.Arrow, columns)))
}

func TestManyBatches(t *testing.T) {
	columns := []event.Column{{Name: "n", Type: "UInt64"}, {Name: "s", Type: "String"}}
	var data [][]any
	for i := range 20_000 {
		data = append(data, []any{uint64(i), strings.Repeat("x", i%300)})
	}
	r, err := ipc.NewReader(bytes.NewReader(write(t, rows.Arrow, columns, data...)))
	require.NoError(t, err)
	defer r.Release()
	n, batches := 0, 0
	for r.Next() {
		batches++
		col := r.RecordBatch().Column(0).(*array.Uint64)
		for i := range col.Len() {
			require.EqualValues(t, n, col.Value(i))
			n++
		}
	}
	require.Equal(t, len(data), n)
	require.Greater(t, batches, 2)
}

func TestReadFaults(t *testing.T) {
	none := func([]any) error { return nil }
	for _, text := range []string{"[1", "{}\n", "[1]\nx\n", "[1]]"} {
		require.Error(t, rows.Read(strings.NewReader(text), false, none), text)
	}
	for _, text := range []string{"", "{}", "[[1],2]", "[[1]"} {
		require.Error(t, rows.Read(strings.NewReader(text), true, none), text)
	}
	n := 0
	require.NoError(t, rows.Read(strings.NewReader("[[1],[2]]"), true, func([]any) error { n++; return nil }))
	require.Equal(t, 2, n)
	require.ErrorIs(t, rows.Read(strings.NewReader("[1]\n[2]\n"), false, func([]any) error { return bytes.ErrTooLarge }), bytes.ErrTooLarge)
}

// Any text passes through every format unchanged, and is never taken for NULL.
func TestTextPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		columns := []event.Column{{Name: "s", Type: "String"}}
		var again []any
		require.NoError(t, rows.Read(bytes.NewReader(write(t, rows.NDJSON, columns, []any{text})), false, func(row []any) error { again = row; return nil }))
		require.Equal(t, []any{text}, again)
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		require.NoError(t, enc.Encode([]any{text}))
		require.Equal(t, want.String(), string(write(t, rows.NDJSON, columns, []any{text})), "as encoding/json writes it")
		require.Equal(t, [][]string{{"utf8", text}}, arrowText(t, write(t, rows.Arrow, columns, []any{text})))
		field := strings.TrimSuffix(strings.TrimPrefix(string(write(t, rows.CSV, columns, []any{text})), "s\r\n"), "\r\n")
		require.NotEmpty(t, field)
		if inner, quoted := strings.CutPrefix(field, `"`); quoted {
			field = strings.ReplaceAll(strings.TrimSuffix(inner, `"`), `""`, `"`)
		}
		require.Equal(t, text, field)
	})
}

// Whatever bytes a text has, and whatever a float is, they are written as encoding/json writes them.
func TestAsTheStandardLibrary(t *testing.T) {
	want := func(t require.TestingT, v any) string {
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		require.NoError(t, enc.Encode([]any{v}))
		return out.String()
	}
	columns := []event.Column{{Name: "c", Type: "String"}}
	for b := range 256 { // each byte at each place in a word, after and before others
		for place := range 18 {
			text := strings.Repeat("x", place) + string([]byte{byte(b)}) + strings.Repeat("\"", b%2) + strings.Repeat("y", 17-place)
			require.Equal(t, want(t, text), string(write(t, rows.NDJSON, columns, []any{text})))
		}
	}
	for _, x := range []float64{0, math.Copysign(0, -1), 1e-6, 9.99e-7, 1e21, 9.99e20, 1e-10, -1e-9, 1e100, 5e-324, math.MaxFloat64, 123456789, 0.1} {
		require.Equal(t, want(t, x), string(write(t, rows.NDJSON, columns, []any{x})))
	}
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("a\"\\\n\xe2\x80\xa8\xa9\x7f<")))).Draw(t, "bytes"))
		require.Equal(t, want(t, text), string(write(t, rows.NDJSON, columns, []any{text})))
		x := rapid.Float64().Draw(t, "float")
		require.Equal(t, want(t, x), string(write(t, rows.NDJSON, columns, []any{x})))
		field := "c\r\n" + strings.TrimSuffix(strings.TrimPrefix(want(t, x), "["), "]\n") + "\r\n"
		require.Equal(t, field, string(write(t, rows.CSV, columns, []any{x})))
	})
}

// failing takes so many bytes and then no more.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	n := min(f.left, len(p))
	if f.left -= n; n < len(p) {
		return n, bytes.ErrTooLarge
	}
	return n, nil
}

// What can't be written is told before the end, however much is gathered; a row that can't be encoded leaves nothing.
func TestWriteFaults(t *testing.T) {
	columns := []event.Column{{Name: "c", Type: "String"}, {Name: "d", Type: "String"}}
	text := strings.Repeat("x", 1000)
	for _, f := range []rows.Format{rows.NDJSON, rows.CSV, rows.Arrow} {
		w, err := rows.NewWriter(f, &failing{left: 1 << 20}, columns)
		require.NoError(t, err)
		n := 0
		for ; err == nil && n < 10_000; n++ {
			err = w.Write([]any{text, "y"})
		}
		require.ErrorIs(t, err, bytes.ErrTooLarge, f)
		require.Less(t, n, 5000, f)

		if f == rows.Arrow {
			continue // it is no good any more, which its comment says
		}
		var out bytes.Buffer
		w, err = rows.NewWriter(f, &out, columns)
		require.NoError(t, err)
		require.NoError(t, w.Write([]any{"a", "b"}))
		size := w.Size()
		require.Error(t, w.Write([]any{"c", struct{}{}}))
		require.Equal(t, size, w.Size())
		require.NoError(t, w.Close())
		require.EqualValues(t, size, out.Len())
	}
}
