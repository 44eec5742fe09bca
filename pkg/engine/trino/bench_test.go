package trino_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/trino"
)

const benchPages, benchRows = 20, 8192

// paged serves a result like a server that has it ready.
func paged(b *testing.B) *httptest.Server {
	b.Helper()
	var data strings.Builder
	for i := range benchRows {
		if i > 0 {
			data.WriteByte(',')
		}
		fmt.Fprintf(&data, `[%d,"%s",%d.25,"2026-11-30 09:15:00.123 UTC"]`, i, strings.Repeat("x", 100), i)
	}
	columns := `"columns":[`
	for i, typ := range []string{"bigint", "varchar", "double", "timestamp with time zone"} {
		if i > 0 {
			columns += ","
		}
		columns += fmt.Sprintf(`{"name":"c%d","type":%q,"typeSignature":{"rawType":%q,"arguments":[]}}`, i, typ, typ)
	}
	columns += "],"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var page int
		_, _ = fmt.Sscanf(r.URL.Path, "/v1/statement/executing/q/%d", &page)
		switch {
		case r.URL.Path == "/v1/query":
			_, _ = w.Write([]byte("[]"))
		case r.Method == http.MethodPost:
			_, _ = w.Write([]byte(`{"id":"q","nextUri":"http://x/v1/statement/executing/q/1","stats":{"state":"QUEUED"}}`))
		case page <= benchPages:
			fmt.Fprintf(w, `{"id":"q","nextUri":"http://x/v1/statement/executing/q/%d",%s"data":[%s],"stats":{"state":"RUNNING"}}`, page+1, columns, data.String())
		default:
			fmt.Fprintf(w, `{"id":"q",%s"stats":{"state":"FINISHED"}}`, columns)
		}
	}))
	b.Cleanup(srv.Close)
	return srv
}

// BenchmarkRows is what reading rows costs through the adapter; BenchmarkRowsRaw is the least that a client does for them: it
// asks for the pages and decodes their JSON.
func BenchmarkRows(b *testing.B) {
	srv := paged(b)
	e, err := trino.Open(trino.Config{Name: "c", URL: srv.URL, User: "u"})
	require.NoError(b, err)
	defer func() { _ = e.Close() }()
	for b.Loop() {
		rows, err := e.Submit(b.Context(), engine.Query{ID: "bench/1", SQL: "SELECT 1"})
		require.NoError(b, err)
		n := 0
		for rows.Next() {
			if _, err := rows.Values(); err != nil {
				b.Fatal(err)
			}
			n++
		}
		require.NoError(b, rows.Err())
		require.Equal(b, benchPages*benchRows, n)
	}
	b.ReportMetric(float64(b.N)*benchPages*benchRows/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkRowsRaw is the least that has to be done.
func BenchmarkRowsRaw(b *testing.B) {
	srv := paged(b)
	for b.Loop() {
		n := 0
		for page := 1; ; page++ {
			resp, err := http.Get(fmt.Sprintf("%s/v1/statement/executing/q/%d", srv.URL, page))
			require.NoError(b, err)
			var answer struct {
				NextURI string  `json:"nextUri"`
				Data    [][]any `json:"data"`
			}
			require.NoError(b, json.NewDecoder(resp.Body).Decode(&answer))
			require.NoError(b, resp.Body.Close())
			n += len(answer.Data)
			if answer.NextURI == "" {
				break
			}
		}
		require.Equal(b, benchPages*benchRows, n)
	}
	b.ReportMetric(float64(b.N)*benchPages*benchRows/b.Elapsed().Seconds(), "rows/s")
}
