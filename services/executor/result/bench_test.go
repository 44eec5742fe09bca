package result_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/rows"
	"github.com/pointsman/pointsman/services/executor/result"
)

// BenchmarkSink writes rows of about 130 bytes into a file of each format. Compare with what the engine's client gives
// (BenchmarkRows of the adapters): storing must not be what a result waits for.
func BenchmarkSink(b *testing.B) {
	for _, f := range []rows.Format{rows.NDJSON, rows.CSV, rows.Arrow} {
		b.Run(string(f), func(b *testing.B) {
			s, err := result.Open(result.Config{Folder: b.TempDir(), Keep: time.Hour})
			require.NoError(b, err)
			k := s.New("t/1", f, columns("UInt64", "String", "Nullable(Float64)", "DateTime"), 0)
			row := []any{uint64(9007199254740993), strings.Repeat("x", 80), 0.25, at}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.Add(row); err != nil {
					b.Fatal(err)
				}
			}
			r, err := k.Finish(at)
			require.NoError(b, err)
			b.SetBytes(r.Bytes / r.Rows)
		})
	}
}
