package tidbast_test

import (
	"maps"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/shape/tidbast"
)

// perDoubling is how much longer twice the text may take.
const perDoubling = 2.6

// text makes a text of about n bytes.
type text func(n int) string

// repeat repeats one unit. A # in it is the number of the repetition, #- that of the one before.
func repeat(prefix, unit, suffix string) text {
	return func(n int) string {
		var b strings.Builder
		b.WriteString(prefix)
		for k := 1; b.Len() < n; k++ {
			s := strings.ReplaceAll(unit, "#-", strconv.Itoa(k-1))
			b.WriteString(strings.ReplaceAll(s, "#", strconv.Itoa(k)))
		}
		b.WriteString(suffix)
		return b.String()
	}
}

// nest opens and closes as often.
func nest(prefix, open, core, closing, suffix string) text {
	return func(n int) string {
		k := n / (len(open) + len(closing))
		return prefix + strings.Repeat(open, k) + core + strings.Repeat(closing, k) + suffix
	}
}

// both is one text behind the other.
func both(a, b text) text { return func(n int) string { return a(n/2) + b(n/2) } }

// growing are texts of one part over and over, in every place where a reader might look at all that it has seen for each
// part that it sees.
var growing = map[string]text{
	"open brackets": repeat("SELECT ", "(", ""), "brackets": nest("SELECT ", "(", "1", ")", ""), "arrays": nest("SELECT ", "[", "1", "]", ""),
	"braces": nest("SELECT ", "{", "a", "}", ""), "calls": nest("SELECT ", "f(", "1", ")", " FROM t"), "nested case": nest("SELECT ", "CASE WHEN a THEN ", "1", " END", ""),
	"nested selects": nest("", "SELECT (", "1", ")", ""), "derived tables": nest("", "SELECT * FROM (", "SELECT 1", ") t", ""),
	"exists": nest("", "SELECT 1 FROM t WHERE EXISTS (", "SELECT 1", ")", ""), "nested in": nest("", "SELECT a FROM t WHERE b IN (", "SELECT 1", ")", ""),
	"nested named": nest("", "WITH a AS (", "SELECT 1", ") SELECT * FROM a", ""), "nested joins": nest("SELECT * FROM ", "(", "a", " JOIN b ON a.x = b.x)", ""),
	"nested unions": nest("", "(SELECT 1 UNION ", "SELECT 1", ")", ""), "nots": repeat("SELECT 1 FROM t WHERE ", "NOT ", "a"),
	"or": repeat("SELECT 1 FROM t WHERE a = 1", " OR a = 2", ""), "or of columns": repeat("SELECT 1 FROM t WHERE a = 1", " OR c# = #", ""),
	"and": repeat("SELECT 1 FROM t WHERE a = 1", " AND a > 2", ""), "and of columns": repeat("SELECT 1 FROM t WHERE a = 1", " AND c# >= # AND c# < 5", ""),
	"or in and": repeat("SELECT 1 FROM t WHERE (a = 1 OR b = 2)", " AND (a = 1 OR b = 2)", ""), "and in or": repeat("SELECT 1 FROM t WHERE (a = 1 AND b = 2)", " OR (a = 1 AND b = 2)", ""),
	"nested or": nest("SELECT 1 FROM t WHERE ", "(a = 1 OR ", "b = 2", ")", ""), "in": repeat("SELECT 1 FROM t WHERE a IN (0", ",#", ")"),
	"in of names": repeat("SELECT 1 FROM t WHERE a IN (b", ",b#", ")"), "in of rows": repeat("SELECT 1 FROM t WHERE (a,b) IN ((1,2)", ",(#,2)", ")"),
	"many in": repeat("SELECT 1 FROM t WHERE a = 1", " AND c# IN (1,2,#)", ""), "likes": repeat("SELECT 1 FROM t WHERE t.a = 1", " AND t.b LIKE 'x#%'", ""),
	"rows": repeat("INSERT INTO t VALUES (1,'a')", ",(#,'a')", ""), "rows of calls": repeat("INSERT INTO t VALUES (1,f(1))", ",(#,f(#))", ""),
	"columns": repeat("SELECT c0", ",c#", " FROM t"), "aliases": repeat("SELECT c0", ",c# AS a#", " FROM t"), "insert columns": repeat("INSERT INTO t (c0", ",c#", ") SELECT 1"),
	"keys": repeat("SELECT 1 FROM t GROUP BY c0", ",c#", " ORDER BY 1"), "sets of keys": repeat("SELECT 1 FROM t GROUP BY GROUPING SETS ((a)", ",(c#, b)", ")"),
	"joins": repeat("SELECT * FROM t0", " JOIN t#", ""), "joins on": repeat("SELECT * FROM t0 a0", " JOIN t# a# ON a#.a = a0.a AND a#.b = 1", ""),
	"left joins": repeat("SELECT * FROM t0", " LEFT JOIN t# ON t#.a = t0.a", " WHERE t5.a = 1"), "full joins": repeat("SELECT * FROM t0", " FULL JOIN t# ON t#.a = t0.a", ""),
	"right joins": repeat("SELECT 1 FROM t0", " RIGHT JOIN t# USING (a)", ""), "tables": repeat("SELECT * FROM u0", ", t# a#", ""),
	"tables and conditions": both(repeat("SELECT * FROM t0", ", t#", ""), repeat(" WHERE t0.a = 1", " AND t#.a = #", "")),
	"one table":             both(repeat("SELECT * FROM t a0", ", t a#", ""), repeat(" WHERE a0.a = 1", " AND a#.a = #", "")),
	"drop":                  repeat("DROP TABLE t0", ", t#", ""), "rename": repeat("RENAME TABLE a TO b", ", a# TO b#", ""), "grants": repeat("GRANT SELECT ON t TO u0", ", u#", ""),
	"named": repeat("WITH x0 AS (SELECT 1 FROM t0)", ", x# AS (SELECT 1 FROM t# JOIN x#-)", " SELECT 1"), "one name": repeat("WITH a AS (SELECT 1)", ",a AS (SELECT 1)", " SELECT 1"),
	"uses": repeat("WITH x AS (SELECT 1 FROM t) SELECT 1 FROM x", ", x x#", ""), "unions": repeat("SELECT 1 FROM t0", " UNION ALL SELECT c# FROM t# WHERE a = #", ""),
	"windows": repeat("SELECT f(x) OVER (PARTITION BY a)", ", f(x) OVER (PARTITION BY a# ORDER BY b)", " FROM t"), "one window": repeat("SELECT 1", ", f(x) OVER w", " FROM t WINDOW w AS (PARTITION BY a)"),
	"named windows": both(repeat("SELECT f(x) OVER w0", ", f(x) OVER w#", " FROM t"), repeat(" WINDOW w0 AS (PARTITION BY a)", ", w# AS (PARTITION BY a#)", "")),
	"functions":     repeat("SELECT f0(1)", ", f#(1)", " FROM t"), "case": repeat("SELECT CASE WHEN a = 0 THEN 0", " WHEN a = # THEN #", " END FROM t"),
	"statements": repeat("SELECT 1", ";SELECT 1", ""), "updates": repeat("UPDATE t0 SET a=1", "; UPDATE t# SET a = 1", ""), "sets": repeat("UPDATE t SET c0 = 1", ", c# = #", " WHERE a = 1"),
	"targets": both(repeat("DELETE t0", ", t#", ""), repeat(" FROM t0", ", t#", "")),
	"strings": repeat("SELECT 'a'", " 'b#'", ""), "concatenation": repeat("SELECT 'a'", " || 'b#'", ""), "sum": repeat("SELECT 1", " + #", ""), "arrows": repeat("SELECT a", "->'b#'", ""),
	"casts": repeat("SELECT a", "::int", ""), "dots": repeat("SELECT a", ".a", ""), "lateral views": repeat("SELECT * FROM t", " LATERAL VIEW explode(a) x# AS y#", ""),
	"subqueries": repeat("SELECT (SELECT 1)", ", (SELECT a FROM t# WHERE b = #)", " FROM t"), "many exists": repeat("SELECT 1 FROM t WHERE a = 1", " AND EXISTS (SELECT 1 FROM t# WHERE t#.a = t.a)", ""),
	"comments": repeat("SELECT ", "/* # */", "1"), "open comments": repeat("SELECT ", "/*", ""), "hints": repeat("SELECT ", "/*+ a# */", ""), "code comments": repeat("SELECT ", "/*!50000 1, */", "1"),
	"quotes": repeat("SELECT ", "''", ""), "quoted names": repeat("SELECT ", "\"a#\".", "b"), "back quotes": repeat("SELECT ", "`", ""), "backslashes": repeat("SELECT '", `\'`, ""),
	"dollars": repeat("SELECT ", "$ ", ""), "dollar tags": repeat("SELECT ", "$a#$", ""), "signs": repeat("SELECT ", "- ", "1"), "dashes": repeat("SELECT ", "--", ""),
	"parameters": repeat("SELECT ", ":a# ", ""), "zero bytes": repeat("", "\x00", ""), "broken bytes": repeat("", "\xff", ""), "one long name": repeat("SELECT ", "a", ""),
	"one long string": repeat("SELECT '", "x", "'"), "blanks": repeat("SELECT", " ", "1"), "semicolons": repeat("", ";", ""), "templates": repeat("SELECT ", "{{a}}", ""),
	"data": repeat("INSERT INTO t FORMAT JSONEachRow ", `{"a":#}`, ""), "blocks": repeat("BEGIN ", "BEGIN SELECT 1; END; ", "END"), "explains": repeat("", "EXPLAIN ", "SELECT 1"),
	"create": repeat("CREATE TABLE t (c0 int", ", c# decimal(10,2)", ")"), "alter": repeat("ALTER TABLE t ADD COLUMN c0 int", ", ADD COLUMN c# int", ""),
	"merge": repeat("MERGE INTO t USING s ON t.a = s.a", " WHEN MATCHED AND s.b = # THEN UPDATE SET c = #", ""), "pivot": repeat("SELECT * FROM t PIVOT (sum(a) FOR b IN (1", ",# AS c#", "))"),
	"table functions": repeat("SELECT * FROM f(1)", ", g#(1)", ""), "unnest": repeat("SELECT * FROM t", ", UNNEST(a#) AS x#", ""), "inserts": repeat("FROM s", " INSERT INTO t# SELECT a", ""),
	"or of intervals": repeat("SELECT 1 FROM t WHERE a", " OR d > now() - INTERVAL '#' DAY", ""),
}

