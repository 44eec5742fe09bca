package postgres

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

func TestValues(t *testing.T) {
	utc := func(y, mo, d, h, mi, s, ns int) time.Time {
		return time.Date(y, time.Month(mo), d, h, mi, s, ns, time.UTC)
	}
	for _, c := range []struct {
		oid  uint32
		text string
		want any
	}{
		{16, "t", true},
		{16, "f", false},
		{20, "-9223372036854775808", int64(math.MinInt64)},
		{20, "9223372036854775808", "9223372036854775808"}, // can't be, and is not cut
		{701, "-Infinity", math.Inf(-1)},
		{701, "1e-320", 1e-320},
		{1700, "0.10", json.Number("0.10")},
		{1700, "NaN", "NaN"},
		{1700, "Infinity", "Infinity"},
		{1184, "2026-11-30 09:15:00+00", utc(2026, 11, 30, 9, 15, 0, 0)},
		{1184, "2026-11-30 09:15:00.25+05:30", utc(2026, 11, 30, 3, 45, 0, 250_000_000)},
		{1184, "1890-01-01 00:00:00+00:53:28", utc(1889, 12, 31, 23, 6, 32, 0)},
		{1184, "10000-01-01 00:00:00+00", "10000-01-01 00:00:00+00"},
		{1184, "0044-03-15 00:00:00+00 BC", "0044-03-15 00:00:00+00 BC"},
		{1184, "-infinity", "-infinity"},
		{1114, "2026-11-30 09:15:00", "2026-11-30T09:15:00"},
		{1114, "0044-03-15 00:00:00 BC", "0044-03-15 00:00:00 BC"},
		{1114, "infinity", "infinity"},
		{1082, "2026-11-30", utc(2026, 11, 30, 0, 0, 0, 0)},
		{17, `\x`, "0x"},
		{17, `abc`, "abc"},
		{1016, "{}", []any{}},
		{1016, "{1,NULL,-3}", []any{int64(1), nil, int64(-3)}},
		{1016, "{{1},{2}}", []any{[]any{int64(1)}, []any{int64(2)}}},
		{1016, "[5:6]={1,2}", []any{int64(1), int64(2)}},
		{1009, `{"NULL",null,"a\"b\\c",""}`, []any{"NULL", "null", `a"b\c`, ""}},
		{1009, `{a`, "{a"}, // none: it stays text
		{1009, `{a}b`, "{a}b"},
		{1009, `{"a`, `{"a`},
		{1009, `{a,}`, `{a,}`},
		{1009, ``, ``},
	} {
		require.Equal(t, c.want, known[c.oid].value(c.text), "%s of %s", c.text, known[c.oid].name)
	}
}

func TestTypeNames(t *testing.T) {
	for _, c := range []struct {
		oid  uint32
		mod  int32
		want string
	}{
		{20, -1, "bigint"},
		{1016, -1, "bigint[]"},
		{1043, 24, "character varying(20)"},
		{1015, 24, "character varying(20)[]"},
		{1700, (10<<16 | 2) + 4, "numeric(10,2)"},
		{1700, (5<<16 | (-2 & 0x7ff)) + 4, "numeric(5,-2)"},
		{1700, -1, "numeric"},
		{1184, 3, "timestamp(3) with time zone"},
		{1185, 3, "timestamp(3) with time zone[]"},
		{1560, 8, "bit(8)"},
	} {
		require.Equal(t, c.want, known[c.oid].typeName(c.mod))
	}
}

// writeArray is the server's side of readArray.
func writeArray(b *strings.Builder, items []any) {
	b.WriteByte('{')
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		switch x := item.(type) {
		case nil:
			b.WriteString("NULL")
		case []any:
			writeArray(b, x)
		case string:
			b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(x) + `"`)
		}
	}
	b.WriteByte('}')
}

func TestArraysRoundTrip(t *testing.T) {
	item := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.String(), func(s string) any { return s }))
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOf(item).Draw(t, "items")
		if rapid.Bool().Draw(t, "nested") {
			items = []any{append([]any{}, items...), []any{"x"}}
		}
		var b strings.Builder
		writeArray(&b, items)
		got, ok := readArray(b.String(), known[25])
		require.True(t, ok, b.String())
		require.Equal(t, append([]any{}, items...), got)
	})
}

func FuzzArray(f *testing.F) {
	for _, s := range []string{"{}", "{1,2}", `{"a\"",NULL}`, "[0:1]={1,2}", "{{1},{2}}", "{", `{"`, `{"\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, ok := readArray(s, known[25]); ok && v == nil {
			t.Errorf("%q was read as nothing", s)
		}
	})
}

func TestWhatNeedsAStreamIsRefused(t *testing.T) {
	for sql, refused := range map[string]bool{
		"COPY t FROM STDIN": true,
		"-- a note\n/* and\none */ copy (SELECT 1)\nTO STDOUT (FORMAT csv)": true,
		"COPY t FROM '/data/t.csv'":                                         false,
		"SELECT 'COPY t FROM STDIN'":                                        false,
		"COPY t TO PROGRAM 'cat'":                                           false,
		"WITH copy AS (SELECT 1) SELECT from_stdin":                         false,
	} {
		require.Equal(t, refused, refuse(sql) != nil, sql)
	}
}

func TestPreparation(t *testing.T) {
	e := &Engine{}
	e.watchful.Store(watchYes)
	sql, params := e.preparation(engine.Query{
		ID: "a/1", Database: `odd"name`, MaxExecution: 1500 * time.Microsecond, ReadOnly: true,
		Settings: map[string]string{"TimeZone": "Asia/Kolkata", "work_mem": "64MB", "DateStyle": "German"},
	})
	require.Equal(t, strings.Count(sql, "set_config"), (len(params)-1)/2)
	last := map[string]string{}
	for i := 0; i+1 < len(params); i += 2 {
		last[string(params[i])] = string(params[i+1])
	}
	require.Equal(t, map[string]string{
		"TimeZone": "Asia/Kolkata", "work_mem": "64MB", "search_path": `"odd""name"`, "statement_timeout": "1", "default_transaction_read_only": "on",
		"client_connection_check_interval": "1000", "DateStyle": "ISO", "IntervalStyle": "postgres", "bytea_output": "hex",
		"extra_float_digits": "1", "application_name": wire.Name("a/1"),
	}, last, "a resource profile may choose the zone, and not what values are read by")

	_, params = e.preparation(engine.Query{ID: "a/1"})
	for _, p := range params {
		require.NotContains(t, []string{"statement_timeout", "default_transaction_read_only", "client_connection_check_interval"}, string(p))
	}
}

func TestOpenRefusesWhatIsNoAddress(t *testing.T) {
	for _, addr := range []string{"", "db", "db:", "db:postgres", "db:70000"} {
		_, err := Open(Config{Name: "p", Addr: addr})
		require.ErrorContains(t, err, "host:port", addr)
	}
	_, err := Open(Config{Name: "p", Addr: "db:5432", SSLMode: "maybe", Password: "hunter2"})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}
