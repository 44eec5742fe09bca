package shape_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
)

// TestManyTables joins and drops many tables, each with a name of its own; package tidbast tests that time grows with them.
func TestManyTables(t *testing.T) {
	for name, text := range map[string]func(k int) string{
		"SELECT * FROM t0": func(k int) string { return fmt.Sprintf(" JOIN t%d", k) },
		"SELECT * FROM u0": func(k int) string { return fmt.Sprintf(", t%d a%d", k, k) },
		"DROP TABLE t0":    func(k int) string { return fmt.Sprintf(", t%d", k) },
		"SELECT 1 FROM t0": func(k int) string { return fmt.Sprintf(" RIGHT JOIN t%d USING (a)", k) },
		"TABLE t0":         func(k int) string { return fmt.Sprintf("; UPDATE t%d SET a = 1", k) },
		"WITH x AS (SELECT 1 FROM t0)": func(k int) string {
			return fmt.Sprintf(", x%d AS (SELECT 1 FROM t%d JOIN x%d)", k, k, k-1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 30_000
			var b strings.Builder
			b.WriteString(name)
			for k := 1; k < n; k++ {
				b.WriteString(text(k))
			}
			require.GreaterOrEqual(t, len(shape.Of(b.String(), lex.Trino).Tables), 20_000)
		})
	}
}

// What a statement reads and writes where names are easily taken for something else.
func TestTablesOfHardNames(t *testing.T) {
	for _, c := range []struct {
		d             lex.Dialect
		sql           string
		reads, writes []string
	}{
		{lex.MySQL, "WITH t AS (SELECT * FROM s) DELETE FROM t WHERE i IN (SELECT i FROM t)", []string{"s", "t"}, []string{"t"}},
		{lex.MySQL, "WITH t AS (SELECT * FROM s) UPDATE t SET a = 1", []string{"s", "t"}, []string{"t"}},
		{lex.MySQL, "WITH c AS (SELECT * FROM s) UPDATE t JOIN c ON t.a = c.a SET t.b = 1", []string{"s", "t"}, []string{"t"}},
		{lex.Postgres, "WITH t AS (SELECT * FROM s) DELETE FROM t USING u WHERE t.i = u.i", []string{"s", "t", "u"}, []string{"t"}},
		{lex.Postgres, "WITH t AS (SELECT * FROM s) UPDATE t SET a = 1 FROM t x", []string{"s", "t"}, []string{"t"}},
		{lex.Postgres, "WITH t AS (SELECT * FROM s) MERGE INTO t USING t x ON t.a = x.a WHEN MATCHED THEN DELETE", []string{"s", "t"}, []string{"t"}},
		{lex.Trino, "SELECT * FROM TABLE(f(input => TABLE(o)))", []string{"o"}, []string{}},
		{lex.Trino, "SELECT * FROM TABLE(f(TABLE(c.s.o) t PARTITION BY x ORDER BY y, 5)) z JOIN u ON z.a = u.a", []string{"c.s.o", "u"}, []string{}},
		{lex.Trino, "SELECT * FROM TABLE(f(input => TABLE(SELECT * FROM o), second => TABLE(p) PARTITION BY x))", []string{"p", "o"}, []string{}},
		{lex.Trino, "WITH o AS (SELECT * FROM s) SELECT * FROM TABLE(f(input => TABLE(o))) WHERE a = 1", []string{"s"}, []string{}},
		{lex.Spark, "SELECT * FROM f(TABLE(o))", []string{"o"}, []string{}},
		{lex.MySQL, "EXPLAIN DELETE FROM t; DELETE FROM t", []string{"t"}, []string{"t"}},
	} {
		s := shape.Of(c.sql, c.d)
		require.Equal(t, c.reads, shape.Names(s.Tables), c.sql)
		require.Equal(t, c.writes, shape.Names(s.WriteTables), c.sql)
	}
}

// UPDATE and DELETE that name each of many joined tables write all of them.
func TestManyTargets(t *testing.T) {
	list := func(n int, format string) string {
		parts := make([]string, n)
		for k := range parts {
			parts[k] = fmt.Sprintf(format, k)
		}
		return strings.Join(parts, ", ")
	}
	for name, text := range map[string]func(n int) string{
		"update": func(n int) string { return "UPDATE " + list(n, "t%d") + " SET " + list(n, "t%d.a = 1") },
		"delete": func(n int) string { return "DELETE " + list(n, "t%d") + " FROM " + list(n, "t%d") },
	} {
		t.Run(name, func(t *testing.T) {
			const n = 16_000
			require.Len(t, shape.Of(text(n), lex.Doris).WriteTables, n)
		})
	}
}

func TestBoundsOfUnusualSpelling(t *testing.T) {
	for _, c := range []struct {
		d             lex.Dialect
		sql           string
		limit, offset string
	}{
		{lex.Trino, "SELECT a FROM t ORDER BY a FETCH FIRST ROW ONLY", "1", "-"},
		{lex.Postgres, "SELECT a FROM t OFFSET 2 ROWS FETCH NEXT ROW ONLY", "1", "2"},
		{lex.ANSI, "SELECT a FROM t OFFSET 2 FETCH FIRST ROW ONLY", "1", "2"},
		{lex.MySQL, "SELECT a FROM t FETCH FIRST ROW ONLY", "1", "-"},
		{lex.Trino, "SELECT a FROM t FETCH FIRST 7 ROWS ONLY", "7", "-"},
		{lex.Postgres, "SELECT a FROM t LIMIT 1e3 OFFSET 2.0", "1000", "2"},
		{lex.Postgres, "SELECT a FROM t LIMIT 1.5", "-", "-"},
		{lex.Postgres, "SELECT a FROM t LIMIT 1e300", "-", "-"},
		{lex.Postgres, "SELECT a FROM t LIMIT 9007199254740993", "9007199254740993", "-"},
	} {
		s := shape.Of(c.sql, c.d)
		show := func(n *int64) string {
			if n == nil {
				return "-"
			}
			return fmt.Sprint(*n)
		}
		require.Equal(t, c.limit, show(s.Limit), c.sql)
		require.Equal(t, c.offset, show(s.Offset), c.sql)
	}
}

func TestExistsOnlyReads(t *testing.T) {
	for sql, tables := range map[string][]string{
		"EXISTS TABLE t": {"t"}, "EXISTS d.t": {"d.t"}, "EXISTS TEMPORARY TABLE t FORMAT JSON": {"t"}, "EXISTS DICTIONARY x": {"x"}, "EXISTS DATABASE d": {},
	} {
		s := shape.Of(sql, lex.ClickHouse)
		require.Equal(t, shape.Show, s.Statement, sql)
		require.True(t, s.ReadOnly, sql)
		require.Equal(t, tables, shape.Names(s.Tables), sql)
		require.Empty(t, s.WriteTables, sql)
	}
}
