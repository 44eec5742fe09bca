package shape_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
)

// grammar is what random statements are made of.
var grammar = []string{
	"SELECT", "FROM", "WHERE", "JOIN", "LEFT JOIN", "FULL JOIN", "CROSS JOIN", "ON", "USING (id)", "GROUP BY", "ORDER BY", "LIMIT", "OFFSET", "HAVING",
	"UNION ALL", "UNION", "EXCEPT", "WITH", "AS", "AS (", "RECURSIVE", "INSERT INTO", "OVERWRITE TABLE", "UPDATE", "DELETE FROM", "MERGE INTO", "SET", "VALUES (",
	"CREATE TABLE", "CREATE VIEW", "DROP TABLE", "ALTER TABLE", "SHOW", "EXPLAIN", "ANALYZE", "TRUNCATE", "CALL", "DESCRIBE", "COPY", "GRANT", "FOR UPDATE",
	"a", "b", "t", "u", "t.a", "c.s.t", "`q`", "\"Q\"", "x y", "count(*)", "f(a)", "count(DISTINCT a)", "(", ")", ",", ";", "*", "t.*", "=", "<", ">=", "<>", "||",
	"1", "'x'", "DATE '2026-01-01'", "?", "NULL", "TRUE", "IN (", "IN (1, 2)", "BETWEEN 1 AND 2", "LIKE 'a%'", "IS NULL", "IS NOT NULL", "NOT", "AND", "OR", "EXISTS (",
	"OVER (", "OVER w", "PARTITION BY a", "WINDOW w AS (", "CASE WHEN", "THEN", "ELSE", "END", "LATERAL VIEW explode(a) e AS k", "UNNEST(a)", "FILTER (WHERE a > 1)",
	"GROUPING SETS ((a), ())", "ROLLUP (a, b)", "FETCH FIRST 3 ROWS ONLY", "TABLESAMPLE BERNOULLI (10)", "FINAL", "PREWHERE", "QUALIFY", "INTERVAL 1 DAY", "now()",
	"ARRAY JOIN", "FOR VERSION AS OF 5", "[", "]", "->", "::date", "CAST(a AS date)", "INTO", "TABLE", "IF EXISTS", "PIVOT (", "MATCH_RECOGNIZE (", "ONLY", "DISTINCT",
}

func statement(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(grammar), 0, 30).Draw(t, "pieces"), " ")
}

func dialect(t *rapid.T) lex.Dialect {
	return lex.Dialect(rapid.IntRange(0, len(lex.Dialects())-1).Draw(t, "dialect"))
}

// holds is what must hold of every text.
func holds(t require.TestingT, sql string, d lex.Dialect) {
	s := shape.Of(sql, d)
	for _, table := range s.WriteTables {
		require.Contains(t, s.Tables, table, "%q", sql)
	}
	if len(s.WriteTables) > 0 && s.Effect != shape.SessionEffect {
		require.False(t, s.ReadOnly, "%q", sql)
	}
	raw, err := json.Marshal(s)
	require.NoError(t, err, "%q", sql)
	var back shape.Shape
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Empty(t, cmp.Diff(s, back), "%q", sql)
}

func TestEveryStatementHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { holds(t, statement(t), dialect(t)) })
}

// Literals' values, layout and comments change nothing of a shape but what is bound to literals.
func TestShapeIgnoresLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := dialect(t)
		pieces := rapid.SliceOfN(rapid.SampledFrom(grammar), 0, 30).Draw(t, "pieces")
		plain, spaced := strings.Join(pieces, " "), strings.Join(pieces, " /* x */\n\t")
		require.Empty(t, cmp.Diff(shape.Of(plain, d), shape.Of(spaced, d)), "%q", plain)
	})
}

func FuzzExtract(f *testing.F) {
	for i := range grammar {
		f.Add(grammar[i]+" "+grammar[(i*7+3)%len(grammar)]+" "+grammar[(i*11+5)%len(grammar)], uint8(i))
	}
	f.Fuzz(func(t *testing.T, sql string, d uint8) {
		holds(t, strings.ToValidUTF8(sql, "?"), lex.Dialect(d%uint8(len(lex.Dialects()))))
	})
}

// A write behind other statements, or behind the rows of COPY, is still a write.
func TestLaterStatementsCount(t *testing.T) {
	for _, sql := range []string{
		"SELECT 1; DELETE FROM t", "SET a = 1; TRUNCATE t", "EXPLAIN SELECT 1; DROP TABLE t", "DELETE FROM t; EXPLAIN SELECT 1",
		"SELECT 1;; ; INSERT INTO t VALUES (1)", "COPY u TO STDOUT; UPDATE t SET a = 1",
	} {
		s := shape.Of(sql, lex.Postgres)
		require.False(t, s.ReadOnly, sql)
		require.Contains(t, shape.Names(s.WriteTables), "t", sql)
	}
	s := shape.Of("COPY u FROM STDIN;\nx;y\n\\.\nDELETE FROM t", lex.Postgres)
	require.Equal(t, []string{"u", "t"}, shape.Names(s.WriteTables))
}
