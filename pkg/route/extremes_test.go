package route_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
)

// odd are numbers that an engine that is ill, or its driver, may report.
var odd = []float64{0, -1, -1e18, 1, 0.5, 1e18, math.MaxFloat64, 5, 4000, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1)}

// wild is a policy of some pools with any options, and an input in which everything that is measured may be anything.
func wild(t *rapid.T, tb testing.TB) route.Input {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	n := rapid.IntRange(1, 8).Draw(t, "pools")
	var b strings.Builder
	b.WriteString("engines:\n")
	for i := range n {
		fmt.Fprintf(&b, "  p%d: {kind: k%d, cost_per_second: %s", i, i%2, pick("cost", "0", "1", "1000000000", "0.000000001"))
		for _, o := range []string{
			"slots: 2", "sleeps_at_zero: true", "spills: true", "replica: true", "max_queue_wait_ms: 100", "max_memory_per_query: 1 GB",
			"bytes_per_second: 1 GB", "queues: [{queue: q}, {queue: r, resource: big}]",
		} {
			if rapid.IntRange(0, 3).Draw(t, o) == 0 {
				b.WriteString(", " + o)
			}
		}
		b.WriteString("}\n")
	}
	b.WriteString("rules:\n  - {name: loaded, when: {p0_load_gt: 0.5}, route: p0}\n  - {name: default, route: auto}\n" +
		"exploration: {share: 0.3, new_share: 0.2, max_extra_share: 1}\ndefaults: {no_candidate: " + pick("left", "wait", "reject") + "}\n")
	in := input(tb)
	in.Policy, in.Signals, in.Seed = load(tb, b.String()), signal.Snapshot{}, rapid.Uint64().Draw(t, "seed")
	in.Tenant = &budget.TenantAccount{Slices: []budget.Slice{{ExecMs: 1_000_000_000}}}
	in.Task.SLASeconds = new(rapid.SampledFrom([]float64{-5, 0, 0.001, 1, 60, 1e9}).Draw(t, "sla"))
	in.Task.TimeoutSeconds = new(rapid.SampledFrom([]float64{1, 60, 1e9}).Draw(t, "timeout"))
	in.Task.EngineHint, in.Task.ResourceHint = pick("hint", "", "p1", "k1", "nowhere"), pick("resource", "", "big")
	in.Estimates[route.ScanBytes] = signal.Of(rapid.SampledFrom([]float64{0, 1, 1e9, 1e18}).Draw(t, "bytes"), signal.Bytes, "catalog", now)
	in.History.Found = map[profile.Key]profile.Profile{}
	in.Inflight = map[string]int{"p0": rapid.IntRange(0, 100).Draw(t, "inflight")}
	for i := range n {
		p := &in.Policy.Pools[i]
		o := signal.Observation{Cluster: p.Name, Source: "engine", At: now, Values: map[signal.Name]signal.Value{}}
		for _, name := range []signal.Name{
			signal.Ready, signal.Healthy, signal.Running, signal.Queued, signal.Slots, signal.EstWaitMs, signal.DonePerSecond, signal.SlowDown,
			signal.LagMs, signal.WakeMs,
		} {
			if rapid.IntRange(0, 2).Draw(t, string(name)) > 0 {
				age := time.Duration(rapid.IntRange(-20, 20).Draw(t, "age")) * time.Second
				o.Values[name] = signal.Of(rapid.SampledFrom(odd).Draw(t, "value"), "", "engine", now.Add(-age))
			}
		}
		in.Signals.Merge(o)
		if rapid.Bool().Draw(t, "known") {
			ms := rapid.SampledFrom([]float64{0, 1, 5, 4000, 1e12})
			history(profile.Profile{
				Key: profile.Key{Cluster: p.Name}, Runs: 10, Successes: rapid.Int64Range(0, 10).Draw(t, "ok"),
				ExecMsP50: new(ms.Draw(t, "p50")), ExecMsP95: new(ms.Draw(t, "p95")),
			})(&in)
		}
	}
	return in
}

