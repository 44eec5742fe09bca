package contrast

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Made is a made-up input, with what sets it apart from an ordinary request.
type Made struct {
	Input route.Input
	Facts []string
}

// Grid makes up inputs around the thresholds of two policies: a few ordinary requests, one that meets each rule, and each of
// these with one fact changed to a value at, just below and just above every threshold that either policy has for it, or
// unknown. It finds differences that hang on one fact at a time; it proves nothing. The second result names facts that rules
// test and that can't be made up.
func Grid(a, b *policy.Policy) ([]Made, []string) {
	g := grid{pools: union(a, b), axes: map[string][]value{}, latches: map[string]bool{}, unable: map[string]bool{}}
	for _, p := range []*policy.Policy{a, b} {
		for _, l := range p.Latches {
			g.latches[l.Name] = true
		}
		if l := p.Budgets.AgentSession; l != nil && g.session == (budget.Limits{}) {
			g.session = *l
		}
	}
	for _, p := range []*policy.Policy{a, b} {
		g.policy(p, "")
		for _, tenant := range p.Tenants() {
			g.axis("tenant", word(tenant))
			g.policy(p.For(tenant), tenant)
		}
	}
	for _, values := range g.axes { // the smallest value that shows a difference comes first
		slices.SortStableFunc(values, func(a, b value) int { return cmp.Compare(a.number, b.number) })
	}
	var out []Made
	for _, base := range g.bases() {
		out = append(out, g.make(base, nil))
		for _, fact := range slices.Sorted(maps.Keys(g.axes)) {
			for _, v := range g.axes[fact] {
				out = append(out, g.make(base, &change{fact, v}))
			}
		}
	}
	for i := range out {
		out[i].Input.Task.ID = "made-up-" + strconv.Itoa(i+1)
		out[i].Input.Seed = uint64(i)
	}
	return out, slices.Sorted(maps.Keys(g.unable))
}

type change struct {
	fact string
	v    value
}

type grid struct {
	pools   []policy.Pool
	axes    map[string][]value
	rules   []base
	latches map[string]bool
	session budget.Limits
	unable  map[string]bool
}

// base is a request to start from. One that a rule asks for has no name and is told by its facts.
type base struct {
	name    string
	changes []change
}

// policy adds what a policy asks for, as it is for a tenant.
func (g *grid) policy(p *policy.Policy, tenant string) {
	g.knobs(p)
	for i := range p.Rules {
		g.rule(&p.Rules[i], tenant)
	}
}

func word(s string) value    { return value{word: s, isWord: true} }
func number(n float64) value { return value{number: n} }
func union(a, b *policy.Policy) []policy.Pool {
	out := slices.Clone(a.Pools)
	for _, p := range b.Pools {
		if !slices.ContainsFunc(out, func(o policy.Pool) bool { return o.Name == p.Name }) {
			out = append(out, p)
		}
	}
	return out
}

// axis adds values to try for a fact.
func (g *grid) axis(fact string, values ...value) {
	for _, v := range values {
		if !slices.Contains(g.axes[fact], v) {
			g.axes[fact] = append(g.axes[fact], v)
		}
	}
}

// around are the values next to a threshold.
func around(n float64) []value {
	step := 1.0
	if n > 0 && n < 1 {
		step = n / 100
	}
	out := []value{number(n), number(n + step)}
	if n-step >= 0 {
		out = append(out, number(n-step))
	}
	return out
}

