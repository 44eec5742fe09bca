package budget_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Never more is admitted than the budget, no Task is refused once it was admitted, every Task gets an answer, and what a router
// rebuilds is what another one holds: whatever stalls, crashes and overlaps.
func TestSessionsKeepTheirBudgets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rules{}, func(n int, label string) int { return rapid.IntRange(0, n-1).Draw(rt, label) })
		acts := w.actions()
		for range rapid.IntRange(0, 300).Draw(rt, "steps") {
			acts[w.pick(len(acts), "action")]()
			if w.broken != "" {
				rt.Fatal(w.broken)
			}
		}
		w.settle()
		if w.broken != "" {
			rt.Fatal(w.broken)
		}
	})
}

// search runs seeded random interleavings and returns the first violation.
func search(r rules, runs, steps int) string {
	for seed := range runs {
		rnd := rand.New(rand.NewPCG(uint64(seed), 7))
		w := newWorld(r, func(n int, _ string) int { return rnd.IntN(n) })
		acts := w.actions()
		for i := 0; i < steps && w.broken == ""; i++ {
			acts[w.pick(len(acts), "action")]()
		}
		if w.broken == "" {
			w.settle()
		}
		if w.broken != "" {
			return w.broken
		}
	}
	return ""
}

// The test of the test: the same property must catch the protocol without any one of its rules.
func TestSessionsNeedEachRule(t *testing.T) {
	const runs, steps = 2000, 400
	require.Empty(t, search(rules{}, runs, steps))
	for name, c := range map[string]struct {
		rules rules
		want  string
	}{
		"no read-back": {rules{noReadBack: true}, "overspent"},
		"no refusals":  {rules{noRefusals: true}, "both admitted and refused"},
		"no memory":    {rules{noMemory: true}, "both admitted and refused"},
	} {
		t.Run(name, func(t *testing.T) { require.Contains(t, search(c.rules, runs, steps), c.want) })
	}
}
