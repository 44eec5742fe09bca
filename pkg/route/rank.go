package route

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

// factor is one ordered factor of the ranking. Candidates whose values fall into one band are equal in it, so that a gap
// of a percent in the first factor does not outweigh a gap of ten times in the second.
type factor struct {
	name string
	code Code
	// bands gives each candidate its value and band; lower bands are better. What it leaves in out is no value and band 0.
	bands func(in *Input, cands []*candidate, out []banded)
}

type banded struct {
	value signal.Value
	band  int
}

// factors are compared in this order; the first that differs decides.
var factors = []factor{
	{"slaProbability", SLAProbability, slaBands},
	{"completion", ShorterCompletion, completionBands},
	{"hint", EngineHintFollowed, hintBands},
	{"cost", LowerCost, costBands},
	{"load", LowerLoad, loadBands},
	{"affinity", Affinity, affinityBands},
}

// rank estimates and orders the candidates that passed the filters, best first, and fills their ranks, factors and what
// each lost by.
func rank(in *Input, all []*candidate) []*candidate {
	cands := make([]*candidate, 0, len(all))
	for _, c := range all {
		if c.Filtered == nil {
			complete(in, c)
			cands = append(cands, c)
		}
	}
	if len(cands) == 0 {
		return nil
	}
	for _, c := range cands {
		c.bands, c.Factors = make([]int, 0, len(factors)), make([]event.Factor, 0, len(factors))
	}
	out := make([]banded, len(cands))
	for _, f := range factors {
		clear(out)
		f.bands(in, cands, out)
		for i, b := range out {
			cands[i].bands = append(cands[i].bands, b.band)
			cands[i].Factors = append(cands[i].Factors, event.Factor{Name: f.name, Value: b.value, Band: b.band})
		}
	}
	slices.SortStableFunc(cands, func(a, b *candidate) int {
		return cmp.Or(slices.Compare(a.bands, b.bands), cmp.Compare(a.Cluster, b.Cluster))
	})
	for i, c := range cands {
		c.Rank = i + 1
		if i > 0 {
			r := lostBy(in, cands[0], c)
			c.LostBy = &r
		}
	}
	cands[0].Propensity = 1
	return cands
}

// slaBands: 0 good enough, then ever worse. The target is the policy's.
func slaBands(in *Input, cands []*candidate, out []banded) {
	for i, c := range cands {
		out[i] = banded{value(c.parts.pHit, signal.Probability), slaBand(in, c.parts.pHit)}
		if !c.parts.waitKnown && out[i].band == 0 {
			out[i].band = 1 // a queue that nobody sees is not an empty one
		}
	}
}

func slaBand(in *Input, pHit float64) int {
	band := 0
	for _, share := range []float64{1, 0.75, 0.4, 0.1} {
		if pHit < share*in.Policy.Thresholds.SLATarget {
			band++
		}
	}
	return band
}

// completionBands count only where the SLA is as good as lost: then the sooner the better, in steps of a factor of 1.5.
func completionBands(_ *Input, cands []*candidate, out []banded) {
	logBands(cands, out, 1.5, signal.Millis, func(c *candidate) (float64, bool) {
		return c.parts.total, c.bands[0] >= 3
	})
}

// hintBands prefer what the request asks for, by cluster or by engine, where the SLA leaves the choice.
func hintBands(in *Input, cands []*candidate, out []banded) {
	if in.Task.EngineHint == "" {
		return
	}
	for i, c := range cands {
		asked := c.Cluster == in.Task.EngineHint || c.Engine == in.Task.EngineHint
		out[i].value = signal.OfFlag(asked, "", time.Time{})
		if !asked {
			out[i].band = 1
		}
	}
}

// costBands are steps of a quarter.
func costBands(_ *Input, cands []*candidate, out []banded) {
	logBands(cands, out, 1.25, "", func(c *candidate) (float64, bool) { return c.parts.cost, true })
}

// logBands bands by the logarithm of the ratio to the smallest value. Candidates that do not count are in band 0.
func logBands(cands []*candidate, out []banded, step float64, unit signal.Unit, of func(*candidate) (float64, bool)) {
	least := math.Inf(1)
	for _, c := range cands {
		if v, ok := of(c); ok {
			least = math.Min(least, v)
		}
	}
	for i, c := range cands {
		v, ok := of(c)
		out[i].value = value(v, unit)
		if ok && least > 0 {
			out[i].band = int(math.Round(math.Log(v/least) / math.Log(step)))
		}
	}
}

