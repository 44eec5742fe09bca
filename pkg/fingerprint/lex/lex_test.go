package lex

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// pieces are what random texts are made of: everything that the rules treat in some way of its own.
var pieces = []string{
	"select", "SELECT ", " from ", "where", "and", "or", "in", "IN (", "not", "is", "null", "true", "values", "VALUES (", "group by", "order by",
	"by", "limit", "offset", "case", "when", "then", "end", "cast(", "as", "try_cast", "over", "partition by", "create table", "insert into",
	"set", "SET a=", "copy", "COPY t FROM STDIN;", "\n\\.", "$n", "format", "FORMAT x ", "with", "rollup(", "grouping sets", "date", "interval", "update", "delete", "explain", "alter",
	"a", "b1", "t.x", "Tbl", "`q`", "`a``b`", "\"Q\"", "\"a\"\"b\"", "\"from\"", "`in`", "59901_x", "1_000", "x$y", "表", "_utf8", "e", "x", "n", "r", "u&",
	"1", "2", "-3", "+4", "1.5", ".5", "1e5", "0x1F", "10L", "12345", "123456", "'s'", "'it''s'", "'a\\'", "'\\''", "\"s\"", "E'x'", "x'ff'", "$1", "?", ":n", "{p:UInt8}",
	"$$b$$", "$t$b$t$", "${v}", "@v", "@@g.v", "(", ")", "[", "]", "{", "}", ",", ",", ".", ";", "+", "-", "--", "-- c\n", "# c\n", "#", "/*", "*/", "/* c */", "/*! 1 */",
	"/*!50000 a */", "/*+ h(1) */", "/*T! t */", "/", "*", "%", "=", "<", ">", "<=>", "!=", "<>", "||", "&&", "::", ":", ":=", "->", "->>", "=>", "#>", "@>", "?|", "~*", "!~", "^", "|", "&", "~", "!", "\\",
	" ", " ", " ", "\n", "\t", "\x00", "\x01", "\xff", "\xe4\xbd", "€", "\u3000", "'", "\"", "`", "$",
}

// text draws a text of random pieces.
func text(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 24).Draw(t, "pieces"), rapid.SampledFrom([]string{"", " "}).Draw(t, "glue"))
}

func dialect(t *rapid.T) Dialect {
	return Dialect(rapid.IntRange(0, int(dialectCount)-1).Draw(t, "dialect"))
}

// check holds for every text: it is what the fuzz target and the property run.
func check(t require.TestingT, s string, d Dialect) {
	canonical, r := Canonical(nil, s, d)
	again, r2 := Canonical(nil, string(canonical), d)
	require.Equal(t, string(canonical), string(again), "not idempotent in %s: %q", d, s)
	require.True(t, utf8.Valid(canonical), "%q", s)
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && (c < '\t' || c > '\r') || c == 0x7f }) {
		require.Equal(t, r.Key, r2.Key, "canonical text has another key in %s: %q -> %q", d, s, canonical)
	}
	var spans Spans
	require.Equal(t, r, Run(s, d, Key{}, &spans), "spans change the result: %q", s)
	require.Equal(t, r, Run(s, d, Key{}, nil))
	for _, v := range spans.List {
		require.Less(t, v.Off, v.End, "%q", s)
		require.LessOrEqual(t, int(v.End), len(s))
		require.Less(t, v.Slot, r.Slots, "%q", s)
	}
	tokens, r3 := Tokens(nil, s, d, nil, 1<<20)
	require.Equal(t, r, r3)
	require.Len(t, tokens, int(r.Tokens), "%q", s)
}

func TestEveryTextHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { check(t, text(t), dialect(t)) })
}

func FuzzLex(f *testing.F) {
	for i, p := range pieces {
		f.Add(p+pieces[(i*7)%len(pieces)]+" "+pieces[(i*13)%len(pieces)], uint8(i))
	}
	f.Fuzz(func(t *testing.T, s string, d uint8) { check(t, s, Dialect(d%uint8(dialectCount))) })
}

func TestRowsOfCopyAreOneValue(t *testing.T) {
	for in, want := range map[string]string{
		"COPY t (a) FROM stdin;\n1\tsecret\n2\tmore\n\\.\n": "copy t(a) from stdin; $1",
		"COPY t FROM STDIN;":                                     "copy t from stdin",
		"COPY t FROM STDIN; DELETE FROM u":                       "copy t from stdin; delete from u",
		"COPY t FROM STDIN;\n\\.\nSELECT 1":                      "copy t from stdin; select $1",
		"COPY t FROM STDIN;\na;b\n\\.\nDELETE FROM u":            "copy t from stdin; $1; delete from u",
		"COPY t FROM STDIN;\nsecret":                             "copy t from stdin; $1",
		"COPY t FROM 'stdin'; SELECT 1":                          "copy t from $1; select $2",
		"COPY t FROM STDIN WITH (FORMAT csv);\na,secret\n\\.\n;": "copy t from stdin with (format csv); $1",
	} {
		got, _ := Canonical(nil, in, Postgres)
		require.Equal(t, want, string(got))
	}
}

// In a text of unknown dialect double quotes hold what the rest of the text says; without a sign, a value.
func TestDoubleQuotesOfUnknownDialect(t *testing.T) {
	for in, want := range map[string]string{
		`SELECT a FROM u WHERE mail = "jo@example.com"`:                "select a from u where mail = ?",
		`SELECT a FROM u WHERE mail LIKE "kim" AND b IN ("x", "y")`:    "select a from u where mail like ? and b in (?)",
		`SELECT "a" FROM "T" WHERE "b" = "c" AND d = 'x'`:              "select a from t where b = c and d = ?",
		"SELECT `a` FROM t WHERE b = \"c\"":                            "select a from t where b = ?",
		`SELECT t."a b" FROM t`:                                        "select t.`a b` from t",
		`ALTER USER u IDENTIFIED BY "p4ss"`:                            "alter user u identified by ?",
		`SELECT /* x */ count(*) FROM /* y */ "Orders"`:                "select count(*) from orders",
		`SELECT a FROM t WHERE b = 'C:\' AND c = 'x'`:                  "select a from t where b = ? and c = ?",
		`SELECT a FROM t WHERE b = 'it\'s' AND c = 'x'`:                "select a from t where b = ? and c = ?",
		`SELECT a FROM t WHERE x = 1 # user jo@example.com`:            "select a from t where x = ?",
		`SELECT doc #> '{x}' FROM t`:                                   "select doc #> ? from t",
		`SELECT /*!40001 SQL_NO_CACHE */ a FROM t /*! user=kim */`:     "select sql_no_cache a from t",
		`SELECT a /* x /* y */ z */ FROM t`:                            "select a from t",
		`SELECT a /* x /* y */ FROM t`:                                 "select a from t",
		"INSERT INTO t FORMAT JSONEachRow {\"a\": \"secret\"}":         "insert into t format jsoneachrow ?",
		`SELECT a FROM t WHERE id = {id:UInt64} AND b = :b AND c = $1`: "select a from t where id = ? and b = ? and c = ?",
	} {
		got, _ := Canonical(nil, in, Auto)
		require.Equal(t, want, string(got), in)
	}
}
