package route_test

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
)

// exploring is three idle pools, of which b is a little slower and c has no history.
func exploring(tb testing.TB, options string) func(*route.Input) {
	return func(in *route.Input) {
		in.Policy = load(tb, `
engines:
  a: {kind: trino, slots: 4, bytes_per_second: 1 GB}
  b: {kind: trino, slots: 4, bytes_per_second: 1 GB, cost_per_second: 3}
  c: {kind: trino, slots: 4, bytes_per_second: 1 GB, cost_per_second: 9}
rules:
  - {name: pinned, when: {client_tag: pinned}, route: a}
  - {name: default, route: auto}
budgets: {agent_session: {max_queries: 20}}
exploration: {`+options+`}
`)
		in.Signals = signal.Snapshot{}
		in.History.Found = map[profile.Key]profile.Profile{}
		for _, c := range []string{"a", "b", "c"} {
			observe(in, c, map[signal.Name]float64{signal.Ready: 1, signal.Healthy: 1, signal.Running: 0, signal.Queued: 0, signal.Slots: 4, signal.EstWaitMs: 0})
			key := profile.Key{Fingerprint: in.Fingerprint, Engine: "trino", Cluster: c}
			if c != "c" {
				in.History.Found[key] = profile.Profile{Key: key, Window: "7d", Runs: 100, Successes: 100, ExecMsP50: new(float64(100)), ExecMsP95: new(float64(200))}
			}
		}
		in.Tenant = &budget.TenantAccount{Slices: []budget.Slice{{ExecMs: 1_000_000}}}
	}
}

func shareOf(t *testing.T, n int, edits ...func(*route.Input)) map[string]float64 {
	t.Helper()
	in := input(t, edits...)
	count := map[string]float64{}
	for seed := range n {
		in.Seed = uint64(seed) * 0x9e3779b97f4a7c15
		count[route.Decide(in).Cluster] += 1 / float64(n)
	}
	return count
}

func TestSharesAreWhatThePolicySays(t *testing.T) {
	const n = 20_000
	got := shareOf(t, n, exploring(t, "share: 0.06, new_share: 0.04, new_below_runs: 20"))
	// Three standard errors.
	require.InDelta(t, 0.90, got["a"], 3*math.Sqrt(0.9*0.1/n))
	require.InDelta(t, 0.03, got["b"], 3*math.Sqrt(0.03*0.97/n))
	require.InDelta(t, 0.07, got["c"], 3*math.Sqrt(0.07*0.93/n), "half the share, and all that is for what is new")
	require.Equal(t, map[string]float64{"a": 1}, round(shareOf(t, 100, exploring(t, "share: 0"))), "off is off")
}

func round(m map[string]float64) map[string]float64 {
	for k, v := range m {
		m[k] = math.Round(v*1e6) / 1e6
	}
	return m
}

func TestAnExplorationSaysThatItIsOne(t *testing.T) {
	in := input(t, exploring(t, "share: 0.5"))
	for seed := range uint64(1000) {
		in.Seed = seed
		d := route.Decide(in)
		chosen, best := candidateAt(d, d.Target), candidateAt(d, event.Target{Engine: "trino", Cluster: "a", Queue: "default", Resource: "default"})
		require.Equal(t, 1, best.Rank)
		require.Equal(t, d.Cluster != "a", d.Exploration != nil)
		require.Equal(t, 0.5, best.Propensity)
		require.Equal(t, d.Exploration != nil, slices.Contains(codes(d), string(route.Explored)))
		require.NotContains(t, d.Fallbacks, d.Target)
		require.Len(t, d.Fallbacks, 2)
		if d.Exploration != nil {
			require.Equal(t, 0.25, chosen.Propensity)
			require.GreaterOrEqual(t, d.Exploration.ExtraMs, 0.0)
			require.Contains(t, route.Explain(d), "chosen by lot")
		}
	}
}

