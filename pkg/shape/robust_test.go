package shape_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
)

// TestBadTextIsBounded reads texts of up to 16 MiB that were made to hurt: each gets a fingerprint and a shape in time and memory
// that a router can afford. The bounds are far above what is measured, for slow machines.
func TestBadTextIsBounded(t *testing.T) {
	fill := func(unit string) string { return strings.Repeat(unit, (2<<20)/len(unit)) }
	most := func(unit string) string { return strings.Repeat(unit, (16<<20)/len(unit)) }
	for name, sql := range map[string]string{
		"open brackets":         "SELECT " + most("("),
		"brackets":              "SELECT " + fill("()"),
		"nested selects":        fill("SELECT (") + "1",
		"nested derived tables": fill("SELECT * FROM ("),
		"or terms":              "SELECT 1 FROM t WHERE a = 1" + most(" OR a = b"),
		"or of one column":      "SELECT 1 FROM t WHERE a = 1" + fill(" OR a = 2"),
		"and terms":             "SELECT 1 FROM t WHERE a = 1" + most(" AND b = 1"),
		"open string":           "SELECT '" + most("x"),
		"quotes":                "SELECT " + fill("'"),
		"double quotes":         "SELECT " + fill("\""),
		"back quotes":           "SELECT " + fill("`"),
		"open comments":         "SELECT " + most("/*"),
		"comments":              "SELECT " + fill("/**/"),
		"hints":                 "SELECT " + fill("/*+ a */"),
		"code comments":         "SELECT " + fill("/*!"),
		"dashes":                "SELECT " + fill("--"),
		"signs":                 "SELECT " + fill("- "),
		"dollars":               "SELECT " + fill("$"),
		"dollar tags":           "SELECT " + fill("$a$b"),
		"semicolons":            fill(";"),
		"statements":            fill("SELECT 1;"),
		"numbers in a list":     "SELECT 1 FROM t WHERE a IN (1" + most(",1") + ")",
		"names in a list":       "SELECT 1 FROM t WHERE a IN (b" + fill(",b") + ")",
		"rows":                  "INSERT INTO t VALUES (1)" + fill(",(1)"),
		"nested lists":          "SELECT " + fill("a IN ("),
		"commas":                "SELECT " + fill(","),
		"columns":               "SELECT a" + fill(",a"),
		"joins":                 "SELECT * FROM t" + fill(" JOIN t"),
		"named queries":         "WITH a AS (SELECT 1)" + fill(",a AS (SELECT 1)") + "SELECT 1",
		"windows":               "SELECT " + fill("f() OVER w,") + "1 FROM t WINDOW w AS (PARTITION BY a)",
		"cases":                 "SELECT " + fill("CASE WHEN a THEN "),
		"dots":                  "SELECT a" + fill(".a"),
		"nots":                  "SELECT 1 FROM t WHERE " + fill("NOT "),
		"zero bytes":            most("\x00"),
		"broken bytes":          most("\xff"),
		"one name":              fill("a"),
		"one number":            fill("1"),
		"blanks":                fill(" "),
		"unions":                "SELECT 1" + fill(" UNION SELECT 1"),
		"withs":                 fill("WITH a AS ("),
		"outer join brackets":   "SELECT 1 FROM " + most("{OJ "),
		"changed rows":          "SELECT 1 FROM " + most("OLD TABLE(DELETE FROM "),
		"explains":              most("EXPLAIN "),
		"prepares":              most("PREPARE p AS "),
		"from first":            fill("FROM ("),
		"in tables":             "SELECT a" + fill(" IN t"),
		"oracle's strings":      "SELECT " + most("q'[ "),
		"files":                 most("ADD JAR x;"),
	} {
		t.Run(name, func(t *testing.T) {
			dialects := []lex.Dialect{lex.Auto, lex.MySQL, lex.Postgres}
			if len(sql) > 4<<20 {
				dialects = dialects[:1] // the one that may have to read twice
			}
			for _, d := range dialects {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				start := time.Now()
				r := lex.Run(sql, d, lex.Key{}, nil)
				keyed := time.Since(start)
				s := shape.Of(sql, d)
				shaped := time.Since(start)
				fp := fingerprint.New(sql, d)
				took := time.Since(start)
				runtime.ReadMemStats(&after)
				t.Logf("%-10s key %v shape %v canonical %v allocated %d MiB", d, keyed, shaped-keyed, took-shaped, (after.TotalAlloc-before.TotalAlloc)>>20)
				require.Equal(t, r.Key, fp.Key)
				require.NotEmpty(t, fp.ID.String())
				require.NotNil(t, s)
				require.Less(t, keyed, 4*time.Second, "the key in %s", d)
				require.Less(t, shaped-keyed, 8*time.Second, "the shape in %s", d)
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<30), "bytes allocated in %s", d)
			}
		})
	}
}
