// Package estimate holds distributions of how long something takes, and how they add up to a completion time.
//
// It is core: pure arithmetic, the same on every call. Where the numbers come from (history, catalog, policy) is the caller's,
// and travels along as Evidence.
package estimate

import "math"

// Term is the distribution of one piece of a completion time, in milliseconds: a constant plus a log-normal part. Times are
// skewed to the right, and their logarithms are close enough to normal to rank by.
type Term struct {
	// Shift is the constant part.
	Shift float64
	// Mu and Sigma are those of the logarithm of the other part; Sigma 0 means that there is none.
	Mu, Sigma float64
}

// Constant is a duration that is known exactly. Negative and unreal numbers are none at all.
func Constant(ms float64) Term {
	if !(ms > 0) || math.IsInf(ms, 1) {
		return Term{}
	}
	return Term{Shift: ms}
}

// Around is a duration that is expected to be ms, within a spread of sigma in its logarithm.
func Around(ms, sigma float64) Term {
	if !(ms > 0) || math.IsInf(ms, 1) || sigma <= 0 {
		return Constant(ms)
	}
	return Term{Mu: math.Log(ms) - sigma*sigma/2, Sigma: sigma}
}

// Random reports whether there is anything uncertain about it.
func (t Term) Random() bool { return t.Sigma > 0 }

// Mean is the expected duration. Routing on the mean beats routing on the median.
func (t Term) Mean() float64 {
	if t.Sigma <= 0 {
		return t.Shift
	}
	return t.Shift + math.Exp(t.Mu+t.Sigma*t.Sigma/2)
}

// Within is the probability that the duration is at most ms.
func (t Term) Within(ms float64) float64 {
	rest := ms - t.Shift
	switch {
	case t.Sigma <= 0:
		if rest >= 0 {
			return 1
		}
		return 0
	case rest <= 0:
		return 0
	default:
		return normal((math.Log(rest) - t.Mu) / t.Sigma)
	}
}

// Quantile is the duration that is not exceeded with the probability of the standard normal value z, e.g. 1.645 for 95 %.
func (t Term) Quantile(z float64) float64 {
	if t.Sigma <= 0 {
		return t.Shift
	}
	return t.Shift + math.Exp(t.Mu+z*t.Sigma)
}

// moments are the mean and variance of the uncertain part.
func (t Term) moments() (mean, variance float64) {
	if t.Sigma <= 0 {
		return 0, 0
	}
	s2 := t.Sigma * t.Sigma
	mean = math.Exp(t.Mu + s2/2)
	return mean, mean * mean * math.Expm1(s2)
}

// plus is the distribution of the sum of two independent Terms. Two constants, or a constant and anything, add up exactly. Two
// log-normal parts are one with the mean and the variance of their sum (L. F. Fenton, 1960).
func (t Term) plus(u Term) Term {
	out := Term{Shift: t.Shift + u.Shift}
	switch {
	case t.Sigma <= 0:
		out.Mu, out.Sigma = u.Mu, u.Sigma
	case u.Sigma <= 0:
		out.Mu, out.Sigma = t.Mu, t.Sigma
	default:
		m1, v1 := t.moments()
		m2, v2 := u.moments()
		m, v := m1+m2, v1+v2
		s2 := math.Log1p(v / (m * m))
		out.Mu, out.Sigma = math.Log(m)-s2/2, math.Sqrt(s2)
	}
	return out
}
