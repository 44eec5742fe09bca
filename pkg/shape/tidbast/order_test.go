package tidbast_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/shape/tidbast"
)

// with is the text with another literal in place of each of its own.
func with(sql string, spans *lex.Spans, literal string) string {
	var b strings.Builder
	at := 0
	for _, s := range spans.List {
		if int(s.Off) < at {
			return sql
		}
		b.WriteString(sql[at:s.Off] + " " + literal + " ")
		at = int(s.End)
	}
	return b.String() + sql[at:]
}

func bound(t *shape.Template, sql string, d lex.Dialect) shape.Shape {
	var spans lex.Spans
	r := lex.Run(sql, d, lex.Key{}, &spans)
	var b shape.Binding
	t.Bind(&b, sql, d, r, &spans)
	return t.Shape(&b, sql)
}

// A template that one text leaves behind serves all texts that differ from it in literals. It must say of each what it
// would say had that one come first.
func TestTemplatesDoNotDependOnLiterals(t *testing.T) {
	read := func(sql string, d lex.Dialect) *shape.Template {
		var spans lex.Spans
		made, _ := shape.Extract(sql, d, &spans)
		return made
	}
	compared, trees := 0, 0
	check := func(raw []byte) {
		var c struct{ SQL, Dialect string }
		require.NoError(t, json.Unmarshal(raw, &c))
		d, err := lex.ParseDialect(c.Dialect)
		require.NoError(t, err)
		if len(c.SQL) > 4000 {
			return
		}
		var spans lex.Spans
		own := lex.Run(c.SQL, d, lex.Key{}, &spans)
		for _, literal := range []string{"NULL", "5", "'x'", "TRUE", "-1.5", "'2026-01-01'", "?"} {
			other := with(c.SQL, &spans, literal)
			if lex.Run(other, d, lex.Key{}, nil).Key != own.Key {
				continue
			}
			compared++
			require.Equal(t, bound(read(other, d), other, d), bound(read(c.SQL, d), other, d), "%s: %s | %s", d, c.SQL, other)
			first, second := tidbast.Parse(c.SQL, d), tidbast.Parse(other, d)
			require.Equal(t, first == nil, second == nil, "%s: %s | %s", d, c.SQL, other)
			if first == nil {
				continue
			}
			trees++
			require.Equal(t, bound(second, other, d), bound(first, other, d), "%s: %s | %s", d, c.SQL, other)
		}
	}
	for _, name := range []string{"traffic", "cases", "shapes"} {
		lines(t, "../../../test/corpus/fingerprint/"+name+".jsonl", check)
	}
	require.Greater(t, compared, 3000)
	require.Greater(t, trees, 1000)
}
