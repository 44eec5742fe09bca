package route

import (
	"math"

	"github.com/pointsman/pointsman/pkg/estimate"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/signal"
)

// parts are the pieces of a candidate's completion time, in milliseconds.
type parts struct {
	queue signal.Number
	// wait is the expected wait; waitKnown says that it does not come from a guess.
	wait      float64
	waitKnown bool
	// behind is how many queries that this router has sent there come first, where nobody knows how fast they are worked off; base is
	// the wait without them.
	behind, base float64
	acquire      float64
	time         estimate.Completion
	// ok is the probability that a run there does not fail, pHit that of a hit.
	ok, pHit    float64
	total, cost float64
	load        float64
	loadKnown   bool
}

const (
	// waitSigma is how far predicted waits lie from what they turn out to be: within a factor of 2.1 nine times in ten.
	waitSigma = 0.45
	// wakeSigma is the same of the time it takes to wake a pool.
	wakeSigma = 0.3
	// unseenSigma is that of a queue that nobody sees.
	unseenSigma = 1.5
)

// poolWait is the predicted wait of a Task that goes to the pool now, as rules may test it: that of the shortest of its queues.
func (s *scene) poolWait(pool int) (least signal.Number) {
	for i := pool; i < len(s.cands) && s.cands[i].poolAt <= pool; i++ { // pools come in order, each with a lane or more
		if s.cands[i].poolAt != pool {
			continue
		}
		wait := s.queueWait(&s.cands[i])
		if n, ok := wait.Get(); ok && n < least.Or(math.Inf(1)) {
			least = wait
		}
	}
	return least
}

// queueWait is the predicted wait of a Task that goes to the pool now, in milliseconds: what the signals predict, plus
// what this router has sent there since they were observed. Where no prediction is known it follows from a free slot, or from
// the queue and the rate at which it is worked off; where those are not known either it is absent, which is not zero. So it is where
// a query is known to find no free slot and nobody knows when one gets free.
func (s *scene) queueWait(c *candidate) signal.Number {
	wait := s.signal(c, estWaitMs)
	inflight := float64(s.in.Inflight[c.Cluster])
	slots, slotsKnown := s.slots(c)
	running, runningKnown := s.signal(c, running).Get()
	queued, queuedKnown := s.signal(c, queued).Get()
	if slotsKnown && runningKnown && queuedKnown && slots > 0 {
		c.parts.load, c.parts.loadKnown = (running+queued+inflight)/slots, true
	}
	free, freeKnown := slots-running-queued, slotsKnown && runningKnown && queuedKnown
	ahead := inflight
	if freeKnown && free > 0 {
		ahead = math.Max(0, inflight-free+1) // only who finds no free slot waits, until one more than is too many has ended
	}
	base, known := wait.Get()
	c.parts.behind = 0
	switch {
	case known && slotsKnown && slots <= 0 && !c.asleep:
		return signal.Number{} // where nothing can run, no wait is one that ends
	case known && ahead == 0:
	case known:
		rate, ok := s.rate(c)
		switch {
		case ok:
			base += ahead / rate * 1000
		case freeKnown:
			c.parts.behind, c.parts.base = ahead, math.Max(base, 0)
			return signal.Number{}
		}
	case freeKnown && free > inflight:
		base = 0
	default:
		rate, ok := s.rate(c)
		if !queuedKnown || !ok {
			return signal.Number{}
		}
		base = (queued + ahead) / rate * 1000
	}
	return value(math.Max(base, 0))
}

// slots are those that the cluster reports, else those that the policy says it has.
func (s *scene) slots(c *candidate) (float64, bool) {
	if n, ok := s.signal(c, slots).Get(); ok {
		return n, true
	}
	return float64(c.pool.Slots), c.pool.Slots > 0
}

// rate is how many queries a second the cluster works off; zero says nothing of how long a queue takes.
func (s *scene) rate(c *candidate) (float64, bool) {
	rate, ok := s.signal(c, donePerSecond).Get()
	return rate, ok && rate > 0
}

