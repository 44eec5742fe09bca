package querylog

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// agrees holds the reader to encoding/json: what that takes, it takes alike, but for bytes that are no UTF-8 and halves of
// surrogate pairs. Those are left to the lexer as they are.
func agrees(t *testing.T, line string) {
	var want struct {
		ID      json.RawMessage `json:"id"`
		SQL     *string         `json:"sql"`
		Dialect string          `json:"dialect"`
	}
	if !utf8.ValidString(line) || json.Unmarshal([]byte(line), &want) != nil {
		return
	}
	var o object
	err := o.parse(line)
	if want.SQL == nil {
		require.ErrorIs(t, err, errNoSQL, "%q", line)
		return
	}
	require.NoError(t, err, "%q", line)
	if strings.ContainsRune(*want.SQL+want.Dialect, utf8.RuneError) {
		return
	}
	require.Equal(t, *want.SQL, o.sql, "%q", line)
	require.Equal(t, want.Dialect, o.dialect, "%q", line)
	if len(want.ID) == 0 {
		require.Empty(t, o.id)
		return
	}
	require.JSONEq(t, string(want.ID), string(o.id), "%q", line)
}

var objects = []string{
	`{"sql":"SELECT 1"}`, `{"id":7,"sql":"a\n\"b\"\\ \u00e9\ud83d\ude00","dialect":"mysql"}`, ` { "sql" : "x" , "id" : "q" , "n" : -1.5e3, "b" : true, "z" : null } `,
	`{"sql":"\ud800"}`, `{"SQL":"x"}`, `{"sql":1}`, `{"sql":"x","a":{"b":1}}`, `{"sql":"x","a":[1]}`, `{}`, `{"sql":"x"} y`, `{"sql":"x",}`, `{"sql":"x"`, `{"sql":"a\/b\b\f\t\r"}`,
	`{"sql":"x","id":{"a":[1,"\u00e9"]}}`, `{"sql":"x","Sql":"y","sql":"z"}`, `{"sql":"x","sql":null}`, `{"sql":"x","dialect":null,"id":null}`, `{"\u0073ql":"x"}`, `{"sql":"x","id":007}`, `{"sql":"x","id":"\q"}`,
	`{"sql":"x","a":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + `}`,
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
	}
}

func TestUnknownEscapesStay(t *testing.T) {
	var o object
	require.NoError(t, o.parse(`{"id":1,"sql":"a rlike '\d+\\.'"}`))
	require.Equal(t, `a rlike '\d+\.'`, o.sql)
	require.Equal(t, "1", string(o.id))
	require.Error(t, o.parse(`{"id":"\q","sql":"x"}`), "the id is written as it came, so that it must be JSON")
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
