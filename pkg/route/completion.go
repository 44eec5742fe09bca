package route

import (
	"math"
	"time"

	"github.com/pointsman/pointsman/pkg/estimate"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/signal"
)

// parts are the pieces of a candidate's completion time, in milliseconds.
type parts struct {
	wait      float64
	waitKnown bool
	acquire   float64
	exec      estimate.Time
	// pHit is the probability of a hit, pHitNoWait what it would be with an empty queue.
	pHit, pHitNoWait float64
	total            float64
	cost             float64
}

// queueWait is the predicted wait of a Task that goes to the pool now, in milliseconds: what the signals predict, plus
// what this router has sent there since they were observed. Where no prediction is known it follows from a free slot, or from
// the queue and the rate at which it is worked off; where those are not known either it is absent, which is not zero.
func queueWait(in *Input, p policy.Pool) signal.Value {
	wait := in.signal(p.Name, signal.EstWaitMs)
	inflight := float64(in.Inflight[p.Name])
	slots, slotsKnown := in.signal(p.Name, signal.Slots).Get()
	if !slotsKnown && p.Slots > 0 {
		slots, slotsKnown = float64(p.Slots), true
	}
	running, runningKnown := in.signal(p.Name, signal.Running).Get()
	queued, queuedKnown := in.signal(p.Name, signal.Queued).Get()
	free, freeKnown := slots-running-queued, slotsKnown && runningKnown && queuedKnown
	ahead := inflight
	if freeKnown {
		ahead = math.Max(0, inflight-math.Max(0, free)) // only what finds no free slot waits
	}
	rate, rateKnown := in.signal(p.Name, signal.DonePerSecond).Get()
	rateKnown = rateKnown && rate > 0
	base, known := wait.Get()
	switch {
	case known && ahead > 0 && rateKnown:
		base += ahead / rate * 1000
	case known:
	case freeKnown && free > inflight:
		base = 0
	case queuedKnown && rateKnown:
		base = (queued + ahead) / rate * 1000
	default:
		return signal.Value{Unit: signal.Millis}
	}
	return signal.Of(base, signal.Millis, wait.Source, time.Time{})
}

// complete estimates when the candidate would deliver: queue + acquisition + execution. Delivery is part of execution as
// long as nothing measures it apart.
func complete(in *Input, c *candidate) {
	p := &c.parts
	wait := queueWait(in, c.pool)
	p.wait, p.waitKnown = wait.Get()
	if c.asleep {
		p.acquire = float64(c.pool.WakeTime.Milliseconds())
		if w, ok := in.signal(c.Cluster, signal.WakeMs).Last(); ok {
			p.acquire = w
		}
	}
	prior := estimate.Prior{Startup: c.pool.Startup, BytesPerSecond: c.pool.BytesPerSecond}
	p.exec = estimate.Execution(prior, c.prof, c.found, in.scanBytes(), in.Policy.Thresholds.HistoryMinRuns)
	left := in.slaLeftMs()
	ok := successRate(in, c)
	p.pHitNoWait = p.exec.Within(left-p.acquire) * ok
	p.pHit = p.exec.Within(left-p.acquire-p.wait) * ok
	p.total = p.wait + p.acquire + p.exec.Mean()
	p.cost = p.exec.Mean() / 1000 * c.pool.CostPerSecond
	c.Estimate = &event.CandidateEstimate{
		QueueMs: wait, AcquireMs: value(p.acquire, signal.Millis), ExecMs: value(p.exec.Mean(), signal.Millis),
		TotalMs: value(p.total, signal.Millis), PHit: value(p.pHit, signal.Probability),
		Cost: value(p.cost, ""), Evidence: p.exec.Evidence,
	}
}

// value is a number that was computed here: it is as old as the decision, so it carries no time and no source.
func value(n float64, unit signal.Unit) signal.Value {
	// Rounded, so that the last bits of exp and log on another processor do not change a stored decision.
	return signal.Of(round(n), unit, "", time.Time{})
}

func round(n float64) float64 { return math.Round(n*1000) / 1000 }

// successRate is the share of runs that ended well here, with one good run added so that a first failure does not damn a
// pool for ever. Memory kills that later successes have outweighed no longer count. Without history it is 1: the prior's
// spread carries the doubt.
func successRate(in *Input, c *candidate) float64 {
	runs := c.prof.Runs
	if c.prof.SuccessesAfterKill >= in.Policy.Thresholds.MemoryKillForgivenAfter {
		runs -= c.prof.MemoryKills
	}
	if !c.found || runs <= 0 {
		return 1
	}
	return min(1, float64(c.prof.Successes+1)/float64(runs+1))
}
