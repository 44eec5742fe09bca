package estimate_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/estimate"
)

func TestConstantsAddUpExactly(t *testing.T) {
	c := estimate.Completion{Wait: estimate.Constant(100), Acquire: estimate.Constant(20), Exec: estimate.Constant(300), Deliver: estimate.Constant(-5)}
	require.Equal(t, 420.0, c.Mean())
	require.Equal(t, 1.0, c.Within(420))
	require.Equal(t, 0.0, c.Within(419.9))
	require.Equal(t, estimate.Term{}, estimate.Constant(math.NaN()), "what is no number adds nothing")
	require.Equal(t, estimate.Term{}, estimate.Around(math.Inf(1), 1))
}

func TestAroundKeepsItsMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms, sigma := rapid.Float64Range(0.1, 1e7).Draw(t, "ms"), rapid.Float64Range(0, 2).Draw(t, "sigma")
		require.InEpsilon(t, ms, estimate.Around(ms, sigma).Mean(), 1e-9)
	})
}

func TestQuantileAndWithinAreInverse(t *testing.T) {
	e := estimate.Term{Shift: 10, Mu: math.Log(200), Sigma: 0.5}
	require.InDelta(t, 210, e.Quantile(0), 1e-9)
	require.InDelta(t, 0.5, e.Within(210), 1e-6)
	require.InDelta(t, 0.95, e.Within(e.Quantile(1.6448536269514722)), 1e-6)
	require.InDelta(t, 0.001, e.Within(e.Quantile(-3.090232306167813)), 1e-6)
	require.Zero(t, e.Within(10))
}

// term draws a piece of a completion time; each may be nothing, certain, or uncertain.
func term(t *rapid.T, name string) estimate.Term {
	switch rapid.IntRange(0, 2).Draw(t, name+" kind") {
	case 0:
		return estimate.Term{}
	case 1:
		return estimate.Constant(rapid.Float64Range(0, 20_000).Draw(t, name))
	default:
		return estimate.Around(rapid.Float64Range(1, 60_000).Draw(t, name), rapid.Float64Range(0.05, 0.8).Draw(t, name+" sigma"))
	}
}

func drawn(t *rapid.T) estimate.Completion {
	exec := estimate.Term{Mu: rapid.Float64Range(0, 13).Draw(t, "mu"), Sigma: rapid.Float64Range(0.15, 1.5).Draw(t, "sigma")}
	return estimate.Completion{Wait: term(t, "wait"), Acquire: term(t, "acquire"), Exec: exec, Deliver: estimate.Constant(rapid.Float64Range(0, 5000).Draw(t, "deliver"))}
}

func TestWithinIsADistribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawn(t)
		a, b := rapid.Float64Range(-10, 1e6).Draw(t, "a"), rapid.Float64Range(-10, 1e6).Draw(t, "b")
		require.LessOrEqual(t, c.Within(min(a, b)), c.Within(max(a, b)), "a longer SLA is never less likely to be met")
		require.Zero(t, c.Within(0))
		require.InDelta(t, 1, c.Within(1e12), 1e-9)
		require.True(t, 0 <= c.Within(a) && c.Within(a) <= 1)
	})
}

// TestMoreOfAPieceNeverHelps: more wait, more wake-up time, more delivery time, the probability falls or stays.
func TestMoreOfAPieceNeverHelps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawn(t)
		sla := rapid.Float64Range(1, 1e6).Draw(t, "sla")
		before := c.Within(sla)
		factor := rapid.Float64Range(1, 10).Draw(t, "factor")
		more := func(p estimate.Term) estimate.Term {
			if p.Random() {
				return estimate.Term{Shift: p.Shift, Mu: p.Mu + math.Log(factor), Sigma: p.Sigma}
			}
			return estimate.Constant(p.Shift * factor)
		}
		switch rapid.IntRange(0, 3).Draw(t, "which") {
		case 0:
			c.Wait = more(c.Wait)
		case 1:
			c.Acquire = more(c.Acquire)
		case 2:
			c.Deliver = more(c.Deliver)
		default:
			c.Exec = more(c.Exec)
		}
		// Where several pieces are uncertain their sum is matched by its moments, which bends the tails by a little.
		require.LessOrEqual(t, c.Within(sla), before+0.01)
	})
}

// TestAgainstSimulation draws the pieces by the thousand and counts.
func TestAgainstSimulation(t *testing.T) {
	const draws = 20_000
	rapid.Check(t, func(rt *rapid.T) {
		c := drawn(rt)
		random := newStream(rapid.Uint64().Draw(rt, "seed"))
		totals := make([]float64, draws)
		for i := range totals {
			for _, p := range []estimate.Term{c.Wait, c.Acquire, c.Exec, c.Deliver} {
				totals[i] += p.Quantile(random.NormFloat64()) // of a constant, itself
			}
		}
		const allowed = 0.02 // three standard errors of the simulation and the grid's own step
		for _, z := range []float64{-1, 0, 1, 2} {
			at := c.Exec.Quantile(z) + c.Wait.Mean() + c.Acquire.Mean() + c.Deliver.Mean()
			in := 0
			for _, total := range totals {
				if total <= at {
					in++
				}
			}
			require.InDelta(rt, float64(in)/draws, c.Within(at), allowed, "%+v at %v", c, at)
		}
	})
}

func TestMostWaitIsTheEdge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawn(t)
		c.Wait = estimate.Around(rapid.Float64Range(1, 60_000).Draw(t, "wait"), 0.45)
		sla, p := rapid.Float64Range(10, 60_000).Draw(t, "sla"), rapid.Float64Range(0.05, 0.99).Draw(t, "p")
		wait, ok := c.MostWait(sla, p)
		now := c.Wait.Mean()
		c.Wait = estimate.Around(wait, 0.45)
		switch {
		case !ok:
			require.Less(t, c.Within(sla), p+0.005)
		case wait > 0:
			require.GreaterOrEqual(t, c.Within(sla), p-1e-9)
			require.LessOrEqual(t, wait, now)
		}
	})
}

func TestQuantileOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawn(t)
		p := rapid.Float64Range(0.05, 0.97).Draw(t, "p")
		require.InDelta(t, p, c.Within(c.Quantile(p)), 0.01)
	})
}

func BenchmarkWithin(b *testing.B) {
	exec := estimate.Term{Mu: 8, Sigma: 0.6}
	for name, c := range map[string]estimate.Completion{
		"certain overhead":  {Wait: estimate.Constant(10), Exec: exec},
		"uncertain wait":    {Wait: estimate.Around(2000, 0.45), Exec: exec},
		"two uncertain":     {Wait: estimate.Around(2000, 0.45), Acquire: estimate.Around(4000, 0.3), Exec: exec},
		"nothing but waits": {Wait: estimate.Around(2000, 0.45), Exec: estimate.Constant(100)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = c.Within(5000)
			}
		})
	}
}
