package route_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
)

// drawn varies everything a decision depends on.
func drawn(t *rapid.T, tb testing.TB) route.Input {
	in := input(tb)
	in.Task.SLASeconds = new(rapid.Float64Range(0.1, 100).Draw(t, "sla"))
	if rapid.Bool().Draw(t, "bytesKnown") {
		in.Estimates[route.ScanBytes] = signal.Of(rapid.Float64Range(0, 1e12).Draw(t, "bytes"), signal.Bytes, "catalog", now)
	} else {
		delete(in.Estimates, route.ScanBytes)
	}
	in.History.Asked = rapid.Bool().Draw(t, "asked")
	for _, c := range []string{"interactive", "batch"} {
		delete(in.Signals, c)
		values := map[signal.Name]float64{}
		for _, name := range []signal.Name{signal.Ready, signal.Healthy, signal.Running, signal.Queued, signal.Slots, signal.EstWaitMs} {
			if rapid.Bool().Draw(t, c+string(name)) {
				values[name] = float64(rapid.IntRange(0, 20000).Draw(t, c+string(name)+"v"))
			}
		}
		observe(&in, c, values)
		if in.History.Asked && rapid.Bool().Draw(t, c+"hist") {
			p := profile.Profile{Key: profile.Key{Cluster: c}, Runs: rapid.Int64Range(1, 50).Draw(t, c+"runs")}
			p.Successes = rapid.Int64Range(0, p.Runs).Draw(t, c+"ok")
			p.MemoryKills = rapid.Int64Range(0, p.Runs-p.Successes).Draw(t, c+"kills")
			p.ExecMsP50 = new(rapid.Float64Range(1, 1e5).Draw(t, c+"p50"))
			history(p)(&in)
		}
		if rapid.IntRange(0, 3).Draw(t, c+"out") == 0 {
			in.Excluded = append(in.Excluded, event.Target{Engine: "clickhouse", Cluster: c})
		}
	}
	return in
}

func TestDecideProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawn(rt, t)
		d := route.Decide(in)
		again, err := json.Marshal(route.Decide(in))
		require.NoError(rt, err)
		first, err := json.Marshal(d)
		require.NoError(rt, err)
		require.Equal(rt, string(first), string(again), "equal inputs give equal bytes")

		require.NotEmpty(rt, d.Reasons, "every decision has a reason")
		winners := 0
		for _, c := range d.Candidates {
			require.Falsef(rt, c.Filtered != nil && c.Rank != 0, "a filtered candidate has no rank: %+v", c)
			require.Equal(rt, c.Rank > 1, c.LostBy != nil, "every loser, and nobody else, says what it lost by")
			if c.Rank == 1 {
				winners++
				require.Equal(rt, d.Target, c.Target)
				require.False(rt, slices.ContainsFunc(in.Excluded, func(x event.Target) bool { return x.Cluster == c.Cluster }))
				require.Equal(rt, 1.0, c.Propensity)
			}
		}
		if d.Kind == event.Route {
			require.Equal(rt, 1, winners)
		} else {
			require.Zero(rt, winners)
			require.NotNil(rt, d.Rejection)
			require.NotEmpty(rt, d.Rejection.Message)
		}

		var back event.RouteDecision
		require.NoError(rt, json.Unmarshal(first, &back))
		require.Equal(rt, route.Explain(d), route.Explain(back), "a decision of last week explains itself")
	})
}

// TestALongerSLANeverHurts: the probability of a hit, of every candidate.
func TestALongerSLANeverHurts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := fleet(rt, t)
		before := route.Decide(in)
		in.Task.SLASeconds = new(*in.Task.SLASeconds + rapid.Float64Range(0, 100).Draw(rt, "more"))
		after := route.Decide(in)
		for _, c := range before.Candidates {
			require.GreaterOrEqual(rt, hit(candidateAt(after, c.Target)), hit(&c))
		}
	})
}

func hit(c *event.Candidate) float64 {
	if c.Estimate == nil {
		return 0
	}
	p, _ := c.Estimate.PHit.Get()
	return p
}

