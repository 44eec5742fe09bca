package route_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
)

// BenchmarkDecide decides with 20 candidates and 50 rules, everything known and warm.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{2, 20} {
		b.Run(fmt.Sprintf("candidates=%d", n), func(b *testing.B) {
			in := wide(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if d := route.Decide(in); d.Cluster == "" {
					b.Fatal(route.Explain(d))
				}
			}
		})
	}
}

func wide(b *testing.B, pools int) route.Input {
	var text strings.Builder
	text.WriteString("engines:\n")
	for i := range pools {
		fmt.Fprintf(&text, "  pool%d: {kind: clickhouse, slots: 8, bytes_per_second: %d MB, cost_per_second: %d}\n", i, 100+i, 1+i%3)
	}
	text.WriteString("rules:\n")
	for i := range 49 {
		fmt.Fprintf(&text, "  - {name: r%d, when: {client_tag: tag%d, estimated_bytes_gte: %d GB}, route: pool0}\n", i, i, i+1)
	}
	text.WriteString("  - {name: default, route: auto}\n")
	in := input(b)
	in.Policy = load(b, text.String())
	in.Signals = signal.Snapshot{}
	for i := range pools {
		observe(&in, fmt.Sprintf("pool%d", i), map[signal.Name]float64{
			signal.Ready: 1, signal.Healthy: 1, signal.Running: 1, signal.Queued: 0, signal.Slots: 8, signal.EstWaitMs: float64(i),
		})
	}
	in.Now = in.Now.Add(time.Millisecond)
	return in
}
