package estimate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/estimate"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/signal"
)

var (
	pool = estimate.Prior{Startup: 50 * time.Millisecond, BytesPerSecond: 100e6}
	now  = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)
)

func newStream(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func ran(n int64, p50, p95 float64) estimate.Runs {
	return estimate.RunsOf(&profile.Profile{Successes: n, Runs: n, ExecMsP50: &p50, ExecMsP95: &p95, Window: "7d"})
}

func bytes(n float64) signal.Value { return signal.Of(n, signal.Bytes, "catalog", now) }

func TestTheLadder(t *testing.T) {
	for _, c := range []struct {
		name     string
		in       estimate.Sources
		evidence event.Evidence
		median   float64
		within   float64 // factor
	}{
		{"nothing is known", estimate.Sources{}, event.Evidence{Level: estimate.FromGuess}, 1050, 1.001},
		{"bytes", estimate.Sources{Bytes: bytes(200e6)}, event.Evidence{Level: estimate.FromPrior}, 2050, 1.001},
		{"zero bytes are known", estimate.Sources{Bytes: bytes(0)}, event.Evidence{Level: estimate.FromPrior}, 50, 1.001},
		{"many runs here", estimate.Sources{Fingerprint: ran(1000, 200, 400)}, event.Evidence{Level: estimate.FromFingerprint, N: 1000, Window: "7d"}, 200, 1.01},
		{"too few to lead, and yet they count", estimate.Sources{Fingerprint: ran(2, 200, 400), MinRuns: 3}, event.Evidence{Level: estimate.FromGuess, N: 2, Window: "7d"}, 347, 1.01},
		{"the same engine elsewhere", estimate.Sources{Engine: ran(40, 500, 800), MinRuns: 3}, event.Evidence{Level: estimate.FromEngine, N: 40, Window: "7d"}, 509, 1.01},
		{"here before elsewhere", estimate.Sources{Engine: ran(40, 5000, 8000), Fingerprint: ran(100, 200, 400), MinRuns: 3}, event.Evidence{Level: estimate.FromFingerprint, N: 100, Window: "7d"}, 220, 1.02},
		{"the own parameters before all", estimate.Sources{Fingerprint: ran(500, 200, 9000), Bucket: ran(45, 8000, 9000), MinRuns: 3}, event.Evidence{Level: estimate.FromBucket, N: 45, Window: "7d"}, 5530, 1.02},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, evidence := estimate.Execution(pool, &c.in)
			require.Equal(t, c.evidence, evidence)
			require.InEpsilon(t, c.median, e.Quantile(0), c.within-1)
			require.Greater(t, e.Mean(), e.Quantile(0), "the mean lies above the median")
		})
	}
}

func TestWhatIsNotKnownSpreadsWider(t *testing.T) {
	sigma := func(s estimate.Sources) float64 {
		e, _ := estimate.Execution(pool, &s)
		return e.Sigma
	}
	stale := bytes(200e6).Aged(now.Add(time.Hour), time.Second)
	blind, old, fresh := sigma(estimate.Sources{}), sigma(estimate.Sources{Bytes: stale}), sigma(estimate.Sources{Bytes: bytes(200e6)})
	require.Equal(t, blind, old)
	require.Greater(t, old, fresh)
	require.Greater(t, fresh, sigma(estimate.Sources{Bytes: bytes(200e6), Fingerprint: ran(5, 200, 300)}))
	require.Greater(t, sigma(estimate.Sources{Fingerprint: ran(5, 200, 300)}), sigma(estimate.Sources{Fingerprint: ran(500, 200, 300)}))
}

func TestRunsWithoutTimesSayNothing(t *testing.T) {
	require.Zero(t, estimate.RunsOf(&profile.Profile{Runs: 9}).N)
	require.Zero(t, estimate.RunsOf(&profile.Profile{Runs: 9, Successes: 9}).N, "nobody measured them")
	zero := 0.0
	require.EqualValues(t, 9, estimate.RunsOf(&profile.Profile{Runs: 9, Successes: 9, ExecMsP50: &zero}).N, "zero milliseconds are measured")
	require.Equal(t, estimate.Runs{}, estimate.RunsOf(&profile.Profile{}))
}

// TestStoppedRunsAreNeverQuick: a pool that stops queries must not look better for it.
func TestStoppedRunsAreNeverQuick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := estimate.Sources{Bytes: bytes(rapid.Float64Range(0, 1e11).Draw(t, "bytes")), MinRuns: 3}
		if n := rapid.Int64Range(0, 200).Draw(t, "n"); n > 0 {
			p50 := rapid.Float64Range(1, 1e5).Draw(t, "p50")
			s.Fingerprint = ran(n, p50, p50*rapid.Float64Range(1, 20).Draw(t, "p95"))
		}
		before, _ := estimate.Execution(pool, &s)
		s.Fingerprint.Stopped = rapid.Int64Range(1, 100).Draw(t, "stopped")
		s.Fingerprint.StoppedMs = rapid.Float64Range(before.Quantile(0), 1e7).Draw(t, "after")
		after, _ := estimate.Execution(pool, &s)
		require.GreaterOrEqual(t, after.Mu, before.Mu-1e-9)
		require.False(t, math.IsNaN(after.Mu) || math.IsNaN(after.Sigma) || math.IsInf(after.Mu, 0), "%+v", after)
	})
}

