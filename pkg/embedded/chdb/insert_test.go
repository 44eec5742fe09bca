package chdb_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
)

func TestInsertNeverReadsRowsAsSQL(t *testing.T) {
	engine := shared(t)
	conn := chdbtest.Open(t, engine)
	db := database(t, conn)
	ok(t, post(t, engine, "CREATE TABLE "+db+".t (n UInt64, s String) ENGINE = MergeTree ORDER BY n"))
	nasty := "a\n\n; DROP TABLE " + db + ".t;\n\nSELECT 'x"
	quoted := strings.ReplaceAll(nasty, "\n", `\n`)
	for _, c := range []struct{ name, query, body, want string }{
		{"csv in the body", "INSERT INTO t FORMAT CSV", "1,\"" + nasty + "\"\n", nasty},
		{"all in the body", "", "INSERT INTO t FORMAT CSV\n1,\"" + nasty + "\"\n", nasty},
		{"json with a blank line", "INSERT INTO t FORMAT JSONEachRow", "{\"n\":1,\"s\":\"" + quoted + "\"}\n\n", nasty},
		{"tsv", "INSERT INTO t (n, s) FORMAT TSV", "1\t" + quoted + "\n", nasty},
		{"values", "", "INSERT INTO t VALUES (1, '" + strings.ReplaceAll(nasty, "'", `\'`) + "')", nasty},
		{"values in the body", "INSERT INTO t VALUES", "(1, 'it''s; fine') -- it's\n;", "it's; fine"},
		{"settings", "INSERT INTO t SETTINGS format_csv_delimiter = '|' FORMAT CSV", "1|x\n", "x"},
		{"input", "INSERT INTO t SELECT a + 1, concat(b, '!') FROM input('a UInt64, b String') FORMAT CSV", "0,\"y;\n\nz\"\n", "y;\n\nz!"},
		{"row binary", "INSERT INTO t FORMAT RowBinary", "\x01\x00\x00\x00\x00\x00\x00\x00\x03\n\n;", "\n\n;"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ok(t, post(t, engine, "TRUNCATE TABLE "+db+".t"))
			a := post(t, engine, c.body, "query", c.query, "database", db)
			ok(t, a)
			require.Contains(t, a.header.Get("X-ClickHouse-Summary"), `"written_rows":"1"`)
			var n uint64
			var s string
			require.NoError(t, conn.QueryRow(t.Context(), "SELECT n, s FROM "+db+".t").Scan(&n, &s))
			require.Equal(t, uint64(1), n)
			require.Equal(t, c.want, s)
		})
	}
	ok(t, post(t, engine, "TRUNCATE TABLE "+db+".t"))
	a := post(t, engine, "INSERT INTO "+db+".t VALUES (1, 'a'); DROP TABLE "+db+".t")
	require.Equal(t, "33", a.header.Get("X-ClickHouse-Exception-Code"))
	a = post(t, engine, "1,a\nnonsense,b\n", "query", "INSERT INTO "+db+".t FORMAT CSV")
	require.Equal(t, http.StatusBadRequest, a.status, a.body)
	require.Equal(t, "0\n", ok(t, post(t, engine, "SELECT count() FROM "+db+".t")), "nothing of either")
}

func TestInsertParquetAndNative(t *testing.T) {
	engine := shared(t)
	db := database(t, chdbtest.Open(t, engine))
	ok(t, post(t, engine, "CREATE TABLE "+db+".t (n UInt64, s String) ENGINE = MergeTree ORDER BY n"))
	for _, format := range []string{"Parquet", "Native", "ArrowStream", "Avro", "JSONCompactEachRow", "MsgPack"} {
		ok(t, post(t, engine, "TRUNCATE TABLE "+db+".t"))
		rows := ok(t, post(t, engine, "SELECT number AS n, repeat('\\n', number % 7) AS s FROM numbers(5000) FORMAT "+format))
		ok(t, post(t, engine, rows, "query", "INSERT INTO "+db+".t FORMAT "+format))
		require.Equal(t, "5000\t12497500\t14995\n", ok(t, post(t, engine, "SELECT count(), sum(n), sum(length(s)) FROM "+db+".t")), format)
	}
}

func TestInsertBodiesWithContentEncoding(t *testing.T) {
	engine := shared(t)
	db := database(t, chdbtest.Open(t, engine))
	ok(t, post(t, engine, "CREATE TABLE "+db+".t (n UInt64) ENGINE = MergeTree ORDER BY n"))
	var plainRows strings.Builder
	for i := range 50_000 {
		fmt.Fprintln(&plainRows, i)
	}
	zstdWriter := func(w io.Writer) io.WriteCloser {
		z, err := zstd.NewWriter(w)
		require.NoError(t, err)
		return z
	}
	for name, encoder := range map[string]func(io.Writer) io.WriteCloser{
		"zstd": zstdWriter,
		"lz4":  func(w io.Writer) io.WriteCloser { return lz4.NewWriter(w) },
	} {
		var body bytes.Buffer
		w := encoder(&body)
		_, err := w.Write([]byte(plainRows.String()))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		ok(t, post(t, engine, "TRUNCATE TABLE "+db+".t"))
		ok(t, do(t, engine, http.MethodPost, body.String(), func(r *http.Request) { r.Header.Set("Content-Encoding", name) }, "query", "INSERT INTO "+db+".t FORMAT TSV"))
		require.Equal(t, "50000\n", ok(t, post(t, engine, "SELECT count() FROM "+db+".t")))
	}
	a := do(t, engine, http.MethodPost, "x", func(r *http.Request) { r.Header.Set("Content-Encoding", "snappy-ish") }, "query", "SELECT 1")
	require.Equal(t, "89", a.header.Get("X-ClickHouse-Exception-Code"))
}

// TestInsertBrokenOff: a client that goes away in the middle of its rows inserts none of them.
func TestInsertBrokenOff(t *testing.T) {
	engine := shared(t)
	db := database(t, chdbtest.Open(t, engine))
	ok(t, post(t, engine, "CREATE TABLE "+db+".t (n UInt64) ENGINE = MergeTree ORDER BY n"))
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, engine.URL()+"/?database="+db+"&query_id=broken&query=INSERT%20INTO%20t%20FORMAT%20TSV", r)
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		resp, err := plain.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		done <- err
	}()
	for i := range 100_000 {
		_, err := fmt.Fprintln(w, i)
		require.NoError(t, err)
	}
	cancel()
	require.NoError(t, w.CloseWithError(context.Canceled))
	require.Error(t, <-done)
	require.Eventually(t, func() bool { return post(t, engine, "SELECT 1", "query_id", "broken").status == 200 }, patience, tick, "it is over")
	require.Equal(t, "0\n", ok(t, post(t, engine, "SELECT count() FROM "+db+".t")))
}
