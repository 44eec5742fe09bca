package ledger

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestProtocolKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rules{})
		w.pick = func(n int, label string) int { return rapid.IntRange(0, n-1).Draw(rt, label) }
		acts := w.actions()
		for range rapid.IntRange(0, 400).Draw(rt, "steps") {
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
		w := newWorld(r)
		w.pick = func(n int, _ string) int { return rnd.IntN(n) }
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

// The test of the test: the same property must catch the protocol without any one of its three rules.
func TestProtocolNeedsEachRule(t *testing.T) {
	const runs, steps = 3000, 600
	require.Empty(t, search(rules{}, runs, steps))
	for name, r := range map[string]rules{
		"no guard":     {noGuard: true},
		"no read-back": {noReadBack: true},
		"no wait":      {noWait: true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, search(r, runs, steps), "was submitted 2 times")
		})
	}
}
