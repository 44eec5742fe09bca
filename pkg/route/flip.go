package route

import (
	"math"

	"github.com/pointsman/pointsman/pkg/estimate"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

// What a Flip may name.
const (
	// FlipQueue: the predicted wait at the candidate, in milliseconds.
	FlipQueue = "queueMs"
	// FlipRun: its expected execution time, in milliseconds.
	FlipRun = "runMs"
	// FlipSLA: the Task's SLA, in milliseconds.
	FlipSLA = "slaMs"
	// FlipSuccess: the share of the candidate's runs that end well.
	FlipSuccess = "successRate"
	// FlipCost: what a second costs there.
	FlipCost = "costPerSecond"
	// FlipQueries: how many queries run or wait there.
	FlipQueries = "queries"
	// FlipHint: the Task's hints, to be the candidate.
	FlipHint = "engineHint"
	// FlipHealth: its health, to be known.
	FlipHealth = "healthy"
)

// lose fills in which factor decided between the winner and a loser, how far apart they were, and the smallest change that would
// have made them equal in it. The properties test applies each change and decides again.
func (s *scene) lose(winner, c *candidate) {
	at := 0
	for at < byAffinity && winner.bands[at] == c.bands[at] {
		at++
	}
	c.loss = event.Loss{Code: string(factors[at].code)}
	c.LostBy = &c.loss
	w, l := &winner.parts, &c.parts
	switch at {
	case bySLA:
		c.loss.Gap = value(w.pHit - l.pHit)
		c.loss.Flip = s.flipSLA(winner, c)
	case byCompletion:
		c.loss.Gap = value(l.total - w.total)
		c.loss.Flip = s.flipCompletion(winner, c)
	case byHint:
		c.loss.Flip = c.flipTo(event.Flip{What: FlipHint})
	case byCost:
		c.loss.Gap = signal.Num(digits(l.cost - w.cost))
		c.loss.Flip = s.flipCost(winner, c)
	case byLoad:
		c.loss.Gap = value(l.load - w.load)
		c.loss.Flip = s.flipLoad(winner, c)
	}
}

// flipTo keeps a change in the candidate, so that it takes no memory of its own.
func (c *candidate) flipTo(f event.Flip) *event.Flip {
	c.flip = f
	return &c.flip
}

// flipSLA looks for the change in the order of what is easiest to come by: a shorter queue, a longer SLA, fewer failures.
func (s *scene) flipSLA(winner, c *candidate) *event.Flip {
	band := winner.bands[bySLA]
	if f := s.flipQueue(c, s.needed(band)); f != nil {
		return f
	}
	if !c.sure() {
		if !c.seen && c.parts.waitKnown && slaBand(s, c) <= band {
			return c.flipTo(event.Flip{What: FlipHealth, To: value(1)})
		}
		return nil
	}
	// With a longer SLA the winner does better as well, so that only the best band makes them equal.
	target := s.needed(0)
	if target/c.parts.ok <= mostProbable {
		need := c.parts.time.Quantile(target/c.parts.ok) + float64(s.in.sla().Milliseconds()) - s.slaLeft
		return c.flipTo(event.Flip{What: FlipSLA, To: value(upwards(need))})
	}
	if inTime := c.parts.time.Within(s.slaLeft); inTime > 0 && s.needed(band)/inTime <= 1 {
		return c.flipTo(event.Flip{What: FlipSuccess, To: value(math.Ceil(s.needed(band)/inTime*1000) / 1000)})
	}
	return nil
}

// mostProbable is the probability up to which an SLA can be named that reaches it.
const mostProbable = 0.999

// flipQueue is the longest wait with which the candidate would have at least probability p.
func (s *scene) flipQueue(c *candidate, p float64) *event.Flip {
	if !c.seen || c.parts.ok < p {
		return nil
	}
	t := c.parts.time
	if !c.parts.waitKnown {
		t.Wait = estimate.Around(math.Max(s.slaLeft, 1), waitSigma)
	}
	wait, ok := t.MostWait(s.slaLeft, p/c.parts.ok)
	if !ok || (c.parts.waitKnown && wait >= c.parts.wait) {
		return nil
	}
	return c.flipTo(event.Flip{What: FlipQueue, To: value(math.Floor(wait))})
}

// mostSpeedUp is how many times faster a query may have to run for that to be named: none gets faster than that by itself.
const mostSpeedUp = 10

// flipCompletion is the wait, or else the execution time, with which the candidate's total falls into the winner's band.
func (s *scene) flipCompletion(winner, c *candidate) *event.Flip {
	most := s.totals.edge(winner.bands[byCompletion])
	p := &c.parts
	if wait := most - (p.total - p.wait); p.waitKnown && wait >= 0 {
		return c.flipTo(event.Flip{What: FlipQueue, To: value(math.Floor(wait))})
	}
	exec := p.time.Exec.Mean()
	if run := most - (p.total - exec); run > exec/mostSpeedUp {
		return c.flipTo(event.Flip{What: FlipRun, To: value(math.Floor(run*10) / 10)})
	}
	return nil
}

// flipCost is the price at which the candidate costs about what the winner does.
func (s *scene) flipCost(winner, c *candidate) *event.Flip {
	price := s.costs.edge(winner.bands[byCost]) / c.parts.cost * c.pool.CostPerSecond
	return c.flipTo(event.Flip{What: FlipCost, To: signal.Num(downwards(price))})
}

// flipLoad is how many queries may be there, running or waiting, for it to be no more loaded than the winner.
func (s *scene) flipLoad(winner, c *candidate) *event.Flip {
	slots, ok := s.slots(c)
	if !ok {
		return nil
	}
	most := math.Ceil(float64(winner.bands[byLoad]+1)/loadBandsFull*slots) - 1
	return c.flipTo(event.Flip{What: FlipQueries, To: value(math.Max(most, 0))})
}

// upwards and downwards round to three digits, away from and towards zero: a number for people that still does what it says.
func upwards(n float64) float64   { return threeDigits(n, math.Ceil) }
func downwards(n float64) float64 { return threeDigits(n, math.Floor) }

func threeDigits(n float64, to func(float64) float64) float64 {
	if !(n > 0) || math.IsInf(n, 1) {
		return 0
	}
	scale := math.Pow10(2 - int(math.Floor(math.Log10(n))))
	return to(n*scale) / scale
}
