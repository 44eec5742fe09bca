package estimate

import "math"

// Completion is an end-to-end completion time by its pieces: waiting for a slot, getting a session or waking the pool, running,
// handing the result over. The pieces are taken as independent.
type Completion struct {
	Wait, Acquire, Exec, Deliver Term
}

// Mean is the expected completion time.
func (c *Completion) Mean() float64 {
	return c.Wait.Mean() + c.Acquire.Mean() + c.Exec.Mean() + c.Deliver.Mean()
}

// Within is the probability that everything is done within ms.
//
// The widest piece keeps its distribution function, each other one that is uncertain becomes a grid of points:
// P(O+E <= t) is the mean of P(E <= t-o) over the grid of O. Unlike draws, that has no noise and needs no seed, and it is
// monotone in t and in every shift of a piece, because each of its summands is. The tests hold it against simulation.
func (c *Completion) Within(ms float64) float64 {
	return within3(c.Wait, c.Acquire.plus(c.Deliver), c.Exec, ms)
}

// within3 is the probability that three pieces are done within ms: most have one that is uncertain, or two.
func within3(a, b, c Term, ms float64) float64 {
	if !a.Random() || !b.Random() {
		return within(a.plus(b), c, ms)
	}
	if a.width() > b.width() {
		a, b = b, a
	}
	return a.over(ms, func(rest float64) float64 { return within(b, c, rest) })
}

func within(a, b Term, ms float64) float64 {
	if a.width() > b.width() {
		a, b = b, a
	}
	if !a.Random() {
		return b.Within(ms - a.Shift)
	}
	return a.over(ms, b.Within)
}

// over is the mean, over the Term's grid, of the probability that the rest of ms is enough.
func (t Term) over(ms float64, enough func(rest float64) float64) float64 {
	point, step := math.Exp(t.Mu+firstPoint*t.Sigma), math.Exp(pointStep*t.Sigma)
	// Where the last point makes no difference to the first, those between them make none either. So it is with an idle pool.
	most := enough(ms - t.Shift - point)
	if least := enough(ms - t.Shift - math.Exp(t.Mu-firstPoint*t.Sigma)); most-least < negligible {
		return least
	}
	sum := 0.0
	for _, weight := range weights {
		rest := ms - t.Shift - point
		if rest <= 0 {
			break // the points only grow
		}
		sum += weight * enough(rest)
		point *= step
	}
	return math.Min(sum, 1)
}

// negligible is far below what a probability is rounded to.
const negligible = 1e-5

// width says how far the middle of the uncertain part is spread. The standard deviation would not do: that of a wide log-normal
// is its tail's.
func (t Term) width() float64 {
	if t.Sigma <= 0 {
		return 0
	}
	return t.Sigma * math.Exp(t.Mu)
}

// MostWait is the longest expected wait, up to now's, with which the completion is within ms with at least probability p, and
// false when even no wait would not do.
func (c *Completion) MostWait(ms, p float64) (float64, bool) {
	rest := c.Acquire.plus(c.Deliver)
	if within(rest, c.Exec, ms) < p {
		return 0, false
	}
	low, high := 0.0, c.Wait.Mean()
	for range bisections {
		mid := (low + high) / 2
		if within3(c.Wait.scaled(mid), rest, c.Exec, ms) >= p {
			low = mid
		} else {
			high = mid
		}
	}
	return low, true
}

// scaled is the Term with the same spread around another mean.
func (t Term) scaled(mean float64) Term {
	if !t.Random() {
		return Constant(mean)
	}
	return Around(mean, t.Sigma)
}

// Quantile is the time within which everything is done with at least probability p, found by bisection.
func (c *Completion) Quantile(p float64) float64 {
	certain := c.Wait.Shift + c.Acquire.Shift + c.Exec.Shift + c.Deliver.Shift
	low, high := 0.0, c.Mean()-certain // of what is uncertain
	for c.Within(certain+high) < p && high < 1e15 {
		low, high = high, 2*high+1
	}
	for range bisections {
		mid := (low + high) / 2
		if c.Within(certain+mid) >= p {
			high = mid
		} else {
			low = mid
		}
	}
	return certain + high
}

// bisections narrow a time down to a hundred-thousandth: it is shown to people, and looked for at every candidate that lost.
const bisections = 16

// The grid: 15 points at equal steps of the logarithm, which is where a log-normal's mass is. Each weighs the density there,
// which for smooth sums is right to far more than the width of a step would suggest; the outermost hold the tails.
const (
	points     = 15
	firstPoint = -2.8
	pointStep  = 0.4
)

var weights = func() (w [points]float64) {
	inside := 0.0
	for i := 1; i < points-1; i++ {
		z := firstPoint + float64(i)*pointStep
		w[i] = math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * pointStep
		inside += w[i]
	}
	w[0], w[points-1] = (1-inside)/2, (1-inside)/2
	return w
}()

// phi is the distribution function of the standard normal.
func phi(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }

// normal is phi from a table with linear steps, which is some times as fast and right to a millionth.
func normal(z float64) float64 {
	at := (z + tableEnd) * tablePerUnit
	switch {
	case !(at > 0): // NaN too: what can't be said is not probable
		return 0
	case at >= tableSize-1:
		return 1
	}
	i := int(at)
	return table[i] + (at-float64(i))*(table[i+1]-table[i])
}

const (
	tableEnd     = 6
	tablePerUnit = 256
	tableSize    = 2*tableEnd*tablePerUnit + 1
)

var table = func() (t [tableSize]float64) {
	for i := range t {
		t[i] = phi(float64(i)/tablePerUnit - tableEnd)
	}
	return t
}()
