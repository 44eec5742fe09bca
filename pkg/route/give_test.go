package route

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// everything is a policy with one rule for each fact, so that all of them are gathered.
func everything(t *testing.T) *policy.Policy {
	t.Helper()
	text := `
engines:
  a: {kind: clickhouse, slots: 4}
latches:
  busy: {watch: a_queue_wait_ms, enter_gte: 2000, leave_lt: 500}
budgets:
  agent_session: {max_queries: 20, max_bytes: 5 GB, max_wall_ms: 60000}
rules:
`
	add := func(s policy.FactSpec) {
		text += "  - {name: " + s.Name + ", when: {" + s.Name + "_known: true}, route: a, tags: [x]}\n"
	}
	for _, s := range policy.TaskFacts {
		add(s)
	}
	for _, s := range policy.PoolFacts {
		s.Name = "a_" + s.Name
		add(s)
	}
	add(policy.FactSpec{Name: "busy"})
	p, err := policy.Load("all.yaml", []byte(text+"  - {name: default, route: auto}\n"))
	require.NoError(t, err)
	return p
}

// TestGiveIsTheWayBack: whatever fact a rule may test, an input can be given it, and facts reads it back.
func TestGiveIsTheWayBack(t *testing.T) {
	p := everything(t)
	now := time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)
	fresh := func() *Input {
		return &Input{
			Task: query.Task{ID: "t", SQL: "SELECT 1", SubmittedAt: &now}, Attempt: 1, Fingerprint: "f", Policy: p, Now: now,
			Shape:   shape.Shape{Statement: shape.Select, ReadOnly: true, Source: shape.FromTokens},
			Signals: signal.Snapshot{},
		}
	}
	values := map[policy.Kind][]policy.Fact{
		policy.NumberKind: {policy.NumberFact(3), policy.NumberFact(7)},
		policy.BoolKind:   {policy.BoolFact(true), policy.BoolFact(false)},
		policy.WordKind:   {policy.WordFact("agent"), policy.WordFact("insert")},
		policy.WordsKind:  {policy.WordsFact("a", "b.c"), policy.WordsFact()},
	}
	check := func(name string) {
		spec, err := p.Spec(name)
		require.NoError(t, err)
		for _, v := range values[spec.Kind] {
			in := fresh()
			require.NoError(t, Give(in, name, v), name)
			got := facts(in).Get(name)
			require.Equal(t, v.Known, got.Known, "%s %v", name, v)
			require.Equal(t, v.Number, got.Number, name)
			require.Equal(t, v.Word, got.Word, name)
			require.ElementsMatch(t, v.Words, got.Words, name)
		}
	}
	for _, s := range policy.TaskFacts {
		if s.Name != "rule_tags" {
			check(s.Name)
		}
	}
	for _, s := range policy.PoolFacts {
		check("a_" + s.Name)
		in := fresh()
		require.NoError(t, Give(in, "a_"+s.Name, policy.NumberFact(1)))
		require.NoError(t, Give(in, "a_"+s.Name, policy.Fact{}))
		require.Equal(t, s.Name == "slots", facts(in).Get("a_"+s.Name).Known, "%s: taken back, it is missing; slots are in the policy", s.Name)
	}
	check("busy")
	require.Error(t, Give(fresh(), "rule_tags", policy.WordsFact("x")))
	require.Error(t, Give(fresh(), "estimated_bites", policy.NumberFact(1)))
}
