package tidbast_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/shape/tidbast"
)

// differ compares the two readers on one text. It says whether both read it, and how they differ.
func differ(sql string, d lex.Dialect) (bool, string) {
	tree := tidbast.Parse(sql, d)
	if tree == nil {
		return false, ""
	}
	var spans lex.Spans
	tokens, r := shape.Extract(sql, d, &spans)
	return true, cmp.Diff(essence(tokens, sql, d, r, &spans), essence(tree, sql, d, r, &spans))
}

// essence is a bound shape without what the readers need not agree on: where it comes from, the command's spelling, how
// often an operator counts, and how an expression as a partition key is printed.
func essence(t *shape.Template, sql string, d lex.Dialect, r lex.Result, spans *lex.Spans) shape.Shape {
	var b shape.Binding
	t.Bind(&b, sql, d, r, spans)
	s := t.Shape(&b, sql)
	s.Source, s.Command, s.Partial = "", "", false
	s.Regex, s.JSON = min(s.Regex, 1), min(s.JSON, 1)
	for i := range s.Windows {
		for k, key := range s.Windows[i].PartitionBy {
			if !plain(key) {
				s.Windows[i].PartitionBy[k] = "?"
			}
		}
	}
	return s
}

func plain(key string) bool {
	for _, c := range key {
		if c < 0x80 && c != '.' && c != '_' && c != '$' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return key != "?"
}

func lines(t testing.TB, path string, each func([]byte)) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<22)
	for scan.Scan() {
		each(scan.Bytes())
	}
	require.NoError(t, scan.Err())
}

func TestReadersAgree(t *testing.T) {
	read, all := 0, 0
	check := func(raw []byte) {
		var c struct{ SQL, Dialect string }
		require.NoError(t, json.Unmarshal(raw, &c))
		d, err := lex.ParseDialect(c.Dialect)
		require.NoError(t, err)
		all++
		ok, diff := differ(c.SQL, d)
		if ok {
			read++
		}
		require.Empty(t, diff, "%s: %s", c.Dialect, c.SQL)
	}
	lines(t, "../../../test/corpus/fingerprint/traffic.jsonl", check)
	t.Logf("the parser read %d of %d of what comes", read, all)
	require.Greater(t, read, all*3/5)
	lines(t, "../../../test/corpus/fingerprint/cases.jsonl", check)
	lines(t, "../../../test/corpus/fingerprint/shapes.jsonl", check)
	t.Logf("the parser read %d of %d, most of them made to be hard", read, all)
	require.Greater(t, read, 450)
}