// TestMissingIsNeitherZeroNorGood: a pool of which a signal is missing is no better off than when the signal says the best, and where
// that is a wait it is worse off. Its rank does not improve either.
func TestMissingIsNeitherZeroNorGood(t *testing.T) {
	best := map[signal.Name]float64{signal.EstWaitMs: 0, signal.Running: 0, signal.Queued: 0, signal.Healthy: 1, signal.Ready: 1, signal.Slots: 1000}
	rapid.Check(t, func(rt *rapid.T) {
		in := fleet(rt, t)
		var names []signal.Name
		for _, name := range []signal.Name{signal.EstWaitMs, signal.Running, signal.Queued, signal.Healthy, signal.Ready, signal.Slots} {
			if rapid.Bool().Draw(rt, string(name)) {
				names = append(names, name)
			}
		}
		good, missing, stale := in, in, in
		good.Signals, missing.Signals, stale.Signals = in.Signals.Clone(), in.Signals.Clone(), in.Signals.Clone()
		for _, name := range names {
			observe(&good, "p0", map[signal.Name]float64{name: best[name]})
			observe(&stale, "p0", map[signal.Name]float64{name: best[name]})
			old("p0", name)(&stale)
			without("p0", name)(&missing)
		}
		known := route.Decide(good)
		at := known.Candidates[0].Target
		for what, other := range map[string]route.Input{"missing": missing, "stale": stale} {
			d := route.Decide(other)
			if candidateAt(known, at).Filtered != nil {
				require.NotNil(rt, candidateAt(d, at).Filtered, "%s %v passes where the best does not", what, names)
				continue
			}
			if candidateAt(d, at).Filtered != nil {
				continue
			}
			require.LessOrEqual(rt, hit(candidateAt(d, at)), hit(candidateAt(known, at))+0.01, "%s %v\n%s\n%s", what, names, route.Explain(known), route.Explain(d))
			require.GreaterOrEqual(rt, band(candidateAt(d, at), "slaProbability"), band(candidateAt(known, at), "slaProbability"))
			wait := candidateAt(d, at).Estimate.QueueMs
			if _, ok := wait.Get(); !ok {
				require.Positive(rt, band(candidateAt(d, at), "slaProbability"), "a queue that nobody sees is never good enough")
				_, seen := candidateAt(known, at).Estimate.QueueMs.Get()
				if p := hit(candidateAt(known, at)); seen && p > 0.01 && *in.Task.SLASeconds <= 2 && !slices.Contains(names, signal.Ready) {
					require.Less(rt, hit(candidateAt(d, at)), p, "and it is not an empty one")
				}
			}
		}
	})
}

// TestLongerQueueNeverAttracts: more wait on a pool never moves a query to it.
func TestLongerQueueNeverAttracts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := fleet(rt, t)
		wait := rapid.Float64Range(0, 20000).Draw(rt, "wait")
		set("p0", map[signal.Name]float64{signal.EstWaitMs: wait})(&in)
		before := route.Decide(in)
		in.Signals = in.Signals.Clone()
		set("p0", map[signal.Name]float64{signal.EstWaitMs: wait + rapid.Float64Range(0, 60000).Draw(rt, "more")})(&in)
		after := route.Decide(in)
		if before.Cluster != "p0" && before.Kind == event.Route {
			require.NotEqual(rt, "p0", after.Cluster, "%s\n%s", route.Explain(before), route.Explain(after))
		}
		require.LessOrEqual(rt, hit(&after.Candidates[0]), hit(&before.Candidates[0])+0.002)
	})
}

func TestEveryReasonHasATemplateAndFillsIt(t *testing.T) {
	for code, template := range route.Templates {
		require.NotEmpty(t, template, code)
	}
	rapid.Check(t, func(rt *rapid.T) {
		d := route.Decide(drawn(rt, t))
		all := slices.Clone(d.Reasons)
		for _, c := range d.Candidates {
			if c.Filtered != nil {
				all = append(all, c.Filtered.Reason)
			}
			if c.LostBy != nil {
				all = append(all, event.Reason{Code: c.LostBy.Code, Text: route.LossText(&d, &c)})
			}
		}
		for _, r := range all {
			require.NotEmpty(rt, r.Text, r.Code)
			require.NotContains(rt, r.Text, "{", r.Code)
		}
	})
}

// TestReasonsPage keeps docs/reasons.md in step with the table.
func TestReasonsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Reasons\n\nEvery decision carries reasons from this closed list. Generated from `pkg/route`; do not edit.\n\n| code | text |\n|---|---|\n")
	codes := make([]string, 0, len(route.Templates))
	for code := range route.Templates {
		codes = append(codes, string(code))
	}
	slices.Sort(codes)
	for _, code := range codes {
		b.WriteString("| `" + code + "` | " + route.Templates[route.Code(code)] + " |\n")
	}
	const path = "../../docs/reasons.md"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "run `go test ./pkg/route -update`")
}

// proxysql#3340, tiproxy#768: a signal that is missing was read as good, or as so bad that the node was never used.
func TestAMissingLoadIsNeitherIdleNorFull(t *testing.T) {
	same := func(in *route.Input) {
		in.Policy = load(t, "engines:\n  interactive: {kind: clickhouse}\n  batch: {kind: clickhouse}\nrules: [{name: default, route: auto}]\n")
	}
	first := route.Decide(input(t, same)).Cluster
	other := map[string]string{"interactive": "batch", "batch": "interactive"}[first]
	d := route.Decide(input(t, same, set(first, map[signal.Name]float64{signal.Running: 3})))
	require.Equal(t, other, d.Cluster, "the load decides: %s", route.Explain(d))
	d = route.Decide(input(t, same, set(first, map[signal.Name]float64{signal.Running: 3}), without(other, signal.Running)))
	require.Equal(t, first, d.Cluster, "the next factor decides: %s", route.Explain(d))
	require.Contains(t, d.Unknown, other+" running")
}
