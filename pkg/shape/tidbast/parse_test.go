package tidbast_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/shape/tidbast"
)

func TestSourceSaysWhatWasRead(t *testing.T) {
	for _, c := range []struct {
		d    lex.Dialect
		sql  string
		want shape.Source
	}{
		{lex.MySQL, "SELECT a FROM t WHERE b IN (1, 2, 3) LIMIT 5, 10", shape.FromAST},
		{lex.Doris, "INSERT INTO t (a) VALUES (1), (2)", shape.FromAST},
		{lex.Trino, "SELECT a FROM t WHERE b = 1", shape.FromAST},
		{lex.Trino, "SELECT a FROM c.s.t WHERE b = DATE '2026-01-01'", shape.FromShim},
		{lex.Trino, `SELECT "a" FROM "T" OFFSET 5 ROWS FETCH NEXT 10 ROWS ONLY`, shape.FromShim},
		{lex.Spark, "SELECT a, sum(b) FROM t GROUP BY ROLLUP (a)", shape.FromShim},
		{lex.Trino, "SELECT TRY_CAST(a AS bigint) FROM t", shape.FromShim},
		{lex.Trino, "SELECT transform(a, x -> x + 1) FROM t", ""},
		{lex.Postgres, "SELECT a::int FROM t", ""},
		{lex.Trino, `SELECT "a" FROM "T"`, shape.FromAST},
		{lex.MySQL, "SELECT 'open", shape.FromAST},
		{lex.ClickHouse, "INSERT INTO t VALUES (1) (now()), (2)", shape.FromAST},
		{lex.MySQL, "SELECT 1; SELECT 2", ""},
		{lex.MySQL, "DROP TABLE t", ""},
	} {
		got := tidbast.Parse(c.sql, c.d)
		if c.want == "" {
			require.Nil(t, got, "%s: %s", c.d, c.sql)
			continue
		}
		require.NotNil(t, got, "%s: %s", c.d, c.sql)
		require.Equal(t, c.want, got.Unbound().Source, "%s: %s", c.d, c.sql)
	}
}

// What is too large for recursion never reaches the parser.
func TestGuardRefusesWhatIsTooLarge(t *testing.T) {
	require.Nil(t, tidbast.Parse("SELECT "+strings.Repeat("(", 300)+"1"+strings.Repeat(")", 300), lex.MySQL))
	require.Nil(t, tidbast.Parse("SELECT 1 FROM t WHERE a = 1"+strings.Repeat(" OR a = b", 10_000), lex.MySQL))
	require.NotNil(t, tidbast.Parse("SELECT 1 FROM t WHERE a = 1"+strings.Repeat(" OR a = b", 2_000), lex.MySQL))
}

// The literals of a text never reach the parser, and so not its errors either.
func TestEscapeOfLike(t *testing.T) {
	sql := `SELECT a FROM t WHERE b LIKE 'x!%y%' ESCAPE '!'`
	ok, diff := differ(sql, lex.MySQL)
	require.True(t, ok)
	require.Empty(t, diff)
}

func FuzzParse(f *testing.F) {
	f.Add("SELECT a FROM c.s.t WHERE b = DATE '2026-01-01' OFFSET 5 LIMIT 3", uint8(lex.Trino))
	f.Add("WITH a AS (SELECT 1) SELECT CAST(x AS decimal(10, 2)) FROM a GROUP BY ROLLUP (x, y)", uint8(lex.Spark))
	f.Add("DELETE a FROM a JOIN b USING (id) WHERE b.x LIKE 'a%' ESCAPE '!'", uint8(lex.MySQL))
	f.Fuzz(func(t *testing.T, sql string, d uint8) {
		dialect := lex.Dialect(d % uint8(len(lex.Dialects())))
		tree := tidbast.Parse(sql, dialect)
		if tree == nil {
			return
		}
		var spans lex.Spans
		_, r := shape.Extract(sql, dialect, &spans)
		var b shape.Binding
		tree.Bind(&b, sql, dialect, r, &spans)
		_ = tree.Shape(&b, sql)
	})
}
