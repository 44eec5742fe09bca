package profiler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/profiler"
)

// BenchmarkStore is the way from the topic into the history, from the first row that is there to the last, offsets committed.
// Compare with BenchmarkRawInsert of pkg/history in one run.
func BenchmarkStore(b *testing.B) {
	const n, partitions = 50_000, 6
	var stored, seconds float64
	for b.Loop() {
		w := newBenchOf(b, partitions)
		cfg := profiler.Default()
		cfg.Kafka, cfg.History, cfg.HTTP.Address, cfg.Telemetry.Admin.Address = w.cfg.Kafka, w.cfg.History, "", "127.0.0.1:0"
		cl := w.broker.Client(b)
		for from := 0; from < n; from += 5000 {
			recs := make([]*kgo.Record, 5000)
			for i := range recs {
				recs[i] = w.record(event.TopicOutcomes, outcome(from+i), int32(i%partitions))
			}
			require.NoError(b, cl.ProduceSync(b.Context(), recs...).FirstErr())
		}
		app, err := profiler.New(b.Context(), cfg, telemetry.Discard())
		require.NoError(b, err)
		require.NoError(b, app.Start(b.Context()))
		var first uint64
		var began time.Time
		for {
			got, err := w.try("SELECT count() FROM outcomes")
			if err == nil && got > 0 && first == 0 {
				first, began = got, time.Now()
			}
			if err == nil && got >= n-500 { // what is left at the end waits for more
				stored, seconds = stored+float64(got-first), seconds+time.Since(began).Seconds()
				break
			}
			time.Sleep(40 * time.Millisecond) // the question costs the engine time too
		}
		require.NoError(b, app.Stop(b.Context()))
	}
	b.ReportMetric(stored/seconds, "rows/s")
}
