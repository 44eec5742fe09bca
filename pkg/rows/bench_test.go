package rows_test

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/rows"
)

// benchTables are what results look like: a text with a quote or a backslash here and there, as in test/bench/execution; and the
// columns of a report.
var benchTables = map[string]struct {
	columns []event.Column
	row     func(r *rand.Rand) []any
}{
	"text": {
		[]event.Column{{Name: "number", Type: "UInt64"}, {Name: "text", Type: "String"}},
		func(r *rand.Rand) []any {
			text := make([]byte, 100)
			for i := range text {
				text[i] = byte(' ' + r.IntN(0x7f-' '))
			}
			return []any{r.Uint64(), string(text)}
		},
	},
	"report": {
		[]event.Column{
			{Name: "id", Type: "Int64"},
			{Name: "day", Type: "Date"},
			{Name: "at", Type: "DateTime64(3, 'UTC')"},
			{Name: "price", Type: "Decimal(18, 4)"},
			{Name: "share", Type: "Float64"},
			{Name: "city", Type: "Nullable(String)"},
			{Name: "n", Type: "Int32"},
			{Name: "open", Type: "Bool"},
			{Name: "tags", Type: "Array(String)"},
		},
		func(r *rand.Rand) []any {
			then := at.Add(time.Duration(r.IntN(1e6)) * time.Millisecond).Truncate(time.Millisecond)
			return []any{
				r.Int64(), then, then, json.Number("12345678.9012"), r.Float64(), []any{nil, "Tōkyō", "Berlin"}[r.IntN(3)], int64(r.Int32()), r.IntN(2) == 0,
				[]any{"red", "a,b"},
			}
		},
	},
}

// BenchmarkWrite writes rows in each format, by the bytes that come out.
func BenchmarkWrite(b *testing.B) {
	for name, table := range benchTables {
		source := rand.New(rand.NewPCG(1, 2))
		data := make([][]any, 1000)
		for i := range data {
			data[i] = table.row(source)
		}
		for _, f := range []rows.Format{rows.NDJSON, rows.CSV, rows.Arrow} {
			b.Run(name+"/"+string(f), func(b *testing.B) {
				w, err := rows.NewWriter(f, io.Discard, table.columns)
				require.NoError(b, err)
				b.ReportAllocs()
				n := int64(0)
				for b.Loop() {
					if err := w.Write(data[n%int64(len(data))]); err != nil {
						b.Fatal(err)
					}
					n++
				}
				require.NoError(b, w.Close())
				b.SetBytes(w.Size() / n)
			})
		}
	}
}