// loadBands are tenths of the slots. If any candidate's load is unknown the factor says nothing: a missing signal must
// look neither idle nor full.
func loadBands(in *Input, cands []*candidate, out []banded) {
	for i, c := range cands {
		running, ok1 := in.signal(c.Cluster, signal.Running).Get()
		queued, ok2 := in.signal(c.Cluster, signal.Queued).Get()
		slots, ok3 := in.signal(c.Cluster, signal.Slots).Get()
		if !ok1 || !ok2 || !ok3 || slots <= 0 {
			clear(out)
			return
		}
		load := (running + queued + float64(in.Inflight[c.Cluster])) / slots
		out[i] = banded{value(load, ""), int(load * 10)}
	}
}

// affinityBands keep a fingerprint on one cluster by rendezvous hashing (Thaler and Ravishankar, 1998), so that caches
// stay warm and a cluster that comes or goes moves only its own share.
func affinityBands(in *Input, cands []*candidate, out []banded) {
	hashes := make([]uint64, len(cands))
	for i, c := range cands {
		h := fnv.New64a()
		_, _ = h.Write([]byte(in.Fingerprint + "\x00" + c.Target.String()))
		hashes[i] = h.Sum64()
	}
	for i := range cands {
		for j := range cands {
			if hashes[j] > hashes[i] {
				out[i].band++
			}
		}
	}
}

// lostBy says which factor decided between the winner and a loser, how far apart they were, and the smallest change that
// would have flipped it.
func lostBy(in *Input, winner, loser *candidate) event.Reason {
	for i, f := range factors {
		if winner.bands[i] == loser.bands[i] {
			continue
		}
		r := factorReason(in, f.code, winner, loser)
		if flip := flip(in, f.code, winner, loser); flip != "" {
			r.Args["flip"] = flip
			r.Text += "; " + flip
		}
		return r
	}
	return NewReason(Affinity, "other", loser.Cluster)
}

func factorReason(in *Input, code Code, winner, loser *candidate) event.Reason {
	w, l := winner.parts, loser.parts
	switch code {
	case SLAProbability:
		return NewReason(code, "slaMs", strconv.FormatInt(in.sla().Milliseconds(), 10), "percent", percent(w.pHit),
			"other", loser.Cluster, "otherPercent", percent(l.pHit))
	case ShorterCompletion:
		return NewReason(code, "totalMs", ms(w.total), "other", loser.Cluster, "otherTotalMs", ms(l.total))
	case LowerCost:
		return NewReason(code, "cost", decimal(w.cost), "other", loser.Cluster, "otherCost", decimal(l.cost))
	case EngineHintFollowed:
		return NewReason(code, "hint", in.Task.EngineHint)
	default:
		return NewReason(code, "other", loser.Cluster)
	}
}

// flip is the smallest single change of the loser that would have put it level with the winner in the deciding factor.
func flip(in *Input, code Code, winner, loser *candidate) string {
	if code == SLAProbability {
		if loser.parts.pHitNoWait > loser.parts.pHit && loser.parts.pHitNoWait >= in.Policy.Thresholds.SLATarget {
			return loser.Cluster + " would do with a queue below " + ms(waitAllowed(in, loser)) + " ms"
		}
		if successRate(in, loser) < in.Policy.Thresholds.SLATarget {
			return "" // its failures decide, and no other SLA would help
		}
		need := loser.parts.wait + loser.parts.acquire + loser.parts.exec.Quantile(z90)
		return loser.Cluster + " would do with an SLA of " + ms(need+float64(in.sla().Milliseconds())-in.slaLeftMs()) + " ms"
	}
	if code == LowerCost && loser.parts.cost > 0 {
		return loser.Cluster + " would do at " + decimal(winner.parts.cost/loser.parts.cost*loser.pool.CostPerSecond) + " a second"
	}
	return ""
}

// z90 is the 90 % quantile of the standard normal.
const z90 = 1.2815515655446004

// waitAllowed is the longest wait with which the candidate still reaches the SLA target, found by bisection.
func waitAllowed(in *Input, c *candidate) float64 {
	low, high := 0.0, c.parts.wait
	for range 40 {
		mid := (low + high) / 2
		if c.parts.exec.Within(in.slaLeftMs()-c.parts.acquire-mid)*successRate(in, c) >= in.Policy.Thresholds.SLATarget {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

func percent(p float64) string { return strconv.FormatFloat(math.Round(p*1000)/10, 'f', -1, 64) }

func decimal(v float64) string { return strconv.FormatFloat(round(v), 'f', -1, 64) }
