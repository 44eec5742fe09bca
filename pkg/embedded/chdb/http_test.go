package chdb_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
)

func TestPlainHTTP(t *testing.T) {
	engine := shared(t)
	for _, path := range []string{"/ping", "/replicas_status", "/"} {
		resp, err := plain.Get(engine.URL() + path)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "Ok.\n", string(body), path)
	}
	a := do(t, engine, http.MethodGet, "", nil, "query", "SELECT 1, 'a\tb'")
	require.Equal(t, "1\ta\\tb\n", ok(t, a))
	require.Equal(t, "TabSeparated", a.header.Get("X-ClickHouse-Format"))
	require.Equal(t, "shared", a.header.Get("X-ClickHouse-Server-Display-Name"))
	require.Equal(t, "UTC", a.header.Get("X-ClickHouse-Timezone"))
	require.NotEmpty(t, a.header.Get("X-ClickHouse-Query-Id"))

	a = post(t, engine, "SELECT number FROM numbers(10)", "query_id", "mine", "default_format", "CSV")
	require.Equal(t, 10, strings.Count(ok(t, a), "\n"))
	require.Equal(t, "mine", a.header.Get("X-ClickHouse-Query-Id"))
	var summary map[string]string
	require.NoError(t, json.Unmarshal([]byte(a.header.Get("X-ClickHouse-Summary")), &summary))
	require.Equal(t, "10", summary["read_rows"])
	require.Equal(t, "10", summary["result_rows"])
	require.NotEqual(t, "0", summary["elapsed_ns"])

	require.Equal(t, "{\"a\":1}\n", ok(t, post(t, engine, "1 AS a FORMAT JSONEachRow", "query", "SELECT")), "statement in two halves")
	require.Equal(t, "3", strings.TrimSpace(ok(t, post(t, engine, "SELECT {a:UInt8} + {b:UInt8}", "param_a", "1", "param_b", "2"))))
	require.Equal(t, "x\n", ok(t, post(t, engine, "SELECT 'x' -- a comment; with a semicolon\n;\n")))
	require.Equal(t, `"5"`, strings.TrimSpace(ok(t, post(t, engine, "SELECT '5' AS format ORDER BY format DESC", "default_format", "CSV"))))
	ok(t, post(t, engine, "SELECT 1 FORMAT Null"))
}

func TestEveryFormatPassesThrough(t *testing.T) {
	engine := shared(t)
	for _, format := range []string{"JSON", "JSONCompact", "CSVWithNames", "Parquet", "Arrow", "ArrowStream", "RowBinaryWithNamesAndTypes", "Pretty", "Vertical", "XML", "Values", "Markdown", "Native", "native", "jsoneachrow"} {
		a := post(t, engine, "SELECT number, toString(number) AS s FROM numbers(3) FORMAT "+format)
		require.NotEmpty(t, ok(t, a), format)
		require.Equal(t, format, a.header.Get("X-ClickHouse-Format"))
	}
	var doc struct{ Rows int }
	require.NoError(t, json.Unmarshal([]byte(ok(t, post(t, engine, "SHOW DATABASES", "default_format", "JSON"))), &doc))
	require.Positive(t, doc.Rows)
	ok(t, post(t, engine, "CREATE TABLE checked (n UInt8) ENGINE = MergeTree ORDER BY n"))
	ok(t, post(t, engine, "INSERT INTO checked VALUES (1)"))
	for _, sql := range []string{"DESCRIBE TABLE system.one", "EXPLAIN SELECT 1", "EXISTS TABLE system.one", "SHOW TABLES FROM system", "WITH 1 AS x SELECT x UNION ALL SELECT 2", "(SELECT 1)", "FROM system.one SELECT dummy", "CHECK TABLE checked", "SHOW CREATE TABLE checked", "SHOW GRANTS", "EXPLAIN SYNTAX SELECT 1 FORMAT TSV", "SELECT 1 FORMAT TSV SETTINGS max_threads = 1", "SELECT 1 SETTINGS max_threads = 1 FORMAT TSV", "EXPLAIN AST SELECT 1", "SHOW FUNCTIONS LIKE 'sum'", "SELECT 1 AS x ORDER BY x LIMIT 1 WITH TIES", "SELECT 1 EXCEPT SELECT 2", "SHOW ENGINES", "SHOW COLUMNS FROM checked", "SHOW SETTINGS LIKE 'max_threads'"} {
		require.NotEmpty(t, ok(t, post(t, engine, sql)), sql)
	}
}

