package trino

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func decoded(t *testing.T, text string, out any) {
	t.Helper()
	require.NoError(t, decode(out)(readerOf(text)))
}

func scan(text string) *scanner { return &scanner{text: []byte(text)} }

func TestValuesThatAreNoNumbersInJSON(t *testing.T) {
	for text, want := range map[string]float64{`"Infinity"`: math.Inf(1), `"-Infinity"`: math.Inf(-1), `0.1`: 0.1, `5E-324`: 5e-324, `1E308`: 1e308} {
		got, err := signature{Raw: "double"}.value(scan(text))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := signature{Raw: "real"}.value(scan(`"NaN"`))
	require.NoError(t, err)
	require.True(t, math.IsNaN(got.(float64)))
}

func TestValuesThatAreNoneOfTheirType(t *testing.T) {
	bigint := signature{Raw: "bigint"}
	row := signature{Raw: "row", Arguments: []argument{{"a", &bigint}, {"b", &bigint}}}
	for name, c := range map[string]struct {
		typ  signature
		json string
	}{
		"a text for a number":       {bigint, `"7"`},
		"a fraction for an integer": {bigint, `1.5`},
		"past 64 bits":              {bigint, `9223372036854775808`},
		"a number for a decimal":    {signature{Raw: "decimal"}, `1.5`},
		"no base64":                 {signature{Raw: "varbinary"}, `"!"`},
		"a word for a double":       {signature{Raw: "double"}, `"many"`},
		"a list for a map":          {signature{Raw: "map"}, `[]`},
		"a map for a list":          {signature{Raw: "array"}, `{}`},
		"a row that is too short":   {row, `[1]`},
		"inside a row":              {row, `[1, "2"]`},
		"a number for a date":       {signature{Raw: "date"}, `5`},
		"a row that is too long":    {row, `[1, 2, 3]`},
		"a row with a hole":         {row, `[1,,2]`},
		"a list that does not end":  {signature{Raw: "array"}, `[1, 2`},
		"a list with a comma more":  {signature{Raw: "array"}, `[1, 2,]`},
		"a text that does not end":  {signature{Raw: "varchar"}, `"x`},
		"an escape of nothing":      {signature{Raw: "varchar"}, `"\q"`},
		"a line break in a text":    {signature{Raw: "varchar"}, "\"a\nb\""},
		"infinity as a number":      {signature{Raw: "double"}, `1e999`},
		"a word":                    {signature{Raw: "double"}, `NaN`},
		"nothing":                   {signature{Raw: "varchar"}, ``},
		"half a null":               {signature{Raw: "varchar"}, `nul`},
		"a map without a value":     {signature{Raw: "map"}, `{"a"}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.typ.value(scan(c.json))
			require.Error(t, err)
		})
	}
}

func TestTypesThatNobodyKnows(t *testing.T) {
	got, err := signature{Raw: "quaternion"}.value(scan(`{"a": [9007199254740993, 0.10, "x", null, true]}`))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": []any{int64(9007199254740993), json.Number("0.10"), "x", nil, true}}, got)
}

func TestSignatures(t *testing.T) {
	var s signature
	decoded(t, `{"rawType":"map","arguments":[{"kind":"TYPE","value":{"rawType":"varchar","arguments":[{"kind":"LONG","value":2147483647}]}},
		{"kind":"TYPE","value":{"rawType":"row","arguments":[{"kind":"NAMED_TYPE","value":{"fieldName":{"name":"a"},"typeSignature":{"rawType":"bigint","arguments":[]}}},
		{"kind":"NAMED_TYPE","value":{"typeSignature":{"rawType":"date","arguments":[]}}}]}}]}`, &s)
	got, err := s.value(scan(`{"k": [7, "2026-11-30"]}`))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"k": []any{int64(7), time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)}}, got, "one field without a name makes it a list")
}

func TestInstants(t *testing.T) {
	utc := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339Nano, text)
		require.NoError(t, err)
		return at.UTC()
	}
	for text, want := range map[string]any{
		"2026-11-30 09:15:00 UTC":                 utc("2026-11-30T09:15:00Z"),
		"2026-11-30 09:15:00.123456789 +05:30":    utc("2026-11-30T03:45:00.123456789Z"),
		"2026-11-30 09:15:00.100000000000 -08:00": utc("2026-11-30T17:15:00.1Z"),
		"2026-11-30 09:15:00.123456789012 -08:00": "2026-11-30 09:15:00.123456789012 -08:00",
		"2026-03-29 01:59:59 Europe/Berlin":       utc("2026-03-29T00:59:59Z"),
		"2026-03-29 02:30:00 Europe/Berlin":       "2026-03-29 02:30:00 Europe/Berlin", // no clock showed it
		"2026-03-29 03:00:00 Europe/Berlin":       utc("2026-03-29T01:00:00Z"),
		"2026-10-25 02:30:00 Europe/Berlin":       "2026-10-25 02:30:00 Europe/Berlin", // all showed it twice
		"2026-10-25 03:00:00 Europe/Berlin":       utc("2026-10-25T02:00:00Z"),
		"2026-10-25 01:59:59.999 Europe/Berlin":   utc("2026-10-24T23:59:59.999Z"),
		"2026-04-05 01:45:00 Australia/Lord_Howe": "2026-04-05 01:45:00 Australia/Lord_Howe", // half an hour twice
		"2026-01-01 00:00:00 Moon/Tranquility":    "2026-01-01 00:00:00 Moon/Tranquility",
		"+10000-01-01 00:00:00 UTC":               "+10000-01-01 00:00:00 UTC",
		"nonsense":                                "nonsense",
		"":                                        "",
	} {
		require.Equal(t, want, instant(text), text)
	}
}

func TestInstantsAreExactOrTexts(t *testing.T) {
	names := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia", "Africa/Casablanca"}
	rapid.Check(t, func(t *rapid.T) {
		location, err := time.LoadLocation(rapid.SampledFrom(names).Draw(t, "zone"))
		require.NoError(t, err)
		at := time.Unix(rapid.Int64Range(-2e9, 4e9).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).In(location)
		text := at.Format("2006-01-02 15:04:05.000000000 ") + location.String()
		switch got := instant(text).(type) {
		case time.Time:
			require.True(t, got.Equal(at), "%s became %s", text, got)
		case string:
			require.Equal(t, text, got)
		}
	})
}

func TestDates(t *testing.T) {
	require.Equal(t, time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), date("0001-01-01"))
	require.Equal(t, "-0044-03-15", date("-0044-03-15"))
	require.Equal(t, "2026-11-30T09:15:00", wallClock("2026-11-30 09:15:00.000"))
	require.Equal(t, "2026-11-30T09:15:00.000000000001", wallClock("2026-11-30 09:15:00.000000000001"))
	require.Equal(t, "2026-11-30T10:00:00", wallClock("2026-11-30 10:00:00"))
}

func TestQuantities(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`"0.00ns"`: 0, `"297.76us"`: 297760, `"409.21ms"`: 409210 * time.Microsecond, `"1.50m"`: 90 * time.Second, `"2.00h"`: 2 * time.Hour, `"1.00d"`: 24 * time.Hour,
	} {
		var d duration
		decoded(t, text, &d)
		require.Equal(t, want, time.Duration(d), text)
	}
	for text, want := range map[string]int64{`"0B"`: 0, `"1205862400B"`: 1205862400, `"1.5kB"`: 1536, `"2GB"`: 2 << 30} {
		var s dataSize
		decoded(t, text, &s)
		require.Equal(t, want, int64(s), text)
	}
	for _, text := range []string{`""`, `"B"`, `"12"`, `"NaNB"`, `"1e999B"`, `"12 parsecs"`} {
		var s dataSize
		require.Error(t, decode(&s)(readerOf(text)), text)
	}
}

// TestUnknownIsNotZero is what a progress of nobody-knows looks like in Trino's JSON.
func TestUnknownIsNotZero(t *testing.T) {
	for text, want := range map[string]percent{
		`{"p": "NaN"}`: {}, `{"p": null}`: {}, `{}`: {}, `{"p": "Infinity"}`: {}, `{"p": 0}`: {true, 0}, `{"p": 41.5}`: {true, 41.5},
	} {
		var v struct {
			P percent `json:"p"`
		}
		decoded(t, text, &v)
		require.Equal(t, want, v.P, text)
	}
	s := stats("RUNNING", 25, 0, 0, 0)
	require.EqualValues(t, 25, *s.ReadRows)
	require.Nil(t, s.ReadBytes, "a connector that reports rows and no bytes does not count them")
	require.Nil(t, s.PeakMemoryBytes)
	s = stats("QUEUED", 0, 0, 0, 0)
	require.Nil(t, s.ReadRows, "what waits has read nothing that could be known")
	s = stats("FINISHED", 0, 0, 0, 100)
	require.Zero(t, *s.ReadRows)
	require.Zero(t, *s.ReadBytes)
	s = stats("FINISHED", 7, 4096, 1024, 100)
	require.EqualValues(t, 4096, *s.ReadBytes)
}