// knobs adds what the policy compares besides its rules.
func (g *grid) knobs(p *policy.Policy) {
	g.axis("estimated_bytes", append(around(float64(p.Thresholds.HeavyBytes)), value{missing: true})...)
	g.axis("join_tables", around(float64(p.Thresholds.HeavyJoinTables))...)
	g.axis("history_runs", append(around(float64(p.Thresholds.HistoryMinRuns)), value{missing: true})...)
	g.axis("history_memory_kills", number(1))
	g.axis("read_only", number(0))
	g.axis("parsed", number(0))
	g.axis("sla_ms", value{missing: true}, number(1000), number(10_000), number(60_000), number(600_000))
	for _, pool := range p.Pools {
		g.axis(pool.Name+"_healthy", number(0), value{missing: true})
		g.axis(pool.Name+"_ready", number(0), value{missing: true})
		g.axis(pool.Name+"_queue_wait_ms", number(2000), number(20_000), value{missing: true})
		g.axis("engine_hint", word(pool.Name))
		if pool.MaxQueueWait > 0 {
			g.axis(pool.Name+"_queue_wait_ms", around(float64(pool.MaxQueueWait.Milliseconds()))...)
		}
		if pool.MaxBytesPerQuery > 0 {
			g.axis("estimated_bytes", around(float64(pool.MaxBytesPerQuery))...)
		}
		if pool.MaxMemoryPerQuery > 0 {
			g.axis("estimated_memory_bytes", around(float64(pool.MaxMemoryPerQuery))...)
		}
		for fact, words := range map[string][]string{"tenant": pool.Tenants, "dataset": pool.Datasets, "dialect": pool.Dialects, "catalog": pool.Catalogs} {
			for _, w := range words {
				g.axis(fact, word(w))
			}
			if len(words) > 0 {
				g.axis(fact, word("another"))
			}
		}
	}
	if l := p.Budgets.AgentSession; l != nil {
		g.limits(map[string]int64{usedQueries: l.MaxQueries, usedBytes: l.MaxBytes, usedWallMs: l.MaxWall.Milliseconds()})
	}
	for _, tenant := range slices.Sorted(maps.Keys(p.Budgets.Tenants)) {
		l := p.Budgets.Tenants[tenant]
		g.axis("tenant", word(tenant))
		g.limits(map[string]int64{tenantQueries: l.MaxQueries, tenantBytes: l.MaxBytes, tenantRunning: l.MaxConcurrent})
	}
	l := p.Budgets.Tenant
	g.limits(map[string]int64{tenantQueries: l.MaxQueries, tenantBytes: l.MaxBytes, tenantRunning: l.MaxConcurrent})
}

// limits adds values around limits; zero is none.
func (g *grid) limits(limits map[string]int64) {
	for fact, most := range limits {
		if most > 0 {
			g.axis(fact, around(float64(most))...)
		}
	}
}

// rule adds the facts that a rule tests, and a request that meets it.
func (g *grid) rule(r *policy.Rule, tenant string) {
	var b base
	if tenant != "" {
		b.changes = append(b.changes, change{"tenant", word(tenant)})
	}
	g.condition(&r.When, true, &b)
	if len(b.changes) > 0 && !slices.ContainsFunc(g.rules, func(o base) bool { return slices.Equal(o.changes, b.changes) }) {
		g.rules = append(g.rules, b)
	}
}

// condition adds the tests of a condition; meet says that the base is to meet them.
func (g *grid) condition(c *policy.Condition, meet bool, b *base) {
	for i := range c.Tests {
		t := &c.Tests[i]
		s, ok := g.setter(t.Fact)
		if !ok {
			g.unable[t.String()] = true
			continue
		}
		g.test(t, s)
		if v, ok := meeting(t); ok && meet {
			b.changes = append(b.changes, change{t.Fact, v})
		}
	}
	for i := range c.AllOf {
		g.condition(&c.AllOf[i], meet, b)
	}
	for i := range c.AnyOf {
		g.condition(&c.AnyOf[i], meet && i == 0, b)
	}
	for i := range c.None {
		g.condition(&c.None[i], false, b)
	}
}

func (g *grid) test(t *policy.Test, s setter) {
	switch {
	case t.Op == policy.IsKnown:
		g.axis(t.Fact, number(1), value{missing: true})
	case t.Op == policy.In:
		for _, w := range t.Words {
			g.axis(t.Fact, word(w))
		}
		g.axis(t.Fact, word("another"), word(""))
	case s.unit == signal.Flag:
		g.axis(t.Fact, number(0), number(1), value{missing: true})
	default:
		g.axis(t.Fact, append(around(t.Number), value{missing: true})...)
	}
}