func TestErrorsOverHTTP(t *testing.T) {
	engine := shared(t)
	for _, c := range []struct {
		name, sql    string
		params       []string
		status, code int
	}{
		{"syntax", "SELEC 1", nil, 400, 62},
		{"empty", " -- nothing\n", nil, 400, 62},
		{"two statements", "SELECT 1; SELECT 2", nil, 400, 62},
		{"unknown column", "SELECT nosuch", nil, 404, 47},
		{"unknown setting", "SELECT 1", []string{"nosuch", "1"}, 404, 115},
		{"setting with an impossible value", "SELECT 1", []string{"max_threads", "many"}, 400, 27},
		{"unknown database", "SELECT 1", []string{"database", "nosuch"}, 404, 81},
		{"unknown format", "SELECT 1 FORMAT Nosuch", nil, 404, 73},
		{"missing parameter", "SELECT {x:UInt8}", nil, 500, 456},
		{"memory", "SELECT groupArray(number) FROM numbers(10000000)", []string{"max_memory_usage", "10000000"}, 500, 241},
		{"time", "SELECT sleepEachRow(1) FROM numbers(3)", []string{"max_execution_time", "0.1", "max_block_size", "1"}, 408, 159},
		{"into a file", "SELECT 1 INTO OUTFILE '/tmp/never'", nil, 500, 358},
		{"from a file", "INSERT INTO t FROM INFILE '/etc/hostname' FORMAT CSV", nil, 404, 78},
		{"divide", "SELECT intDiv(number, 0) FROM numbers(2)", nil, 500, 153},
		{"too long", "SELECT '" + strings.Repeat("x", 5<<20) + "'", nil, 400, 62},
		{"far too long", "SELECT '" + strings.Repeat("x", 17<<20) + "'", nil, 413, 229},
		{"protocol", "SELECT 1", []string{"client_protocol_version", "new"}, 400, 36},
		{"client command", "exit", nil, 400, 62},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := post(t, engine, c.sql, c.params...)
			require.Equal(t, c.status, a.status, a.body)
			require.Equal(t, []string{itoa(c.code)}, a.header.Values("X-ClickHouse-Exception-Code"), a.body)
			require.True(t, strings.HasPrefix(a.body, "Code: "+itoa(c.code)+". DB::Exception: "), a.body)
			require.Equal(t, 1, strings.Count(a.body, "DB::Exception"), a.body)
			require.Regexp(t, `\([A-Z_]+\) \(version 26\.[0-9.]+\)\n$`, a.body)
		})
	}
	a := do(t, engine, http.MethodGet, "", nil, "query", "CREATE TABLE never (n UInt8) ENGINE = Memory")
	require.Equal(t, "164", a.header.Get("X-ClickHouse-Exception-Code"), "GET is for reading")
	a = do(t, engine, http.MethodGet, "", nil, "query", "SELEC 1")
	require.Equal(t, "62", a.header.Get("X-ClickHouse-Exception-Code"))
	a = do(t, engine, http.MethodPut, "SELECT 1", nil)
	require.Equal(t, http.StatusNotImplemented, a.status)
}

func TestErrorInTheMiddleOfAResult(t *testing.T) {
	sql := "SELECT number, throwIf(number = 3000000, 'too far') FROM numbers(4000000)"
	a := post(t, shared(t), sql)
	tag := a.header.Get("X-ClickHouse-Exception-Tag")
	require.Len(t, tag, 16)
	require.Equal(t, http.StatusOK, a.status, "it was sent before the error")
	require.Regexp(t, `\r\n__exception__\r\n`+tag+`\r\nCode: 395\. DB::Exception: too far.*\n\n\d+ `+tag+`\r\n__exception__\r\n$`, a.body[len(a.body)-400:])

	a = post(t, shared(t), sql, "wait_end_of_query", "1")
	require.Equal(t, http.StatusInternalServerError, a.status, "held back until the end")
	require.Equal(t, "395", a.header.Get("X-ClickHouse-Exception-Code"))
	require.NotContains(t, a.body, "1000000\t")
}

func TestSummaryOfALongResult(t *testing.T) {
	resp, err := plain.Post(shared(t).URL(), "", strings.NewReader("SELECT number FROM numbers(1000000)"))
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, resp.Trailer.Get("X-ClickHouse-Summary"), `"result_rows":"1000000"`)
}

func TestAcceptEncoding(t *testing.T) {
	a := do(t, shared(t), http.MethodPost, "SELECT number FROM numbers(100000)", func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip, deflate") })
	require.Equal(t, "gzip", a.header.Get("Content-Encoding"))
	r, err := gzip.NewReader(strings.NewReader(ok(t, a)))
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, 100_000, strings.Count(string(text), "\n"))
	a = do(t, shared(t), http.MethodPost, "SELECT nosuch", func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") })
	require.Contains(t, a.body, "Code: 47", "errors are sent as they are")
	a = post(t, shared(t), "SELECT 1", "compress", "1")
	require.NotEqual(t, "1\n", ok(t, a))
}

func TestAuthentication(t *testing.T) {
	engine := chdbtest.Start(t, chdb.Config{Name: "closed", User: "pointsman", Password: "secret"})
	require.NoError(t, chdbtest.Open(t, engine).Ping(t.Context()))
	basic := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	headers := func(user, password string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("X-ClickHouse-User", user)
			r.Header.Set("X-ClickHouse-Key", password)
		}
	}
	for _, edit := range []func(*http.Request){basic("pointsman", "secret"), headers("pointsman", "secret")} {
		ok(t, do(t, engine, http.MethodPost, "SELECT 1", edit))
	}
	ok(t, post(t, engine, "SELECT 1", "user", "pointsman", "password", "secret"))
	for _, edit := range []func(*http.Request){nil, basic("pointsman", "wrong"), basic("other", "secret"), headers("pointsman", ""), headers("", "secret")} {
		a := do(t, engine, http.MethodPost, "SELECT 1", edit)
		require.Equal(t, http.StatusUnauthorized, a.status)
		require.Equal(t, "516", a.header.Get("X-ClickHouse-Exception-Code"))
		require.NotContains(t, a.body, "secret")
	}
	resp, err := plain.Get(engine.URL() + "/ping")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode, "a ping needs no credentials")
}
