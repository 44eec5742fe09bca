package querylog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/fingerprint/querylog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line is all that a line of output may hold.
type line struct {
	ID          any      `json:"id"`
	Fingerprint string   `json:"fingerprint"`
	Canonical   string   `json:"canonical"`
	HintHash    string   `json:"hintHash"`
	Statement   string   `json:"statement"`
	Command     string   `json:"command"`
	ReadOnly    *bool    `json:"readOnly"`
	Effect      string   `json:"effect"`
	Tables      []string `json:"tables"`
	WriteTables []string `json:"writeTables"`
	JoinTables  *int     `json:"joinTables"`
	GroupBy     *bool    `json:"groupBy"`
	Window      *bool    `json:"window"`
	UDF         *bool    `json:"udf"`
	UDFs        []string `json:"udfs"`
	Limit       *int64   `json:"limit"`
	Offset      *int64   `json:"offset"`
	Prunable    []struct {
		Table, Column, Op string
		Value             any
	} `json:"prunable"`
	Source string `json:"source"`
	Bucket string `json:"bucket"`
	Line   int64  `json:"line"`
	Error  string `json:"error"`
}

func run(t testing.TB, input string, o querylog.Options) ([]line, querylog.Result) {
	var out bytes.Buffer
	result, err := querylog.Run(strings.NewReader(input), &out, o)
	require.NoError(t, err)
	var lines []line
	for dec := json.NewDecoder(&out); ; {
		dec.DisallowUnknownFields()
		var l line
		err := dec.Decode(&l)
		if errors.Is(err, io.EOF) {
			return lines, result
		}
		require.NoError(t, err)
		lines = append(lines, l)
	}
}

func TestSQLLogBecomesLines(t *testing.T) {
	lines, result := run(t, `
-- nightly
SELECT a FROM t WHERE ds = '2026-01-01' AND k IN (1, 2) LIMIT 5;
SELECT /*+ MAX_EXECUTION_TIME(5) */ ';' FROM u;
DELIMITER //
CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END//
DELIMITER ;
DELETE FROM t WHERE id = 7`, querylog.Options{Input: querylog.SQL, Dialect: lex.MySQL})
	require.EqualValues(t, 4, result.Statements)
	require.Len(t, lines, 4)
	first := lines[0]
	require.EqualValues(t, 1, first.ID)
	require.Equal(t, "select a from t where ds = ? and k in (?) limit ?", first.Canonical)
	require.Equal(t, fingerprint.Of("SELECT a FROM t WHERE ds = 'x' AND k IN (1) LIMIT 9", lex.MySQL).String(), first.Fingerprint)
	require.Equal(t, "select", first.Statement)
	require.True(t, *first.ReadOnly)
	require.Equal(t, []string{"t"}, first.Tables)
	require.Empty(t, first.WriteTables)
	require.EqualValues(t, 5, *first.Limit)
	require.Nil(t, first.Offset)
	require.Len(t, first.Prunable, 2)
	require.Equal(t, "ds", first.Prunable[0].Column)
	require.Equal(t, "2026-01-01", first.Prunable[0].Value)
	require.Equal(t, []any{1.0, 2.0}, first.Prunable[1].Value)
	require.Equal(t, "ast", first.Source)
	require.Equal(t, "l2-n3", first.Bucket)
	require.NotEmpty(t, lines[1].HintHash)
	require.Equal(t, "select ? from u", lines[1].Canonical)
	require.Equal(t, "create", lines[2].Statement)
	require.Equal(t, "delete", lines[3].Statement)
	require.Equal(t, []string{"t"}, lines[3].WriteTables)
	require.False(t, *lines[3].ReadOnly)
}

