package route_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
)

// BenchmarkDecide decides with 50 rules and a growing number of candidates, everything known and warm.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{2, 5, 20, 80} {
		b.Run(fmt.Sprintf("candidates=%d", n), func(b *testing.B) { decides(b, wide(b, n)) })
	}
	b.Run("candidates=20 with history", func(b *testing.B) { decides(b, remembered(wide(b, 20), 20)) })
	b.Run("candidates=20 that all lose by the SLA", func(b *testing.B) { decides(b, queueing(wide(b, 20))) })
}

func decides(b *testing.B, in route.Input) {
	b.ReportAllocs()
	for b.Loop() {
		if d := route.Decide(in); d.Cluster == "" {
			b.Fatal(route.Explain(d))
		}
	}
}

// BenchmarkDecideInBatches says how long the slowest of many decisions take: the garbage collector and other goroutines are in it.
func BenchmarkDecideInBatches(b *testing.B) {
	in := wide(b, 20)
	times := make([]time.Duration, 0, 1<<20)
	for b.Loop() {
		start := time.Now()
		route.Decide(in)
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds()), "p99-ns")
}

// BenchmarkMarshal writes a decision as the router does.
func BenchmarkMarshal(b *testing.B) {
	for _, n := range []int{2, 20} {
		b.Run(fmt.Sprintf("candidates=%d", n), func(b *testing.B) {
			d := route.Decide(wide(b, n))
			data, err := event.Marshal(d)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := event.Marshal(d); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(data)), "bytes")
		})
	}
}

// TestAllocations bounds what a decision allocates: little, and no more of it for more candidates or more rules.
func TestAllocations(t *testing.T) {
	count := func(in route.Input) float64 { return testing.AllocsPerRun(50, func() { route.Decide(in) }) }
	two, twenty := count(wide(t, 2)), count(wide(t, 20))
	require.LessOrEqual(t, twenty, 48.0)
	require.InDelta(t, two, twenty, 4)
	known := remembered(wide(t, 20), 20)
	require.LessOrEqual(t, count(known), 60.0)
	require.InDelta(t, count(known), count(remembered(known, 5000)), 4, "flat in what else is known")
}

// TestDecisionsAreSmall bounds what a decision takes on the wire: every reader of the topic pays for it.
func TestDecisionsAreSmall(t *testing.T) {
	size := func(n int) int {
		data, err := event.Marshal(route.Decide(wide(t, n)))
		require.NoError(t, err)
		return len(data)
	}
	two, twenty := size(2), size(20)
	require.Less(t, two, 3600)
	require.Less(t, (twenty-two)/18, 1350, "bytes a candidate, %d and %d in all", two, twenty)
}

// remembered gives the fingerprint a history on every pool, and the router the profiles of others besides.
func remembered(in route.Input, profiles int) route.Input {
	in.History.Found = map[profile.Key]profile.Profile{}
	for i := range profiles {
		key := profile.Key{Fingerprint: in.Fingerprint, Engine: "clickhouse", Cluster: fmt.Sprintf("pool%d", i%20)}
		if i >= 20 {
			key.Fingerprint = fmt.Sprintf("pm1-%d", i)
		}
		in.History.Found[key] = profile.Profile{
			Key: key, Window: "7d", Runs: 100, Successes: 99, Tasks: 90, Hits: 88, ExecMsP50: new(100 + float64(i%20)), ExecMsP95: new(float64(300)),
		}
	}
	return in
}

// queueing gives every pool but one a queue that is too long, so that a flip is looked for at each.
func queueing(in route.Input) route.Input {
	for c := range in.Signals {
		if c != "pool0" {
			observe(&in, c, map[signal.Name]float64{signal.EstWaitMs: 30_000})
		}
	}
	return in
}

func wide(b testing.TB, pools int) route.Input {
	var text strings.Builder
	text.WriteString("engines:\n")
	for i := range pools {
		fmt.Fprintf(&text, "  pool%d: {kind: clickhouse, slots: 8, bytes_per_second: %d MB, cost_per_second: %d}\n", i, 100+i, 1+i%3)
	}
	text.WriteString("rules:\n")
	for i := range 49 { // none of which matches
		when := fmt.Sprintf("client_tag: [tag%d, etl], estimated_bytes_gte: %d GB", i, i+1)
		switch i % 3 {
		case 1:
			when = fmt.Sprintf("estimated_bytes_lt: 500 GB, read_only: true, pool%d_queue_wait_ms_gte: %d", i%pools, 1000-i)
		case 2:
			when = fmt.Sprintf("any_of: [{join_tables_gt: %d}, {has_udf: true}, {tenant: [t%d, u%d]}]", 4+i, i, i)
		}
		fmt.Fprintf(&text, "  - {name: r%d, when: {%s}, route: pool0}\n", i, when)
	}
	text.WriteString("  - {name: default, route: auto}\n")
	in := input(b)
	in.Policy = load(b, text.String())
	in.Task.Tags = []string{"dashboard", "weekly"}
	in.Signals = signal.Snapshot{}
	for i := range pools {
		observe(&in, fmt.Sprintf("pool%d", i), map[signal.Name]float64{
			signal.Ready: 1, signal.Healthy: 1, signal.Running: 1, signal.Queued: 0, signal.Slots: 8, signal.EstWaitMs: float64(i),
		})
	}
	in.Now = in.Now.Add(time.Millisecond)
	return in
}