// meeting is a value for which a test holds.
func meeting(t *policy.Test) (value, bool) {
	switch t.Op {
	case policy.Less:
		return number(t.Number / 2), true
	case policy.LessEqual, policy.GreaterEqual, policy.Equal:
		return number(t.Number), true
	case policy.Greater:
		return number(t.Number*2 + 1), true
	case policy.IsKnown:
		return value{number: 1, missing: t.Number == 0}, true
	case policy.In:
		if len(t.Words) > 0 {
			return word(t.Words[0]), true
		}
	case policy.IsTrue:
	}
	return value{}, false
}

// bases are the requests to start from: ordinary ones, then one for each rule.
func (g *grid) bases() []base {
	return append([]base{
		{"a dashboard reads", []change{{"estimated_bytes", number(50e6)}, {"sla_ms", number(5000)}, {"principal_class", word("human")}}},
		{"a large read", []change{{"estimated_bytes", number(100e9)}, {"sla_ms", number(600_000)}, {"join_tables", number(3)}, {"has_group_by", number(1)}}},
		{"a write", []change{{"statement", word("insert")}, {"sla_ms", number(600_000)}}},
		{"an agent reads", []change{{"estimated_bytes", number(1e9)}, {"sla_ms", number(30_000)}, {"principal_class", word("agent")}}},
		{"a read of unknown size", []change{{"estimated_bytes", value{missing: true}}}},
	}, g.rules...)
}

// at is the moment of every made-up request.
var at = time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)

// make makes an input: all pools are well and idle, nothing has run before.
func (g *grid) make(b base, c *change) Made {
	in := route.Input{
		Task:    query.Task{SQL: "SELECT … FROM t1", Tenant: "tenant", User: "user", SubmittedAt: new(at)},
		Attempt: 1, Fingerprint: "made-up",
		Shape:     shape.Shape{Statement: shape.Select, ReadOnly: true, Effect: shape.NoEffect, JoinTables: 1, Tables: []shape.Table{{Name: "t1"}}, Source: shape.FromTokens},
		Estimates: map[string]signal.Value{route.ScanBytes: signal.Of(50e6, signal.Bytes, "made up", at)},
		History:   profile.Lookup{Asked: true, Found: map[profile.Key]profile.Profile{}}, Signals: signal.Snapshot{}, Now: at,
	}
	for _, p := range g.pools {
		in.Signals[p.Name] = map[signal.Name]signal.Value{}
		for name, n := range map[signal.Name]float64{
			signal.Healthy: 1, signal.Ready: 1, signal.Running: 0, signal.Queued: 0, signal.EstWaitMs: 0, signal.Slots: float64(max(p.Slots, 1)),
		} {
			in.Signals[p.Name][name] = signal.Of(n, "", "made up", at)
		}
		if c != nil && c.needsHistory() || slices.ContainsFunc(b.changes, change.needsHistory) {
			k := profile.Key{Fingerprint: in.Fingerprint, Engine: p.Kind, Cluster: p.Name}
			in.History.Found[k] = profile.Profile{Key: k, Window: "7d", AsOf: at, ExecMsMean: new(500.0), ExecMsP50: new(400.0), ExecMsP95: new(1500.0)}
		}
	}
	m := Made{Input: in}
	if b.name != "" {
		m.Facts = append(m.Facts, b.name)
	}
	for _, ch := range b.changes {
		g.apply(&m, ch, b.name == "" && (c == nil || c.fact != ch.fact))
	}
	if c != nil {
		g.apply(&m, *c, true)
	}
	return m
}

// apply gives the input a fact, and tells it.
func (g *grid) apply(m *Made, c change, tell bool) {
	s, ok := g.setter(c.fact)
	if !ok {
		return
	}
	s.set(&m.Input, c.v)
	if tell {
		m.Facts = append(m.Facts, say(c.fact, s.unit, c.v))
	}
}

// needsHistory says that the fact is one of earlier runs.
func (c change) needsHistory() bool {
	return c.fact == "history_runs" || c.fact == "history_memory_kills" || c.fact == "estimated_memory_bytes"
}
