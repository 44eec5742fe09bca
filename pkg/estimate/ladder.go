package estimate

import (
	"math"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/signal"
)

// The rungs of the ladder, from the best evidence down.
const (
	// FromBucket are the runs of the fingerprint with parameters of the same size class, on this cluster.
	FromBucket = "bucket"
	// FromFingerprint are all its runs on this cluster, FromEngine those on other clusters of the same engine.
	FromFingerprint = "fingerprint"
	FromEngine      = "engine"
	// FromPrior is the pool's start-up time and scan rate: no history. FromGuess is not even that: the bytes are not known, or
	// nothing is said of the scan rate.
	FromPrior = "prior"
	FromGuess = "guess"
)

const (
	// z95 is the 95 % quantile of the standard normal.
	z95 = 1.6448536269514722
	// minSigma keeps a handful of equal runs from looking like certainty: a factor of 1.16 either way.
	minSigma = 0.15
	// fewSigma is the usual spread of the runs of one fingerprint.
	fewSigma = 0.5
	// priorSigma is the spread of an estimate without history: templates swing by more than this, but a wider one would
	// make every candidate look alike.
	priorSigma = 0.8
	// blindSigma is the spread when not even the bytes are known; no evidence makes for a wider one.
	blindSigma = 1.5
	// elsewhereSigma is how far a cluster may lie from what the others of its engine say.
	elsewhereSigma = 0.4
	// blindMs is what a query takes on top of the start-up when nothing is known of it.
	blindMs = 1000
	// slowest and fastest bound what is believed of a cluster's slow-down.
	slowest, fastest = 20, 0.05
)

// How many runs of a rung weigh as much as all that lies below it. The better the rung below predicts the one above, the more
// runs it takes: the same statement with other parameters says more than a scan rate.
const (
	runsAgainstPrior       = 1.0
	runsAgainstEngine      = 3.0
	runsAgainstFingerprint = 5.0
	// The extremes of a few runs lie closer together than those of many: so much does the usual spread weigh against them.
	runsAgainstSpread = 3.0
)

// Prior is what is assumed of a pool before there is history.
type Prior struct {
	Startup time.Duration
	// BytesPerSecond is the pool's scan rate; zero means unknown. Borrowed says that it is another pool's.
	BytesPerSecond int64
	Borrowed       bool
}

// blind reports whether the prior says nothing of a query that scans so much.
func (p Prior) blind(bytes signal.Value) bool {
	_, fresh := bytes.Get()
	return !fresh || p.Borrowed || p.BytesPerSecond <= 0
}

// Runs are the moments of the logarithms of a sample of execution times.
type Runs struct {
	// N are the runs that ended well, Mu and Sigma those of their logarithms.
	N         int64
	Mu, Sigma float64
	// Stopped are the runs that were stopped for their time, after StoppedMs on average: they took at least that.
	Stopped   int64
	StoppedMs float64
	Window    string
}

// RunsOf reads the sample off a profile. A profile without times is an empty sample.
func RunsOf(p *profile.Profile) Runs {
	r := Runs{Window: p.Window}
	if p.TimeStops > 0 && p.TimeStopMs != nil && *p.TimeStopMs > 0 {
		r.Stopped, r.StoppedMs = p.TimeStops, *p.TimeStopMs
	}
	if p.Successes <= 0 || p.ExecMsP50 == nil || !(*p.ExecMsP50 >= 0) {
		return r
	}
	p50 := math.Max(*p.ExecMsP50, 1)
	r.N, r.Mu, r.Sigma = p.Successes, math.Log(p50), fewSigma
	if p.ExecMsP95 != nil {
		seen := math.Max(minSigma, math.Log(math.Max(*p.ExecMsP95/p50, 1))/z95)
		n := float64(p.Successes)
		r.Sigma = math.Sqrt((n*seen*seen + runsAgainstSpread*fewSigma*fewSigma) / (n + runsAgainstSpread))
	}
	return r
}

// Pool adds samples up: the runs of one fingerprint on the clusters of an engine, each against what was assumed of that cluster, so
// that a faster cluster and a slower one say the same of the fingerprint.
type Pool struct {
	n            int64
	sum, squares float64
	window       string
}

// Add puts a sample in, from a cluster of which base is assumed.
func (p *Pool) Add(r Runs, base Term) {
	n, mu := float64(r.N), r.Mu-base.Mu
	p.n += r.N
	p.sum += n * mu
	p.squares += n * (r.Sigma*r.Sigma + mu*mu)
	if r.N > 0 {
		p.window = r.Window
	}
}

// Without is what the sample of all but one that was put in says of the one's cluster, of which base is assumed.
func (p *Pool) Without(r Runs, base Term) Runs {
	n := p.n - r.N
	if n <= 0 {
		return Runs{}
	}
	own, ownMu := float64(r.N), r.Mu-base.Mu
	mu := (p.sum - own*ownMu) / float64(n)
	variance := (p.squares-own*(r.Sigma*r.Sigma+ownMu*ownMu))/float64(n) - mu*mu
	return Runs{N: n, Mu: base.Mu + mu, Sigma: math.Sqrt(math.Max(variance, minSigma*minSigma) + elsewhereSigma*elsewhereSigma), Window: p.window}
}

// Sources are what is known of a query's execution time on a pool.
type Sources struct {
	Bucket, Fingerprint, Engine Runs
	Bytes                       signal.Value
	// SlowDown is how many times as long as usual everything takes there now.
	SlowDown signal.Value
	// MinRuns is the sample size from which a rung may lead.
	MinRuns int64
}

// Execution estimates the execution time on a pool. It climbs the ladder from the prior up: each rung moves the estimate
// towards itself by n/(n+k), so that much evidence decides alone and little only corrects. The evidence names the best rung
// with enough runs to lead; its N is 0 only when there is no run at all to go by.
func Execution(pool Prior, s *Sources) (Term, event.Evidence) {
	t, evidence := Assumed(pool, s.Bytes), event.Evidence{Level: FromPrior}
	if pool.blind(s.Bytes) {
		evidence.Level = FromGuess
	}
	least := max(1, s.MinRuns)
	for _, rung := range [...]struct {
		level   string
		runs    *Runs
		against float64
	}{
		{FromEngine, &s.Engine, runsAgainstPrior},
		{FromFingerprint, &s.Fingerprint, against(s.Engine.N)},
		{FromBucket, &s.Bucket, runsAgainstFingerprint},
	} {
		if rung.runs.N <= 0 && rung.runs.Stopped <= 0 {
			continue
		}
		t = shrink(t, rung.runs, rung.against)
		switch {
		case rung.runs.N >= least:
			evidence = event.Evidence{Level: rung.level, N: rung.runs.N, Window: rung.runs.Window}
		case evidence.Level == FromPrior, evidence.Level == FromGuess:
			evidence.N, evidence.Window = max(evidence.N, rung.runs.N+rung.runs.Stopped), rung.runs.Window
		}
	}
	if slow, ok := s.SlowDown.Get(); ok && slow > 0 {
		t.Mu += math.Log(math.Min(math.Max(slow, fastest), slowest))
	}
	return t, evidence
}

// against is what the fingerprint's own runs have to outweigh.
func against(engineRuns int64) float64 {
	if engineRuns > 0 {
		return runsAgainstEngine
	}
	return runsAgainstPrior
}

// Assumed is the execution time without any history.
func Assumed(pool Prior, bytes signal.Value) Term {
	start := float64(pool.Startup.Milliseconds())
	n, ok := bytes.Last()
	if !ok || pool.BytesPerSecond <= 0 {
		return Term{Mu: math.Log(math.Max(start+blindMs, 1)), Sigma: blindSigma}
	}
	ms := math.Max(start+n/float64(pool.BytesPerSecond)*1000, 1)
	if pool.blind(bytes) {
		return Term{Mu: math.Log(ms), Sigma: blindSigma}
	}
	return Term{Mu: math.Log(ms), Sigma: priorSigma}
}

// shrink moves an estimate towards a sample. The spread is that of both, by weight, plus what the mean of a small sample may be
// off by.
func shrink(below Term, r *Runs, k float64) Term {
	mu, variance, n := r.Mu, r.Sigma*r.Sigma, float64(r.N)
	if r.N <= 0 {
		mu, variance = below.Mu, below.Sigma*below.Sigma // the stopped runs are held against what was believed before
	}
	if r.Stopped > 0 {
		mu, variance, n = censored(mu, variance, n, float64(r.Stopped), math.Log(r.StoppedMs))
	}
	w := n / (n + k)
	variance += variance / n
	return Term{
		Shift: below.Shift,
		Mu:    w*mu + (1-w)*below.Mu,
		Sigma: math.Min(math.Max(minSigma, math.Sqrt(w*variance+(1-w)*below.Sigma*below.Sigma)), blindSigma),
	}
}

// censored takes in runs of which only a lower bound is known, by some rounds of expectation maximisation: each counts as what a
// run is expected to take that has got that far already. Taking the bound for the time itself would make a pool that stops
// queries early look quick.
func censored(mu, variance, n, stopped, bound float64) (_, _, _ float64) {
	m, v := mu, math.Max(variance, minSigma*minSigma)
	for range 6 {
		sigma := math.Sqrt(v)
		a := (bound - m) / sigma
		hazard := mills(a)
		tail := m + sigma*hazard
		tailVariance := v * math.Max(0, 1+a*hazard-hazard*hazard)
		next := (n*mu + stopped*tail) / (n + stopped)
		v = (n*(variance+sq(mu-next)) + stopped*(tailVariance+sq(tail-next))) / (n + stopped)
		v = math.Min(math.Max(v, minSigma*minSigma), 4)
		m = next
	}
	return m, v, n + stopped
}

// mills is the density of the standard normal over its upper tail at a.
func mills(a float64) float64 {
	if a > 8 {
		return a + 1/a // the tail is too small to divide by
	}
	return math.Exp(-a*a/2) / math.Sqrt(2*math.Pi) / math.Max(0.5*math.Erfc(a/math.Sqrt2), 1e-300)
}

func sq(x float64) float64 { return x * x }
