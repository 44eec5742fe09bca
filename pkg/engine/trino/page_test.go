package trino

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func pageFrom(text string) (results, error) {
	var r results
	err := pageOf(&r)(strings.NewReader(text))
	return r, err
}

func TestPages(t *testing.T) {
	varchar, bigint := signature{Raw: "varchar"}, signature{Raw: "bigint"}
	r, err := pageFrom(` {"id": "q", "data" : [ [1, "a,]\"\u00e9" ] , [null,"\ud83d\ude00"], [3, ""]], "nextUri": "x", "stats": {"state": "RUNNING", "data": [[9]]}} `)
	require.NoError(t, err)
	require.Equal(t, "q", r.ID)
	require.Equal(t, "RUNNING", r.Stats.State)
	var got [][]any
	for {
		more, err := r.Data.next()
		require.NoError(t, err)
		if !more {
			break
		}
		require.False(t, r.Data.empty())
		row, err := r.Data.values([]signature{bigint, varchar})
		require.NoError(t, err)
		got = append(got, row)
	}
	require.Equal(t, [][]any{{int64(1), "a,]\"é"}, {nil, "\U0001F600"}, {int64(3), ""}}, got)
	require.True(t, r.Data.empty())
	_, err = r.Data.values(nil)
	require.ErrorIs(t, err, errNoRow)

	r, err = pageFrom(`{"id": "q", "data": [[1], [2], [3]]}`)
	require.NoError(t, err)
	n := 0
	for more, err := r.Data.next(); more; more, err = r.Data.next() {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 3, n, "rows that nobody reads are skipped")

	for _, text := range []string{`{"id": "q"}`, `{"id": "q", "data": null}`, `{"id": "q", "data": []}`, `{}`} {
		r, err = pageFrom(text)
		require.NoError(t, err, text)
		require.True(t, r.Data.empty(), text)
	}
	for _, text := range []string{
		``, `[]`, `null`, `{`, `{"data": [}`, `{"data": 5}`, `{"data": "x"}`, `{"data": [[1]`, `{"data": [[1]]`, `{"data": [[1]]} x`, `{"data": [,]}`,
		`{"id": 5}`, `{"id": "q",}`, `{"a" 1}`, `{"data": [["x]]}`, strings.Repeat("[", 100_000), `{"data": ` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
	} {
		_, err = pageFrom(text)
		require.ErrorIs(t, err, errGarbage, "%.40s", text)
	}
}

// TestTheScannerAgreesWithEncodingJSON on texts with whatever may be in them.
func TestTheScannerAgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOf(rapid.SliceOfN(rapid.String(), 2, 2)).Draw(t, "rows")
		text, err := json.Marshal(map[string]any{"id": "q", "data": rows, "a": rows, "z": map[string]any{"data": 1}})
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "indent") {
			var b bytes.Buffer
			require.NoError(t, json.Indent(&b, text, " ", "\t"))
			text = b.Bytes()
		}
		var want struct{ Data [][]any }
		require.NoError(t, json.Unmarshal(text, &want))
		r, err := pageFrom(string(text))
		require.NoError(t, err)
		got := [][]any{}
		for more, err := r.Data.next(); more; more, err = r.Data.next() {
			require.NoError(t, err)
			row, err := r.Data.values([]signature{{Raw: "varchar"}, {Raw: "varchar"}})
			require.NoError(t, err)
			got = append(got, row)
		}
		if len(rows) > 0 {
			require.Equal(t, want.Data, got)
		}
	})
}

// FuzzPage feeds bytes to the reader of pages: it must not panic, and must take nothing that encoding/json does not.
func FuzzPage(f *testing.F) {
	for _, text := range []string{
		`{"id": "q", "data": [[1, "x", 0.5, null, [1, [2]], {"a": {"b": 1}}]]}`, `{"data": [[]]}`, `{"data": null}`, `{"id":"q","data":[["\u00e9\\"]]}`,
	} {
		f.Add([]byte(text))
	}
	types := []signature{{Raw: "bigint"}, {Raw: "varchar"}, {Raw: "double"}, {Raw: "json"}, {Raw: "array"}, {Raw: "map"}}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := pageFrom(string(text))
		if err != nil {
			return
		}
		whole := true
		for {
			more, err := r.Data.next()
			if whole = whole && err == nil; err != nil || !more {
				break
			}
			if _, err := r.Data.values(types); err != nil {
				whole = false
				break
			}
		}
		if whole {
			require.True(t, json.Valid(text), "read to its end without a complaint: %q", text)
		}
	})
}