func TestJSONLinesAreEchoedAndErrorsKeepTheirPlace(t *testing.T) {
	lines, result := run(t, strings.Join([]string{
		`{"id":"q-1","sql":"SELECT \"a\" FROM t\nWHERE b = 'x'","dialect":"trino"}`,
		`{"sql":"SELECT 1","id":17,"user":"kim","n":1.5,"ok":true,"no":null}`,
		``,
		`not json`,
		`{"id":"q-4"}`,
		`{"id":"q-5","sql":"SELECT 1","dialect":"klingon"}`,
		`{"id":{"a":[1]},"sql":"SELECT * FROM \u8868"}`,
		`{"sql":""}`,
	}, "\n"), querylog.Options{Input: querylog.JSONL, Dialect: lex.Auto})
	require.Len(t, lines, 7)
	require.EqualValues(t, 3, result.Bad)
	require.EqualValues(t, 4, result.Statements)
	require.Equal(t, "q-1", lines[0].ID)
	require.Equal(t, "select a from t where b = ?", lines[0].Canonical)
	require.EqualValues(t, 17, lines[1].ID)
	require.EqualValues(t, 4, lines[2].Line)
	require.Contains(t, lines[2].Error, "JSON")
	require.Contains(t, lines[3].Error, "no sql")
	require.Equal(t, "q-5", lines[4].ID)
	require.Contains(t, lines[4].Error, "klingon")
	require.Equal(t, []string{"表"}, lines[5].Tables)
	require.Equal(t, "other", lines[6].Statement)
	require.Equal(t, "none", lines[6].Source)
}

func TestLinesMayBeginWithAByteOrderMark(t *testing.T) {
	lines, result := run(t, "\xef\xbb\xbf{\"sql\":\"select 1\",\"id\":1}\n{\"sql\":\"select 2\",\"id\":2}", querylog.Options{Input: querylog.JSONL})
	require.Zero(t, result.Bad)
	require.Len(t, lines, 2)
}

func TestRowsOfCopyAreNoStatements(t *testing.T) {
	lines, _ := run(t, "COPY t (a) FROM stdin;\n1\tsecret; 'x\n2\ty\n\\.\n\nSELECT 1;", querylog.Options{Input: querylog.SQL, Dialect: lex.Postgres})
	require.Len(t, lines, 2)
	require.Equal(t, []string{"t"}, lines[0].WriteTables)
	require.Equal(t, "select $1", lines[1].Canonical)
}

// What stands around statements in the files of real clients and servers is no part of them.
func TestLinesForTheClientAreNoStatements(t *testing.T) {
	for _, c := range []struct {
		d    lex.Dialect
		log  string
		want []string
	}{
		{lex.MySQL, "/usr/sbin/mysqld, Version: 8.0.34 (GPL). started with:\nTcp port: 3306  Unix socket: /run/x.sock\nTime                 Id Command    Argument\n" +
			"# Time: 2026-01-01\n# Query_time: 2.0\nuse shop;\nSET timestamp=1;\nselect 1;", []string{"use shop", "set timestamp = ?", "select ?"}},
		{lex.MySQL, "select 1;\n# administrator command: Quit;\n/* x */ DELIMITER $$\nselect 2; select 3$$\n-- y\ndelimiter ;\nselect 4;", []string{"select ?", "select ?; select ?", "select ?"}},
		{lex.MySQL, "select 1\\G\nselect 'a\\g', 2\\g select 3", []string{"select ?", "select ?, ?", "select ?"}},
		{lex.Postgres, "\\restrict s3cr3t\nSELECT 1;\n\\connect db\nSELECT 2 \\gx\nSELECT 3 \\gset p_\n\\unrestrict s3cr3t\nSELECT 4;", []string{"select $1", "select $1", "select $1", "select $1"}},
		{lex.MySQL, "CREATE PROCEDURE p() BEGIN IF a THEN DELETE FROM t; END IF; SET x = CASE WHEN a THEN 1 END; CASE a WHEN 1 THEN SELECT 'END;'; END CASE; BEGIN SELECT 1; END; END;\nSELECT 2;", []string{"create procedure p() begin if a then delete from t; end if; set x = case when a then ? end; case a when ? then select ?; end case; begin select ?; end; end", "select ?"}},
		{lex.MySQL, "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1; SELECT 2;", []string{"create trigger r before insert on t for each row set new.a = ?", "select ?"}},
		{lex.MySQL, "CREATE DEFINER = a @ b PROCEDURE p() BEGIN SELECT 1; END; SELECT 2;", []string{"create definer = a @b procedure p() begin select ?; end", "select ?"}},
		{
			lex.Trino, "CREATE OR REPLACE VIEW v AS SELECT event , begin FROM t; SELECT CASE WHEN a THEN 1 END; SELECT 2;",
			[]string{"create or replace view v as select event, begin from t", "select case when a then ? end", "select ?"},
		},
		{lex.MySQL, "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2;", []string{"create procedure p() begin select ?", "select ?"}},
		{
			lex.Postgres, "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END; BEGIN; SELECT 3; END;",
			[]string{"create function f() returns int begin atomic select $1; select $2; end", "begin", "select $1", "end"},
		},
		{lex.MySQL, "\xef\xbb\xbfDELIMITER //\nselect 1; select 2//", []string{"select ?; select ?"}},
		{lex.Trino, "SELECT '/x, Version: y started with:' FROM t; Time;", []string{"select ? from t", "time"}},
	} {
		lines, _ := run(t, c.log, querylog.Options{Input: querylog.SQL, Dialect: c.d})
		var got []string
		for _, l := range lines {
			got = append(got, l.Canonical)
		}
		require.Equal(t, c.want, got, c.log)
	}
}

