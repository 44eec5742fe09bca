package chdb_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
)

// BenchmarkEngine measures what an engine costs: `go test -bench Engine -benchtime 1x`.
func BenchmarkEngine(b *testing.B) {
	lib := chdbtest.Library(b)
	for b.Loop() {
		start := time.Now()
		engine, err := chdb.Start(b.Context(), chdb.Config{Name: "bench", DataDir: b.TempDir(), LibPath: lib, Logger: discard()})
		require.NoError(b, err)
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "start-ms")
		b.ReportMetric(float64(memory(b, engine.Pid(), "VmRSS")>>20), "idle-MiB")
		options := engine.Options()
		conn, err := clickhouse.Open(options)
		require.NoError(b, err)
		b.ReportMetric(median(b, 2000, func() {
			var n uint8
			require.NoError(b, conn.QueryRow(b.Context(), "SELECT 1").Scan(&n))
		}), "select-1-p50-µs")
		b.ReportMetric(float64(memory(b, engine.Pid(), "VmRSS")>>20), "after-2000-MiB")
		require.NoError(b, conn.Exec(b.Context(), "CREATE TABLE t (n UInt64, at DateTime64(3), name LowCardinality(String), text String) ENGINE = MergeTree ORDER BY n"))
		const rows = 100_000
		insert := median(b, 5, func() {
			batch, err := conn.PrepareBatch(b.Context(), "INSERT INTO t")
			require.NoError(b, err)
			for i := range rows {
				require.NoError(b, batch.Append(uint64(i), start, "name", "some text of a usual length"))
			}
			require.NoError(b, batch.Send())
		})
		b.ReportMetric(rows/insert*1e6, "insert-rows/s")
		b.ReportMetric(median(b, 200, func() {
			var n, sum uint64
			require.NoError(b, conn.QueryRow(b.Context(), "SELECT count(), sum(n) FROM t WHERE n < 1000").Scan(&n, &sum))
		}), "lookup-p50-µs")
		b.ReportMetric(float64(memory(b, engine.Pid(), "VmHWM")>>20), "peak-MiB")
		start = time.Now()
		require.NoError(b, engine.Stop(b.Context()))
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "stop-ms")
	}
}

// median is the median time of n calls, in microseconds.
func median(b *testing.B, n int, do func()) float64 {
	b.Helper()
	times := make([]time.Duration, n)
	for i := range times {
		start := time.Now()
		do()
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	return float64(times[n/2].Microseconds())
}
