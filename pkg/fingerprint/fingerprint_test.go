package fingerprint_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

func anyDialect(t *rapid.T) lex.Dialect {
	return lex.Dialect(rapid.IntRange(0, len(lex.Dialects())-1).Draw(t, "dialect"))
}

// secret is a text that can stand nowhere but in a literal.
const secret = "Zq7Secret"

// literals are values that hold the secret, in the spellings of all dialects. %s of a template takes one.
func literal(t *rapid.T, d lex.Dialect) string {
	forms := []string{"'" + secret + "'", "'a''" + secret + "'", "N'" + secret + "'", "'-- " + secret + "'", "'/* " + secret + "'", "'" + secret + ";'", "DATE '" + secret + "'", "'" + strings.Repeat(secret, 40) + "'"}
	switch d.Family() {
	case "mysql":
		forms = append(forms, `"`+secret+`"`, `'\'`+secret+`'`, `_utf8mb4'`+secret+`'`, `"a""`+secret+`"`)
	case "spark":
		forms = append(forms, `"`+secret+`"`, `'\'`+secret+`'`, `r'`+secret+`\'`)
	case "postgres":
		forms = append(forms, `E'\'`+secret+`'`, "$$"+secret+"$$", "$t$"+secret+"$t$", `'`+secret+`\'`, `U&'`+secret+`'`)
	case "clickhouse":
		forms = append(forms, `'\'`+secret+`'`, "$x$"+secret+"$x$")
	case "trino", "ansi", "duckdb":
		forms = append(forms, `'`+secret+`\'`)
	}
	return rapid.SampledFrom(forms).Draw(t, "literal")
}

var templates = []string{
	"SELECT a FROM t WHERE b = %s AND c LIKE %s", "INSERT INTO t (a, b) VALUES (%s, %s), (%s, 1)", "SELECT %s AS x, count(*) FROM t GROUP BY a HAVING max(b) > %s",
	"UPDATE t SET a = %s WHERE b IN (%s, %s) OR c BETWEEN %s AND %s", "CALL p(%s, 1)", "SELECT f(%s)[%s] FROM t -- %s", "SELECT CASE WHEN a = %s THEN %s ELSE %s END FROM t",
	"CREATE TABLE t (a varchar(20) DEFAULT %s COMMENT %s)", "SET x = %s", "SELECT /* %s */ a FROM t WHERE b = %s LIMIT 5", "SELECT a FROM t WHERE b = %s; SELECT %s",
	"SELECT /*+ h(%s) */ a FROM t ORDER BY b = %s", "ALTER USER u IDENTIFIED BY %s", "SELECT a FROM t WHERE b =%s",
}

func filled(t *rapid.T, d lex.Dialect) string {
	sql := rapid.SampledFrom(templates).Draw(t, "template")
	for strings.Contains(sql, "%s") {
		sql = strings.Replace(sql, "%s", literal(t, d), 1)
	}
	if rapid.Bool().Draw(t, "cut") {
		// a collector cut the text: anywhere behind the first quote
		if at := strings.IndexAny(sql, "'\"$"); at >= 0 {
			sql = sql[:rapid.IntRange(at+1, len(sql)).Draw(t, "at")]
		}
	}
	return sql
}

func TestLiteralsNeverShow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDialect(t)
		sql := filled(t, d)
		got := fingerprint.New(sql, d)
		require.NotContains(t, strings.ToLower(got.Canonical), strings.ToLower(secret), "%s: %q", d, sql)
		raw, err := json.Marshal(got)
		require.NoError(t, err)
		require.NotContains(t, strings.ToLower(string(raw)), strings.ToLower(secret))
	})
}

// words are tokens between which layout means nothing.
var words = []string{"SELECT", "a", "FROM", "t", "WHERE", "b", "=", "1", "AND", "c", "IN", "(", "'x'", ",", "2", ")", "ORDER", "BY", "GROUP", "JOIN", "ON", "u", ".", "LIMIT", "NOT", "NULL", "CASE", "WHEN", "THEN", "END", "*", "<=", "||"}

func TestLayoutAndCommentsMeanNothing(t *testing.T) {
	blanks := []string{" ", "  ", "\n", "\t", "\r\n", " /* x */ ", "/**/", " -- x\n", " /* it's */ "}
	rapid.Check(t, func(t *rapid.T) {
		d := anyDialect(t)
		var plain, spaced strings.Builder
		for _, w := range rapid.SliceOfN(rapid.SampledFrom(words), 1, 30).Draw(t, "words") {
			plain.WriteString(w + " ")
			spaced.WriteString(w + rapid.SampledFrom(blanks).Draw(t, "blank"))
		}
		a, b := fingerprint.New(plain.String(), d), fingerprint.New(spaced.String(), d)
		require.Equal(t, a.Canonical, b.Canonical, "%q", spaced.String())
		require.Equal(t, a.Key, b.Key)
	})
}

