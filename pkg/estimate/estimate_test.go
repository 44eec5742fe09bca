package estimate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/estimate"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/signal"
)

var (
	pool = estimate.Prior{Startup: 50 * time.Millisecond, BytesPerSecond: 100e6}
	now  = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)
)

func TestHistoryLeadsWhenThereIsEnough(t *testing.T) {
	prof := profile.Profile{Successes: 40, Runs: 41, ExecMsP50: new(float64(200)), ExecMsP95: new(float64(400)), Window: "7d"}
	e := estimate.Execution(pool, prof, true, signal.Value{}, 3)
	require.Equal(t, estimate.FromFingerprint, e.Evidence.Level)
	require.EqualValues(t, 40, e.Evidence.N)
	require.InDelta(t, 200, e.Quantile(0), 1e-6)
	require.InDelta(t, 400, e.Quantile(1.645), 20)
	require.Greater(t, e.Mean(), 200.0, "the mean lies above the median")

	prof.Successes = 2
	require.Equal(t, estimate.FromPrior, estimate.Execution(pool, prof, true, signal.Value{}, 3).Evidence.Level)
}

func TestPriorFromBytes(t *testing.T) {
	e := estimate.Execution(pool, profile.Profile{}, false, signal.Of(200e6, signal.Bytes, "catalog", now), 3)
	require.InDelta(t, 2050, e.Quantile(0), 1e-6)
	blind := estimate.Execution(pool, profile.Profile{}, false, signal.Missing("catalog"), 3)
	require.Greater(t, blind.Sigma, e.Sigma, "what is not known spreads wider")
}

func TestWithinIsADistribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := estimate.Time{Mu: rapid.Float64Range(0, 15).Draw(t, "mu"), Sigma: rapid.Float64Range(0.15, 2).Draw(t, "sigma"), Known: true}
		a, b := rapid.Float64Range(-10, 1e7).Draw(t, "a"), rapid.Float64Range(-10, 1e7).Draw(t, "b")
		require.LessOrEqual(t, e.Within(min(a, b)), e.Within(max(a, b)))
		require.InDelta(t, 0.5, e.Within(e.Quantile(0)), 1e-9)
		require.GreaterOrEqual(t, e.Within(a), 0.0)
		require.LessOrEqual(t, e.Within(a), 1.0)
	})
}
