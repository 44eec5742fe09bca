package route_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
)

// fleet draws a handful of pools whose load, history and prices are of one order, so that every factor decides now and then.
func fleet(t *rapid.T, tb testing.TB) route.Input {
	n := rapid.IntRange(2, 5).Draw(t, "pools")
	text := "engines:\n"
	for i := range n {
		text += fmt.Sprintf("  p%d: {kind: %s, slots: 10, startup_ms: 20, bytes_per_second: 100 MB, cost_per_second: %d, sleeps_at_zero: %t, wake_ms: 3000, delivery_ms: %d}\n",
			i, rapid.SampledFrom([]string{"trino", "spark"}).Draw(t, "kind"), rapid.SampledFrom([]int{0, 1, 1, 1, 2, 9}).Draw(t, "cost"),
			rapid.Bool().Draw(t, "sleeps"), rapid.SampledFrom([]int{0, 0, 200}).Draw(t, "delivery"))
	}
	in := input(tb)
	in.Policy = load(tb, text+"rules: [{name: default, route: auto}]\n")
	in.Signals = signal.Snapshot{}
	in.Task.SLASeconds = new(rapid.SampledFrom([]float64{0.5, 2, 5, 20, 100}).Draw(t, "sla"))
	in.Estimates[route.ScanBytes] = signal.Of(rapid.Float64Range(0, 2e9).Draw(t, "bytes"), signal.Bytes, "catalog", now)
	if rapid.Bool().Draw(t, "hinted") {
		in.Task.EngineHint = rapid.SampledFrom([]string{"p0", "p1", "spark", "nothing"}).Draw(t, "hint")
	}
	for i := range n {
		c := fmt.Sprintf("p%d", i)
		values := map[signal.Name]float64{
			signal.Running: float64(rapid.IntRange(0, 12).Draw(t, "running")), signal.Queued: float64(rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "queued")), signal.Slots: 10,
		}
		if rapid.IntRange(0, 5).Draw(t, "healthKnown") > 0 {
			values[signal.Healthy], values[signal.Ready] = 1, float64(rapid.IntRange(0, 9).Draw(t, "ready")/3)
		}
		if rapid.IntRange(0, 5).Draw(t, "waitKnown") > 0 {
			values[signal.EstWaitMs] = rapid.SampledFrom([]float64{0, 0, 100, 2500, 30_000}).Draw(t, "wait")
		}
		observe(&in, c, values)
		if runs := rapid.Int64Range(0, 60).Draw(t, "runs"); runs > 0 {
			p := profile.Profile{Key: profile.Key{Cluster: c, Engine: pool(tb, &in, c)}, Runs: runs, Window: "7d"}
			p.Successes = runs - rapid.Int64Range(0, runs/2).Draw(t, "failures")
			p50 := rapid.Float64Range(5, 40_000).Draw(t, "p50")
			p.ExecMsP50, p.ExecMsP95 = &p50, new(p50*rapid.Float64Range(1, 5).Draw(t, "p95"))
			p.Key.Fingerprint = in.Fingerprint
			if in.History.Found == nil {
				in.History.Found = map[profile.Key]profile.Profile{}
			}
			in.History.Found[p.Key] = p
		}
	}
	return in
}

func pool(tb testing.TB, in *route.Input, name string) string {
	p, ok := in.Policy.Pool(name)
	require.True(tb, ok)
	return p.Kind
}

// TestFlipsDoWhatTheySay applies each change that a decision names, and decides again: then the loser wins, or is level with the
// former winner in that factor and all before it.
func TestFlipsDoWhatTheySay(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		in := fleet(rt, t)
		d := route.Decide(in)
		if d.Kind != event.Route {
			return
		}
		winner := candidateAt(d, d.Target)
		for i := range d.Candidates {
			c := &d.Candidates[i]
			if c.LostBy == nil {
				continue
			}
			if c.LostBy.Flip == nil {
				seen["none: "+c.LostBy.Code]++
				continue
			}
			then := route.Decide(route.WithFlip(in, c, *c.LostBy.Flip))
			seen[c.LostBy.Code+": "+c.LostBy.Flip.What]++
			if then.Target == c.Target {
				continue
			}
			factor := factorOf[c.LostBy.Code]
			mine, theirs := candidateAt(then, c.Target), candidateAt(then, winner.Target)
			require.LessOrEqual(rt, band(mine, factor), band(theirs, factor), "%+v\nbefore:\n%s\nafter:\n%s", *c.LostBy.Flip, route.Explain(d), route.Explain(then))
		}
	})
	for _, must := range []string{
		"sla_probability: queueMs", "sla_probability: slaMs", "sla_probability: successRate", "sla_probability: healthy", "lower_cost: costPerSecond",
		"lower_load: queries", "engine_hint_followed: engineHint", "shorter_completion: queueMs", "shorter_completion: runMs",
	} {
		if seen[must] == 0 {
			t.Logf("never seen: %s (of %v)", must, seen)
		}
	}
	t.Log(seen)
}

var factorOf = map[string]string{
	"sla_probability": "slaProbability", "shorter_completion": "completion", "engine_hint_followed": "hint", "lower_cost": "cost",
	"lower_load": "load", "affinity": "affinity",
}

func candidateAt(d event.RouteDecision, t event.Target) *event.Candidate {
	for i := range d.Candidates {
		if d.Candidates[i].Target == t {
			return &d.Candidates[i]
		}
	}
	return &event.Candidate{}
}

// band is the candidate's band in a factor; one that the factor did not look at is level with all.
func band(c *event.Candidate, factor string) int {
	for _, f := range c.Factors {
		if f.Name == factor {
			return f.Band
		}
	}
	return 0
}