// TestWhateverIsMeasured: a decision is the same each time and after a round trip, its numbers are numbers, its propensities add up, and
// it sends nothing to a place that is known to be down.
func TestWhateverIsMeasured(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := wild(rt, t)
		d := route.Decide(in)
		sum := 0.0
		for i := range d.Candidates {
			c := &d.Candidates[i]
			sum += c.Propensity
			if c.Rank == 0 {
				continue
			}
			p, ok := c.Estimate.PHit.Get()
			require.True(rt, ok && p >= 0 && p <= 1, route.Explain(d))
			_, costed := c.Estimate.Cost.Get()
			_, timed := c.Estimate.TotalMs.Get()
			require.True(rt, costed && timed, route.Explain(d))
		}
		if d.Kind == event.Route {
			require.InDelta(rt, 1, sum, 1e-8)
			require.Positive(rt, candidateAt(d, d.Target).Propensity)
			health := in.Signals.Get(d.Cluster, signal.Healthy, now, in.Policy.Defaults.SignalMaxAge).Amount()
			ready := in.Signals.Get(d.Cluster, signal.Ready, now, in.Policy.Defaults.SignalMaxAge).Amount()
			down := health.Or(1) == 0 && ready.Or(0) != 0
			require.False(rt, down && in.Policy.Defaults.NoCandidate == policy.RejectTask, route.Explain(d))
		}
		require.NotContains(rt, route.ExplainInput(in).Text, "NaN")

		first, err := json.Marshal(d)
		require.NoError(rt, err)
		recorded, err := json.Marshal(in)
		require.NoError(rt, err)
		var back route.Input
		require.NoError(rt, json.Unmarshal(recorded, &back))
		back.Policy = in.Policy
		again, err := json.Marshal(route.Decide(back))
		require.NoError(rt, err)
		require.Equal(rt, string(first), string(again))
	})
}

// TestASwarmDoesNotSeeAnEmptyQueue: forty dashboards within one signal's age, at a pool that has had nothing to do, so that nobody knows
// how fast it works queries off.
func TestASwarmDoesNotSeeAnEmptyQueue(t *testing.T) {
	wait := func(sent int) float64 {
		d := route.Decide(input(t, func(in *route.Input) { in.Inflight = map[string]int{"interactive": sent} }))
		ms, ok := d.Candidates[0].Estimate.QueueMs.Get()
		require.True(t, ok)
		return ms
	}
	require.Zero(t, wait(0))
	require.Zero(t, wait(3), "the fourth slot is free")
	require.Positive(t, wait(4))
	require.InEpsilon(t, 37*wait(4), wait(40), 0.01)

	d := route.Decide(input(t, func(in *route.Input) { in.Inflight = map[string]int{"interactive": 400} }))
	require.Equal(t, "batch", d.Cluster, route.Explain(d))
	d = route.Decide(input(t, func(in *route.Input) {
		in.Policy = load(t, "engines:\n  interactive: {kind: clickhouse, slots: 4}\n  batch: {kind: spark}\nrules:\n"+
			"  - {name: idle, when: {interactive_queue_wait_ms_lt: 500}, route: interactive}\n  - {name: default, route: batch}\n")
		in.Inflight = map[string]int{"interactive": 40}
	}))
	require.Equal(t, "default", d.Rule, "rules do not take the queue for empty either")
}

// TestWithoutSlotsNoWaitEnds: a pool that says that nothing waits, and that nothing can run.
func TestWithoutSlotsNoWaitEnds(t *testing.T) {
	d := route.Decide(input(t, set("interactive", map[signal.Name]float64{signal.Slots: 0})))
	require.Equal(t, "batch", d.Cluster, route.Explain(d))
	require.Equal(t, signal.Number{}, d.Candidates[0].Estimate.QueueMs)
}