func TestListsOfAnyLengthAreAlike(t *testing.T) {
	elements := []string{"1", "-2", "'x'", "NULL", "(1, 'a')", "DATE '2026-01-01'", "f(1)", "1 + 2"}
	rapid.Check(t, func(t *rapid.T) {
		d := anyDialect(t)
		e := rapid.SampledFrom(elements).Draw(t, "element")
		n, m := rapid.IntRange(1, 50).Draw(t, "n"), rapid.IntRange(1, 50).Draw(t, "m")
		list := func(k int) string { return strings.TrimSuffix(strings.Repeat(e+", ", k), ", ") }
		rows := func(k int) string { return strings.TrimSuffix(strings.Repeat("("+e+", 5), ", k), ", ") }
		require.Equal(t, fingerprint.Of("SELECT a FROM t WHERE b IN ("+list(n)+") AND c = 1", d), fingerprint.Of("SELECT a FROM t WHERE b IN ("+list(m)+") AND c = 2", d))
		require.Equal(t, fingerprint.Of("INSERT INTO t (a, b) VALUES "+rows(n), d), fingerprint.Of("INSERT INTO t (a, b) VALUES "+rows(m), d))
		if n != m {
			require.NotEqual(t, fingerprint.Of("SELECT g("+list(n)+")", d), fingerprint.Of("SELECT g("+list(m)+")", d), "arity is structure")
		}
	})
}

func TestValuesMeanNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDialect(t)
		value := rapid.SampledFrom([]string{"1", "-1", "1.5e3", "0x1F", "'x'", "''", "NULL", "TRUE", "x'ff'"})
		sql := func(name string) string {
			return "SELECT a FROM t WHERE b = " + value.Draw(t, name+"1") + " AND c > " + value.Draw(t, name+"2") + " LIMIT 10"
		}
		require.Equal(t, fingerprint.Canonical(sql("x"), d), fingerprint.Canonical(sql("y"), d))
	})
}

func TestIdentityIsReadBack(t *testing.T) {
	id := fingerprint.Of("SELECT 1", lex.MySQL)
	require.Regexp(t, "^pm1-[0-9a-f]{32}$", id.String())
	back, err := fingerprint.ParseID(id.String())
	require.NoError(t, err)
	require.Equal(t, id, back)
	for _, bad := range []string{"", "pm1-", "pm2-" + id.String()[4:], id.String() + "0", "pm1-" + strings.Repeat("g", 32)} {
		_, err := fingerprint.ParseID(bad)
		require.Error(t, err, "%q", bad)
	}
}

func TestEmptyTextHasOneIdentity(t *testing.T) {
	want := fingerprint.Of("", lex.MySQL)
	for _, sql := range []string{"", " \n", "-- x", "/* x */", ";", " ; ;"} {
		for d := range lex.Dialect(len(lex.Dialects())) {
			require.Equal(t, want, fingerprint.Of(sql, d), "%s: %q", d, sql)
			require.Equal(t, lex.Key{}, fingerprint.New(sql, d).Key)
		}
	}
}

func TestDialectFamiliesAreSetApart(t *testing.T) {
	require.Equal(t, fingerprint.Of("SELECT 1", lex.MySQL), fingerprint.Of("SELECT 1", lex.Doris))
	require.NotEqual(t, fingerprint.Of("SELECT 1", lex.MySQL), fingerprint.Of("SELECT 1", lex.Trino))
	require.NotEqual(t, fingerprint.New("SELECT 1", lex.MySQL).Key, fingerprint.New("SELECT 1", lex.Trino).Key)
}

func TestHintsHaveTheirOwnHash(t *testing.T) {
	plain := fingerprint.New("SELECT a FROM t", lex.MySQL)
	one := fingerprint.New("SELECT /*+ MAX_EXECUTION_TIME(1000) */ a FROM t", lex.MySQL)
	two := fingerprint.New("select /*+ max_execution_time( 25 ) */ a from t", lex.MySQL)
	other := fingerprint.New("SELECT /*+ NO_INDEX(t) */ a FROM t", lex.MySQL)
	require.Equal(t, plain.ID, one.ID)
	require.Empty(t, plain.HintHash())
	require.NotEmpty(t, one.HintHash())
	require.Equal(t, one.HintHash(), two.HintHash())
	require.NotEqual(t, one.HintHash(), other.HintHash())
}

func TestKeyAllocatesNothing(t *testing.T) {
	for _, s := range traffic(t) {
		require.Zero(t, testing.AllocsPerRun(5, func() { lex.Run(s.SQL, s.d, lex.Key{}, nil) }), s.SQL)
	}
	var spans lex.Spans
	for _, s := range traffic(t) {
		lex.Run(s.SQL, s.d, lex.Key{}, &spans)
	}
	for _, s := range traffic(t) {
		require.Zero(t, testing.AllocsPerRun(5, func() { lex.Run(s.SQL, s.d, lex.Key{}, &spans) }), s.SQL)
	}
}

func TestDialectNames(t *testing.T) {
	for _, name := range lex.Dialects() {
		d, err := fingerprint.ParseDialect(strings.ToUpper(name))
		require.NoError(t, err)
		require.Equal(t, name, d.String())
	}
	d, err := fingerprint.ParseDialect("klingon")
	require.ErrorContains(t, err, "klingon")
	require.Equal(t, lex.Auto, d)
	require.Equal(t, "auto", lex.Dialect(999).String())
}