// The same text of canonical SQL says the same of every statement, whichever of them comes first.
func TestOrderOfStatementsDoesNotMatter(t *testing.T) {
	for _, pair := range [][2]string{
		{"SELECT * FROM t WHERE a = NULL", "SELECT * FROM t WHERE a = 5"},
		{"SELECT * FROM t WHERE a IN (NULL, 1)", "SELECT * FROM t WHERE a IN (2)"},
		{"SELECT * FROM t WHERE a LIKE NULL", "SELECT * FROM t WHERE a LIKE 'x%'"},
		{"EXPLAIN (ANALYZE 0) DELETE FROM t", "EXPLAIN (ANALYZE 1) DELETE FROM t"},
		{"SELECT * FROM t LIMIT NULL", "SELECT * FROM t LIMIT 5"},
		{"SELECT * FROM t LIMIT 'x'", "SELECT * FROM t LIMIT 5"},
		{`SELECT "a" FROM "t" WHERE "b" = 1`, "SELECT a FROM t WHERE b = 'x'"},
		{"SELECT * FROM t WHERE a = DATE '2026-01-01'", "SELECT * FROM t WHERE a = DATE 'x'"},
	} {
		o := querylog.Options{Input: querylog.SQL, Dialect: lex.Postgres, Workers: 1}
		forth, _ := run(t, pair[0]+";"+pair[1], o)
		back, _ := run(t, pair[1]+";"+pair[0], o)
		require.Equal(t, forth[0].Canonical, forth[1].Canonical)
		for i := range forth {
			forth[i].ID, back[i].ID = nil, nil
		}
		require.Equal(t, forth[0], back[1])
		require.Equal(t, forth[1], back[0])
	}
}

