package route

import (
	"math"

	"github.com/pointsman/pointsman/pkg/event"
)

// explore sets every ranked candidate's propensity, and returns the one that the Task's lot has fallen on. That is the first of the
// ranking, but for the policy's share of the Tasks that may explore.
//
// The others share Share equally, and those where the fingerprint has few runs NewShare on top of that. So no candidate that could
// have been tried has a propensity of zero, which is what makes it possible to say later what another policy would have done.
func (s *scene) explore(ranked []*candidate, byRule bool) *candidate {
	best := ranked[0]
	best.Propensity = 1
	e := &s.in.Policy.Exploration
	if !e.On() || len(ranked) == 1 || byRule || !s.mayExplore() {
		return best
	}
	others := make([]*candidate, 0, len(ranked)-1)
	fresh := 0
	for _, c := range ranked[1:] {
		if s.worthTrying(best, c) {
			others = append(others, c)
			if c.rec.prof.Runs < e.NewBelowRuns {
				fresh++
			}
		}
	}
	for _, c := range others {
		c.Propensity = e.Share / float64(len(others))
		if fresh > 0 && c.rec.prof.Runs < e.NewBelowRuns {
			c.Propensity += e.NewShare / float64(fresh)
		}
		c.Propensity = math.Round(c.Propensity*1e9) / 1e9
		best.Propensity -= c.Propensity
	}
	best.Propensity = math.Round(best.Propensity*1e9) / 1e9
	lot := draw(s.in.Seed)
	for _, c := range others {
		if lot < c.Propensity {
			return c
		}
		lot -= c.Propensity
	}
	return best
}

// mayExplore says whether this Task may be the one that tries something: a first attempt of a read whose history could be asked,
// and not one that its session can't afford to lose.
func (s *scene) mayExplore() bool {
	in := s.in
	if in.Attempt > 1 || !in.Shape.ReadOnly || !in.History.Asked {
		return false
	}
	l := in.limits()
	if l == nil {
		return true
	}
	u := &in.Session.Usage
	last := func(most, used int64) bool { return most > 0 && most-used <= max(1, most/lastShare) }
	return !last(l.MaxQueries, u.Queries) && !last(l.MaxBytes, u.Bytes) && !last(l.MaxWall.Milliseconds(), u.WallMs)
}

// lastShare is the part of a budget that is not explored with.
const lastShare = 10

// worthTrying says whether a candidate may be tried: it meets the SLA with enough probability, it is known to have a free slot and
// to be awake, and what it takes longer than the best is within what the tenant pays for exploration.
func (s *scene) worthTrying(best, c *candidate) bool {
	p := &c.parts
	if c.bands[bySLA] != 0 || c.asleep || !p.loadKnown || p.load >= 1 || p.wait > 0 {
		return false
	}
	return s.extraMs(best, c) <= s.extraLeft()
}

// extraMs is how much longer the candidate is expected to take than the best.
func (s *scene) extraMs(best, c *candidate) float64 {
	return round(math.Max(0, c.parts.total-best.parts.total))
}

// extraLeft is what is left of the time that the tenant pays for exploration. A tenant of which nothing is counted pays none:
// what is not known is not free.
func (s *scene) extraLeft() float64 {
	if s.in.Tenant == nil {
		return 0
	}
	used := s.in.Tenant.Total()
	return math.Max(0, s.in.Policy.Exploration.MaxExtraShare*float64(used.ExecMs)-float64(used.ExploredMs))
}

// draw is a number from 0 to 1 that depends on the seed alone (the finaliser of SplitMix64; Steele, Lea and Flood, 2014).
func draw(seed uint64) float64 {
	z := seed + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}

// exploration is what a decision says of a target that was chosen by lot; nil for the ranking's first.
func (s *scene) exploration(best, chosen *candidate) *event.Exploration {
	if chosen == best {
		return nil
	}
	return &event.Exploration{ExtraMs: s.extraMs(best, chosen)}
}
