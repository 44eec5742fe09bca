package shape_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
)

// TestManyTables joins and drops many tables, each with a name of its own: time grows with the text and not faster. Four times
// the text may take 2.6 times as long for each doubling.
func TestManyTables(t *testing.T) {
	for name, text := range map[string]func(k int) string{
		"SELECT * FROM t0": func(k int) string { return fmt.Sprintf(" JOIN t%d", k) },
		"SELECT * FROM u0": func(k int) string { return fmt.Sprintf(", t%d a%d", k, k) },
		"DROP TABLE t0":    func(k int) string { return fmt.Sprintf(", t%d", k) },
	} {
		t.Run(name, func(t *testing.T) {
			sizes := []int{16_000, 64_000}
			best := make([]time.Duration, len(sizes))
			ratio := 0.0
			for round := range 20 {
				for i, n := range sizes {
					var b strings.Builder
					b.WriteString(name)
					for k := 1; k < n; k++ {
						b.WriteString(text(k))
					}
					start := time.Now()
					s := shape.Of(b.String(), lex.Trino)
					if took := time.Since(start); round == 0 || took < best[i] {
						best[i] = took
					}
					require.Len(t, s.Tables, n)
				}
				if ratio = float64(best[1]) / float64(best[0]); round >= 1 && ratio <= 2.6*2.6 {
					break
				}
			}
			require.LessOrEqual(t, ratio, 2.6*2.6, "%v", best)
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
		{lex.MySQL, "EXPLAIN DELETE FROM t; DELETE FROM t", []string{"t"}, []string{"t"}},
	} {
		s := shape.Of(c.sql, c.d)
		require.Equal(t, c.reads, shape.Names(s.Tables), c.sql)
		require.Equal(t, c.writes, shape.Names(s.WriteTables), c.sql)
	}
}