// TestTimeGrowsWithTheText measures four times the text beside the text, pair by pair in one run.
func TestTimeGrowsWithTheText(t *testing.T) {
	dialects := map[string]lex.Dialect{
		"": lex.Auto, "targets": lex.MySQL, "assignments": lex.MySQL, "code comments": lex.MySQL, "lateral views": lex.Spark, "inserts": lex.Hive, "data": lex.ClickHouse,
	}
	for _, c := range []struct {
		name string
		size int
		read func(sql string, d lex.Dialect)
	}{
		{"identity", 64 << 10, func(sql string, d lex.Dialect) { fingerprint.New(sql, d) }},
		{"tokens", 64 << 10, func(sql string, d lex.Dialect) { shape.Of(sql, d) }},
		// Below the bounds from which it is left to the tokens, and across them.
		{"tree", 8 << 10, func(sql string, d lex.Dialect) { tidbast.Parse(sql, d) }},
		{"larger tree", 32 << 10, func(sql string, d lex.Dialect) { tidbast.Parse(sql, d) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			slow := map[string]float64{}
			for _, name := range slices.Sorted(maps.Keys(growing)) {
				d := dialects[name]
				once, fourfold := growing[name](c.size), growing[name](4*c.size)
				ratio := growth(func() { c.read(once, d) }, func() { c.read(fourfold, d) })
				if perStep := math.Sqrt(ratio); perStep > perDoubling {
					slow[name] = perStep
				}
			}
			require.Empty(t, slow, "these take more than %v times as long for twice the text", perDoubling)
		})
	}
}

// growth is how much longer the second takes than the first: the median of pairs or the ratio of the shortest times, whichever
// is less. Other work on the machine makes some of the pairs wrong, so that more are measured as long as that is too much; the
// collector is kept out of it.
func growth(first, second func()) float64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	// What is very fast is done several times, so that the clock's steps don't count.
	n := 1
	for n < 64 && timed(first, n) < 500*time.Microsecond {
		n *= 2
	}
	var ratios []float64
	var shortest [2]time.Duration
	for round := 1; ; round++ {
		runtime.GC()
		a, b := timed(first, n), timed(second, n)
		ratios = append(ratios, float64(b)/float64(a))
		slices.Sort(ratios)
		if round == 1 {
			shortest = [2]time.Duration{a, b}
		}
		shortest[0], shortest[1] = min(shortest[0], a), min(shortest[1], b)
		found := min(ratios[len(ratios)/2], float64(shortest[1])/float64(shortest[0]))
		if round >= 3 && (found <= perDoubling*perDoubling || round >= 41) {
			return found
		}
	}
}

func timed(do func(), n int) time.Duration {
	start := time.Now()
	for range n {
		do()
	}
	return time.Since(start)
}
