package querylog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

func TestRowsOfCopyAreNoStatements(t *testing.T) {
	lines, _ := run(t, "COPY t (a) FROM stdin;\n1\tsecret; 'x\n2\ty\n\\.\n\nSELECT 1;", querylog.Options{Input: querylog.SQL, Dialect: lex.Postgres})
	require.Len(t, lines, 2)
	require.Equal(t, []string{"t"}, lines[0].WriteTables)
	require.Equal(t, "select $1", lines[1].Canonical)
}

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
	_, err = querylog.Run(strings.NewReader(""), io.Discard, querylog.Options{Input: "xml", Top: -1})
	require.ErrorContains(t, err, "xml")
	require.ErrorContains(t, err, "top")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }
