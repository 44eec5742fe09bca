// Package estimate holds distributions of how long something takes, and how they add up to a completion time.
//
// It is core: pure arithmetic. Where the numbers come from (history, catalog, policy) is the caller's, and travels along
// as Evidence.
package estimate

import (
	"math"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/signal"
)

// The levels of evidence, from the best down.
const (
	FromFingerprint = "fingerprint"
	FromPrior       = "prior"
)

// Time is a log-normal distribution of a duration in milliseconds. Execution times are skewed to the right, and their
// logarithms are close enough to normal to rank by. The zero Time is unknown.
type Time struct {
	Mu, Sigma float64
	Known     bool
	Evidence  event.Evidence
}

const (
	// z95 is the 95 % quantile of the standard normal.
	z95 = 1.6448536269514722
	// minSigma keeps a handful of equal runs from looking like certainty: a factor of 1.16 either way.
	minSigma = 0.15
	// priorSigma is the spread of an estimate without history: templates swing by more than this, but a wider one would
	// make every candidate look alike.
	priorSigma = 0.8
	// blindSigma is the spread when not even the bytes are known.
	blindSigma = 1.5
)

// Prior is what is assumed of a pool before there is history.
type Prior struct {
	Startup time.Duration
	// BytesPerSecond is the pool's scan rate; zero means unknown.
	BytesPerSecond int64
}

// Execution estimates the execution time on a pool: from the fingerprint's own runs there if there are enough, else from
// the pool's start-up time and scan rate.
func Execution(pool Prior, prof profile.Profile, found bool, bytes signal.Value, minRuns int64) Time {
	if found && prof.Successes >= max(1, minRuns) && prof.ExecMsP50 != nil && *prof.ExecMsP50 >= 0 {
		p50 := math.Max(*prof.ExecMsP50, 1)
		sigma := minSigma
		if prof.ExecMsP95 != nil && *prof.ExecMsP95 > p50 {
			sigma = math.Max(sigma, math.Log(*prof.ExecMsP95/p50)/z95)
		}
		// The standard error of the median adds to the spread while the sample is small.
		sigma = math.Sqrt(sigma*sigma + 0.5/float64(prof.Successes))
		return Time{
			Mu: math.Log(p50), Sigma: sigma, Known: true,
			Evidence: event.Evidence{Level: FromFingerprint, N: prof.Successes, Window: prof.Window},
		}
	}
	start := float64(pool.Startup.Milliseconds())
	n, ok := bytes.Last()
	if !ok || pool.BytesPerSecond == 0 {
		return Time{Mu: math.Log(math.Max(start+1000, 1)), Sigma: blindSigma, Known: true, Evidence: event.Evidence{Level: FromPrior}}
	}
	ms := math.Max(start+n/float64(pool.BytesPerSecond)*1000, 1)
	return Time{Mu: math.Log(ms), Sigma: priorSigma, Known: true, Evidence: event.Evidence{Level: FromPrior}}
}

// Mean is the expected duration in milliseconds, exp(mu + sigma^2/2). Routing on the mean beats routing on the median.
func (t Time) Mean() float64 { return math.Exp(t.Mu + t.Sigma*t.Sigma/2) }

// Quantile of the standard normal value z, e.g. 1.645 for the 95 % quantile.
func (t Time) Quantile(z float64) float64 { return math.Exp(t.Mu + z*t.Sigma) }

// Within is the probability that the duration is at most ms.
func (t Time) Within(ms float64) float64 {
	if ms <= 0 {
		return 0
	}
	return 0.5 * math.Erfc(-(math.Log(ms)-t.Mu)/(t.Sigma*math.Sqrt2))
}