func TestStoppedRunsAgainstSimulation(t *testing.T) {
	// 400 runs around 1 s, stopped at 2 s: what is left over looks faster than it is, unless the stopped ones count.
	random := newStream(7)
	var p profile.Profile
	var logs []float64
	for range 400 {
		ms := 1000 * math.Exp(0.9*random.NormFloat64())
		p.Runs++
		if ms > 2000 {
			p.TimeStops++
			continue
		}
		p.Successes++
		logs = append(logs, ms)
	}
	p50, p95 := quantile(logs, 0.5), quantile(logs, 0.95)
	at := 2000.0
	p.ExecMsP50, p.ExecMsP95, p.TimeStopMs = &p50, &p95, &at
	with, _ := estimate.Execution(pool, &estimate.Sources{Fingerprint: estimate.RunsOf(&p)})
	p.TimeStops = 0
	without, _ := estimate.Execution(pool, &estimate.Sources{Fingerprint: estimate.RunsOf(&p)})
	truth := 1 - 0.5*math.Erfc(math.Log(3)/0.9/math.Sqrt2)
	require.InDelta(t, truth, with.Within(3000), 0.05)
	require.Greater(t, without.Within(3000), truth+0.05)
}

func quantile(list []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	at := q * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-2)
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func TestSlowDownShiftsEverything(t *testing.T) {
	s := estimate.Sources{Fingerprint: ran(100, 200, 400)}
	usual, _ := estimate.Execution(pool, &s)
	s.SlowDown = signal.Of(3, "", "profiler", now)
	slow, _ := estimate.Execution(pool, &s)
	require.InEpsilon(t, 3*usual.Quantile(0), slow.Quantile(0), 1e-9)
	s.SlowDown = signal.Of(0, "", "profiler", now)
	zero, _ := estimate.Execution(pool, &s)
	require.Equal(t, usual, zero, "no cluster is infinitely fast")
	s.SlowDown = signal.Of(1e9, "", "profiler", now)
	most, _ := estimate.Execution(pool, &s)
	require.InEpsilon(t, 20*usual.Quantile(0), most.Quantile(0), 1e-9)
}

func TestPoolWithoutOneIsThePoolOfTheOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all, others estimate.Pool
		here := estimate.Assumed(pool, bytes(rapid.Float64Range(0, 1e11).Draw(t, "bytes")))
		there := estimate.Assumed(estimate.Prior{}, signal.Value{})
		own := ran(rapid.Int64Range(0, 50).Draw(t, "own"), 100, 200)
		all.Add(own, here)
		for range rapid.IntRange(0, 5).Draw(t, "others") {
			r := ran(rapid.Int64Range(1, 100).Draw(t, "n"), rapid.Float64Range(1, 1e5).Draw(t, "p50"), 2e5)
			all.Add(r, there)
			others.Add(r, there)
		}
		got, want := all.Without(own, here), others.Without(estimate.Runs{}, here)
		require.Equal(t, want.N, got.N)
		require.InDelta(t, want.Mu, got.Mu, 1e-6)
		require.InDelta(t, want.Sigma, got.Sigma, 1e-4)
	})
}

// TestAnotherClustersRunsCountAgainstWhatIsAssumedOfIt: one that scans at a tenth of the speed takes ten times as long for the same.
func TestAnotherClustersRunsCountAgainstWhatIsAssumedOfIt(t *testing.T) {
	fast, slow := estimate.Prior{BytesPerSecond: 1e9}, estimate.Prior{BytesPerSecond: 1e8}
	scan := bytes(10e9)
	var others estimate.Pool
	others.Add(ran(1000, 200_000, 300_000), estimate.Assumed(slow, scan)) // twice what was assumed: 100 s
	e, evidence := estimate.Execution(fast, &estimate.Sources{Bytes: scan, Engine: others.Without(estimate.Runs{}, estimate.Assumed(fast, scan)), MinRuns: 3})
	require.Equal(t, estimate.FromEngine, evidence.Level)
	require.InEpsilon(t, 20_000, e.Quantile(0), 0.01)
}

// TestCoverage: the ladder's P80 holds 80 % of what comes, with little history and with much.
func TestCoverage(t *testing.T) {
	random := newStream(11)
	for _, n := range []int{3, 10, 100} {
		hits, all := 0, 0
		for range 400 {
			mu, sigma := math.Log(1000)+random.NormFloat64(), 0.3+0.4*random.Float64()
			var logs []float64
			for range n {
				logs = append(logs, math.Exp(mu+sigma*random.NormFloat64()))
			}
			// What the prior believes is off by as much as templates swing.
			guess := math.Exp(mu + 0.8*random.NormFloat64())
			e, _ := estimate.Execution(estimate.Prior{BytesPerSecond: 1000}, &estimate.Sources{
				Fingerprint: ran(int64(n), quantile(logs, 0.5), quantile(logs, 0.95)), Bytes: bytes(guess),
			})
			for range 20 {
				all++
				if math.Exp(mu+sigma*random.NormFloat64()) <= e.Quantile(0.8416) {
					hits++
				}
			}
		}
		got := float64(hits) / float64(all)
		require.InDelta(t, 0.8, got, 0.07, "with %d runs", n)
		t.Logf("P80 with %d runs holds %.1f %%", n, 100*got)
	}
}
