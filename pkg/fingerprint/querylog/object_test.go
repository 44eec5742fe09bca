package querylog

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// agrees holds the reader by hand to encoding/json: what it takes, it takes alike. Bytes that are no UTF-8 are left to the
// lexer, which knows what to do with them.
func agrees(t *testing.T, line string) {
	var o object
	if !utf8.ValidString(line) || !o.plain(line) || !json.Valid([]byte(line)) {
		return
	}
	var want struct {
		ID      json.RawMessage `json:"id"`
		SQL     string          `json:"sql"`
		Dialect string          `json:"dialect"`
	}
	require.NoError(t, json.Unmarshal([]byte(line), &want), "%q", line)
	require.Equal(t, want.SQL, o.sql, "%q", line)
	require.Equal(t, want.Dialect, o.dialect, "%q", line)
	require.Equal(t, string(want.ID), o.id, "%q", line)
}

var objects = []string{
	`{"sql":"SELECT 1"}`, `{"id":7,"sql":"a\n\"b\"\\ \u00e9\ud83d\ude00","dialect":"mysql"}`, ` { "sql" : "x" , "id" : "q" , "n" : -1.5e3, "b" : true, "z" : null } `,
	`{"sql":"\ud800"}`, `{"SQL":"x"}`, `{"sql":1}`, `{"sql":"x","a":{"b":1}}`, `{"sql":"x","a":[1]}`, `{}`, `{"sql":"x"} y`, `{"sql":"x",}`, `{"sql":"x"`, `{"sql":"a\/b\b\f\t\r"}`,
}

func TestObjectsAreReadAsEncodingJSONReadsThem(t *testing.T) {
	for _, line := range objects {
		agrees(t, line)
		var o object
		err := o.parse(line)
		var want struct {
			SQL *string `json:"sql"`
		}
		if json.Unmarshal([]byte(line), &want) != nil || want.SQL == nil {
			require.Error(t, err, line)
			continue
		}
		require.NoError(t, err, line)
		require.Equal(t, *want.SQL, o.sql)
	}
}

func TestLinesThatAreNoObjectAreToldPlainly(t *testing.T) {
	for line, want := range map[string]string{
		`["SELECT 1"]`:             "the line must hold a JSON object, but holds a JSON array",
		`"SELECT 1"`:               "the line must hold a JSON object, but holds a JSON string",
		`4111222233334444`:         "the line must hold a JSON object, but holds a JSON number",
		`{"sql":4111}`:             "sql must be a JSON string, but is a JSON number",
		`{"sql":"x","dialect":[]}`: "dialect must be a JSON string, but is a JSON array",
		`null`:                     "no sql in the object",
	} {
		var o object
		require.EqualError(t, o.parse(line), want, line)
	}
}

func FuzzObject(f *testing.F) {
	for _, line := range objects {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) { agrees(t, line) })
}
