package executor_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/rows"
	"github.com/pointsman/pointsman/services/executor"
)

// One row of values that every engine has, and how it looks in each format, whatever engine it comes from: 64 bits, a small number,
// NULL, an empty text, a text with signs of its own, decimals with the places of their type, a date, an instant, a fraction.
var sameRow = map[rows.Format]string{
	rows.NDJSON: `["9007199254740993",7,null,"","a \"quoted\", line\nbreak é😀","1.5000","-0.01","2026-11-30","2026-11-30T09:15:00.123456Z",0.1]` + "\n",
	rows.CSV: "n,i,z,e,s,p,q,d,t,f\r\n" +
		`9007199254740993,7,,"","a ""quoted"", line` + "\n" + `break é😀",1.5000,-0.01,2026-11-30,2026-11-30T09:15:00.123456Z,0.1` + "\r\n",
	rows.Arrow: "9007199254740993|7|(null)||a \"quoted\", line\nbreak é😀|1.5|-0.01|2026-11-30|2026-11-30T09:15:00.123456Z|0.1",
}

// sameFromEveryEngine runs a statement that gives the row, and compares each format's file byte for byte, and Arrow's by its values.
func sameFromEveryEngine(t *testing.T, b *bench, sql string, edit ...func(*event.RouteDecision)) {
	t.Helper()
	for f, want := range sameRow {
		id := "same-" + string(f)
		b.decide(b.route(id, sql, append(edit, func(d *event.RouteDecision) { d.Task.ResultFormat = string(f); d.TaskDigest = d.Task.Digest() })...))
		o := b.outcome(id)
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		require.NotEmpty(t, o.Result.File, "small results are files here")
		data, err := os.ReadFile(filepath.Join(b.results, o.Result.File))
		require.NoError(t, err)
		got := string(data)
		if f == rows.Arrow {
			got = arrowRow(t, data)
			// A decimal whose precision is not declared, such as MySQL's, is text there, with all its places.
			got = strings.Replace(got, "|1.5000|", "|1.5|", 1)
		}
		require.Equal(t, want, got, "%s of %v", f, o.Result.Columns)
	}
}

// arrowRow is the only row of an Arrow stream, as text.
func arrowRow(t *testing.T, data []byte) string {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	batch := r.RecordBatch()
	require.EqualValues(t, 1, batch.NumRows())
	values := make([]string, batch.NumCols())
	for i, c := range batch.Columns() {
		values[i] = c.ValueStr(0)
	}
	return strings.Join(values, "|")
}

func allFiles(c *executor.Config) { c.Results.Inline = 0 }

func TestSameFromTheEmbeddedEngine(t *testing.T) {
	small := chdbtest.Start(t, chdb.Config{Name: interactive})
	b := newBench(t, 1)
	b.servers = nil
	b.config = func(c *executor.Config) {
		c.Engines = []executor.EngineConfig{{Name: interactive, Kind: "clickhouse", URL: small.URL(), User: "default", Slots: 8}}
		allFiles(c)
	}
	b.start()
	sameFromEveryEngine(t, b, `SELECT toInt64(9007199254740993) AS n, toInt32(7) AS i, NULL::Nullable(String) AS z, '' AS e, 'a "quoted", line
break é😀' AS s, toDecimal64('1.5', 4) AS p, toDecimal32('-0.01', 2) AS q, toDate('2026-11-30') AS d,
		toDateTime64('2026-11-30 09:15:00.123456', 6, 'UTC') AS t, toFloat64(0.1) AS f`)
}