// However many fingerprints a log has and however long they are, what is kept of them is bounded.
func TestMemoryIsBoundedByBytesAndNotByFingerprints(t *testing.T) {
	long := strings.Repeat("a_long_name_", 8000)
	i := 0
	var rest string
	log := readerFunc(func(p []byte) (int, error) {
		if rest == "" {
			if i++; i > 1000 {
				return 0, io.EOF
			}
			rest = fmt.Sprintf("SELECT %s%d FROM t;", long, i)
		}
		n := copy(p, rest)
		rest = rest[n:]
		return n, nil
	})
	for _, top := range []int{0, 3} {
		i = 0
		var most, calls uint64
		result, err := querylog.Run(log, io.Discard, querylog.Options{Input: querylog.SQL, Dialect: lex.Trino, Top: top, Workers: 2, Progress: func(int) {
			if calls++; calls%40 == 0 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
		}})
		require.NoError(t, err)
		require.EqualValues(t, 1000, result.Statements)
		require.NotZero(t, most)
		require.Less(t, most, uint64(165<<20))
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestSummaryCounts(t *testing.T) {
	var in strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&in, "SELECT a FROM t WHERE b = %d;\n", i)
		if i%10 == 0 {
			fmt.Fprintf(&in, "UPDATE u SET a = 'secret%d';\n", i)
		}
	}
	var out bytes.Buffer
	_, err := querylog.Run(strings.NewReader(in.String()), &out, querylog.Options{Input: querylog.SQL, Dialect: lex.MySQL, Top: 5})
	require.NoError(t, err)
	require.NotContains(t, out.String(), "secret")
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, rows, 3)
	var top querylog.Top
	require.NoError(t, json.Unmarshal([]byte(rows[0]), &top))
	require.EqualValues(t, 1000, top.Count)
	require.InDelta(t, 1000.0/1100, top.Share, 1e-9)
	require.Equal(t, "select a from t where b = ?", top.Example)
	var totals querylog.Totals
	require.NoError(t, json.Unmarshal([]byte(rows[2]), &totals))
	require.Equal(t, querylog.Totals{Statements: 1100, Fingerprints: 2}, totals)
}

// However the log arrives and however many work on it, the output is the same.
func TestOutputDoesNotDependOnChunks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var in strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&in, "SELECT c%d, '%s' FROM t%d WHERE id = %d;\n", i%7, strings.Repeat("x;", r.IntN(400)), i%5, i)
	}
	in.WriteString("SELECT '" + strings.Repeat("y", 1<<20) + "';SELECT 'open")
	var want bytes.Buffer
	_, err := querylog.Run(strings.NewReader(in.String()), &want, querylog.Options{Input: querylog.SQL, Workers: 1})
	require.NoError(t, err)
	require.Equal(t, 3002, bytes.Count(want.Bytes(), []byte("\n")))
	read := 0
	var got bytes.Buffer
	result, err := querylog.Run(iotest.HalfReader(strings.NewReader(in.String())), &got, querylog.Options{Input: querylog.SQL, Workers: 5, Progress: func(n int) { read += n }})
	require.NoError(t, err)
	require.Equal(t, want.String(), got.String())
	require.EqualValues(t, in.Len(), result.Bytes)
	require.Equal(t, in.Len(), read)
}

func TestErrorsOfReaderAndWriterAreReturned(t *testing.T) {
	_, err := querylog.Run(io.MultiReader(strings.NewReader("SELECT 1;"), iotest.ErrReader(errors.New("disk on fire"))), io.Discard, querylog.Options{Input: querylog.SQL})
	require.ErrorContains(t, err, "disk on fire")
	_, err = querylog.Run(strings.NewReader(strings.Repeat("SELECT 1;", 1<<20)), full{}, querylog.Options{Input: querylog.SQL})
	require.ErrorContains(t, err, "no space")
	for log, want := range map[string]string{"\xff\xfes\x00e\x00": "UTF-16", "\xfe\xff\x00s": "UTF-16", "\x1f\x8b\x08\x00": "compressed", "\x28\xb5\x2f\xfd\x00": "compressed"} {
		_, err = querylog.Run(strings.NewReader(log), io.Discard, querylog.Options{Input: querylog.SQL})
		require.ErrorContains(t, err, want)
	}
	_, err = querylog.Run(strings.NewReader(""), io.Discard, querylog.Options{Input: "xml", Top: -1})
	require.ErrorContains(t, err, "xml")
	require.ErrorContains(t, err, "top")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }
