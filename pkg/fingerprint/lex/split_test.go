package lex

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		d         Dialect
		text      string
		delimiter string
		want      []string
		open      bool
	}{
		{MySQL, "a; b;c", ";", []string{"a", " b", "c"}, false},
		{MySQL, `SELECT ';' , "a;b", 'it\'s;' ; x`, ";", []string{`SELECT ';' , "a;b", 'it\'s;' `, " x"}, false},
		{MySQL, "a -- ; no\n; b # ;\n/* ; */ ; c", ";", []string{"a -- ; no\n", " b # ;\n/* ; */ ", " c"}, false},
		{MySQL, "a--;b", ";", []string{"a--", "b"}, false},
		{Trino, "a--;b\n;c", ";", []string{"a--;b\n", "c"}, false},
		{Trino, `'C:\' ; "x;y"; z`, ";", []string{`'C:\' `, ` "x;y"`, " z"}, false},
		{Postgres, "DO $x$ a; $y$ ; $x$; SELECT E'\\';'; b", ";", []string{"DO $x$ a; $y$ ; $x$", " SELECT E'\\';'", " b"}, false},
		{Postgres, "/* a /* ; */ ; */ x; y", ";", []string{"/* a /* ; */ ; */ x", " y"}, false},
		{Auto, `INSERT INTO t VALUES ('C:\', 'it\'s;'); x`, ";", []string{`INSERT INTO t VALUES ('C:\', 'it\'s;')`, " x"}, false},
		{MySQL, "CREATE PROCEDURE p() BEGIN a; b; END// c", "//", []string{"CREATE PROCEDURE p() BEGIN a; b; END", " c"}, false},
		{MySQL, "a; 'open", ";", []string{"a", " 'open"}, true},
		{MySQL, "a; /* open", ";", []string{"a", " /* open"}, true},
		{MySQL, "", ";", []string{""}, false},
		{MySQL, "a`;`b;'x''y;z'", ";", []string{"a`;`b", "'x''y;z'"}, false},
	} {
		var got []string
		for rest, more := c.text, true; more; {
			end, next, ok, open := Split(rest, c.d, c.delimiter)
			got = append(got, rest[:end])
			if rest, more = rest[next:], ok; !more {
				require.Equal(t, c.open, open, "%s: %s", c.d, c.text)
			}
		}
		require.Equal(t, c.want, got, "%s: %s", c.d, c.text)
	}
}