// TestNeverExplored are the cases in which nothing is tried out, with a policy that tries out half of everything.
func TestNeverExplored(t *testing.T) {
	for name, edit := range map[string]func(*route.Input){
		"a rule named the pool":         func(in *route.Input) { in.Task.Tags = []string{"pinned"} },
		"a second attempt":              func(in *route.Input) { in.Attempt = 2 },
		"a statement that writes":       func(in *route.Input) { in.Shape.ReadOnly = false },
		"history could not be asked":    func(in *route.Input) { in.History = profile.Lookup{} },
		"a session's last queries":      agent(budget.Usage{Queries: 18}, false),
		"an SLA that they may not meet": func(in *route.Input) { in.Task.SLASeconds = new(0.12) },
		"saturated pools": func(in *route.Input) {
			for _, c := range []string{"b", "c"} {
				observe(in, c, map[signal.Name]float64{signal.Running: 4, signal.EstWaitMs: 0})
			}
		},
		"a queue": func(in *route.Input) {
			for _, c := range []string{"b", "c"} {
				observe(in, c, map[signal.Name]float64{signal.EstWaitMs: 5})
			}
		},
		"pools that nobody sees": func(in *route.Input) {
			for _, c := range []string{"b", "c"} {
				without(c, signal.Running)(in)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, map[string]float64{"a": 1}, round(shareOf(t, 200, exploring(t, "share: 0.5"), edit)))
		})
	}
	require.Greater(t, shareOf(t, 200, exploring(t, "share: 0.5"), agent(budget.Usage{Queries: 3}, false))["b"], 0.1, "an agent's early queries may")
}

// TestExtraTimeIsPaidFromTheTenantsShare: a slower candidate is tried only as long as the tenant has time for it.
func TestExtraTimeIsPaidFromTheTenantsShare(t *testing.T) {
	slower := func(in *route.Input) {
		for key, p := range in.History.Found {
			if key.Cluster == "b" {
				p.ExecMsP50, p.ExecMsP95 = new(float64(300)), new(float64(500))
				in.History.Found[key] = p
			}
		}
		without("c", signal.Running)(in)
	}
	account := func(a *budget.TenantAccount) func(*route.Input) { return func(in *route.Input) { in.Tenant = a } }
	some := shareOf(t, 400, exploring(t, "share: 0.5"), slower, account(&budget.TenantAccount{Slices: []budget.Slice{{ExecMs: 100_000, ExploredMs: 1000}}}))
	require.Greater(t, some["b"], 0.3, "1000 of 2000 ms are left")
	for name, a := range map[string]*budget.TenantAccount{
		"used up": {Slices: []budget.Slice{{ExecMs: 100_000, ExploredMs: 1900}}}, "a new tenant": {}, "nobody counts": nil,
	} {
		require.Zero(t, shareOf(t, 200, exploring(t, "share: 0.5"), slower, account(a))["b"], name)
	}
}

// TestPropensities: they sum to one over the candidates, and the one that was chosen could have been.
func TestPropensities(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := fleet(rt, t)
		in.Policy.Exploration = policy.Exploration{
			Share: rapid.Float64Range(0, 0.25).Draw(rt, "share"), NewShare: rapid.Float64Range(0, 0.25).Draw(rt, "new"), NewBelowRuns: 20, MaxExtraShare: 0.02,
		}
		in.Tenant = &budget.TenantAccount{Slices: []budget.Slice{{ExecMs: 1e7}}}
		in.Seed = rapid.Uint64().Draw(rt, "seed")
		d := route.Decide(in)
		sum := 0.0
		for _, c := range d.Candidates {
			sum += c.Propensity
			require.True(rt, c.Filtered == nil || c.Propensity == 0)
		}
		if d.Kind != event.Route {
			require.Zero(rt, sum)
			return
		}
		require.InDelta(rt, 1, sum, 1e-6, route.Explain(d))
		require.Positive(rt, candidateAt(d, d.Target).Propensity)
		require.Equal(rt, d.Exploration == nil, candidateAt(d, d.Target).Rank == 1)
		in.Policy.Exploration = policy.Exploration{}
		plain := route.Decide(in)
		for _, c := range d.Candidates {
			require.Equal(rt, candidateAt(plain, c.Target).Rank, c.Rank, "exploration changes no rank")
		}
	})
}

func BenchmarkExplore(b *testing.B) {
	in := input(b, exploring(b, "share: 0.02, new_share: 0.05"))
	for i := 0; b.Loop(); i++ {
		in.Seed = uint64(i)
		in.Task.ID = strconv.Itoa(i)
		route.Decide(in)
	}
}