// complete estimates when the candidate would deliver, and what it would cost.
func (s *scene) complete(c *candidate) {
	in, p := s.in, &c.parts
	p.wait, p.waitKnown = p.queue.Get()
	p.time.Wait = estimate.Around(p.wait, waitSigma)
	if !p.waitKnown {
		last, _ := s.signal(c, estWaitMs).Last()
		p.time.Wait = estimate.Around(math.Max(last, s.unseenWait()), unseenSigma)
		p.wait = p.time.Wait.Mean()
	}
	p.time.Acquire = estimate.Constant(float64(c.pool.Acquire.Milliseconds()))
	if c.asleep {
		p.time.Acquire = estimate.Around(s.wakeMs(c)+p.time.Acquire.Shift, wakeSigma)
	}
	p.acquire = p.time.Acquire.Mean()
	p.time.Deliver = estimate.Constant(float64(c.pool.Delivery.Milliseconds()))

	bytes, assumed := s.bytes, s.priorOf(c.pool)
	if s.covered(c) {
		bytes = signal.Of(0, signal.Bytes, "reflection", in.Now) // a materialised aggregate is small, however large the raw scan would be
	}
	s.sources = estimate.Sources{ // one for all candidates: it is only read
		Bucket: c.rec.inBucket, Fingerprint: c.rec.runs, Bytes: bytes,
		SlowDown: s.signal(c, slowDown), MinRuns: in.Policy.Thresholds.HistoryMinRuns,
	}
	if s.records != nil {
		s.sources.Engine = s.engine(c.Engine).Without(c.rec.runs, estimate.Assumed(assumed, s.bytes))
	}
	var evidence event.Evidence
	p.time.Exec, evidence = estimate.Execution(assumed, &s.sources)

	s.queueBehind(c)

	p.ok = successRate(in, c.rec, c.pool.SignalKey != "")
	p.pHit = round(p.time.Within(s.slaLeft) * p.ok)
	exec := p.time.Exec.Mean()
	p.total = round(p.wait + p.acquire + exec + p.time.Deliver.Shift)
	// A pool that is woken is paid for from then on, a query runs no longer than its deadline allows, and one that fails is paid
	// for and has to run again.
	seconds := math.Min(exec, math.Max(s.deadlineLeft, 0)) / 1000
	if c.asleep {
		seconds += p.acquire / 1000
	}
	p.cost = digits(seconds * c.pool.CostPerSecond / math.Max(p.ok, 0.1))

	c.estimate = event.CandidateEstimate{
		QueueMs: p.queue, AcquireMs: value(p.acquire), ExecMs: value(exec), TotalMs: value(p.total), PHit: value(p.pHit),
		Cost: signal.Num(p.cost), Evidence: evidence,
	}
	if p.time.Deliver.Shift > 0 {
		c.estimate.DeliverMs = value(p.time.Deliver.Shift)
	}
	c.Estimate = &c.estimate
}

// unseenWait is what a queue that nobody sees is taken to cost.
func (s *scene) unseenWait() float64 { return float64(s.in.Policy.Thresholds.UnseenQueueMs) }

// queueBehind guesses the wait behind queries that this router has just sent there from what this one would take itself: they tend to
// come in swarms of the same kind.
func (s *scene) queueBehind(c *candidate) {
	p := &c.parts
	slots, ok := s.slots(c)
	if p.behind == 0 || !ok {
		return
	}
	p.wait, p.waitKnown = p.base+p.behind*p.time.Exec.Mean()/math.Max(slots, 1), true
	p.time.Wait, p.queue = estimate.Around(p.wait, unseenSigma), value(p.wait)
}

// priorOf is what the policy says of a pool's speed. One of which it says nothing is taken to be as slow as the slowest: it must not
// look quick for that.
func (s *scene) priorOf(p *policy.Pool) estimate.Prior {
	prior := estimate.Prior{Startup: p.Startup, BytesPerSecond: p.BytesPerSecond}
	if prior.BytesPerSecond == 0 {
		prior.BytesPerSecond, prior.Borrowed = s.slowest, true
	}
	return prior
}

// value is a number that was computed here, rounded, so that the last bits of exp and log on another processor do not change a stored
// decision.
func value(n float64) signal.Number { return signal.Num(round(n)) }

func round(n float64) float64 { return math.Round(n*1000) / 1000 }

// digits rounds to six significant digits: costs may be of any size.
func digits(n float64) float64 {
	if n == 0 || math.IsInf(n, 0) || math.IsNaN(n) {
		return n
	}
	scale := math.Pow10(5 - int(math.Floor(math.Log10(math.Abs(n)))))
	return math.Round(n*scale) / scale
}

// successRate is the share of runs that ended well here, with one good run added so that a first failure does not damn a
// pool for ever. Memory kills that later successes have outweighed no longer count, and runs that were stopped for their time count
// as long ones instead. Without history it is 1: the prior's spread carries the doubt. Kills of a lane that passed the filters all
// the same were another lane's.
func successRate(in *Input, r *record, lane bool) float64 {
	p := &r.prof
	runs := p.Runs - r.runs.Stopped
	if lane || p.SuccessesAfterKill >= in.Policy.Thresholds.MemoryKillForgivenAfter {
		runs -= p.MemoryKills
	}
	if !r.found || runs <= 0 {
		return 1
	}
	return min(1, float64(p.Successes+1)/float64(runs+1))
}
