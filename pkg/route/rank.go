package route

import (
	"cmp"
	"math"
	"slices"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

// factor is one ordered factor of the ranking. Candidates whose values fall into one band are equal in it, so that a gap
// of a percent in the first factor does not outweigh a gap of ten times in the second.
type factor struct {
	name string
	code Code
	// bands gives each candidate its value and band; lower bands are better. What it leaves in out is no value and band 0. It
	// reports whether the factor says anything at all of these candidates.
	bands func(s *scene, cands []*candidate, out []banded) bool
}

type banded struct {
	value signal.Number
	band  int
}

// The places of the factors that others refer to.
const (
	bySLA = iota
	byCompletion
	byHint
	byCost
	byLoad
	byAffinity
	numFactors
)

// factors are compared in this order; the first that differs decides.
var factors = [numFactors]factor{
	bySLA:        {"slaProbability", SLAProbability, slaBands},
	byCompletion: {"completion", ShorterCompletion, completionBands},
	byHint:       {"hint", EngineHintFollowed, hintBands},
	byCost:       {"cost", LowerCost, costBands},
	byLoad:       {"load", LowerLoad, loadBands},
	byAffinity:   {"affinity", Affinity, affinityBands},
}

// rank estimates and orders candidates, best first, and fills their ranks, factors and what each lost by.
func (s *scene) rank(cands []*candidate) {
	for _, c := range cands {
		s.complete(c)
	}
	out := make([]banded, len(cands))
	said := make([]event.Factor, 0, len(cands)*numFactors)
	for at := range factors {
		f := &factors[at]
		clear(out)
		says := f.bands(s, cands, out)
		for i, b := range out {
			cands[i].bands[at] = b.band
		}
		if !says {
			continue
		}
		// The factors of all candidates are one block of memory, by candidate.
		for i, c := range cands {
			if c.Factors == nil {
				n := i * numFactors
				c.Factors = said[n : n : n+numFactors]
			}
			c.Factors = append(c.Factors, event.Factor{Name: f.name, Value: out[i].value, Band: out[i].band})
		}
	}
	slices.SortFunc(cands, func(a, b *candidate) int {
		if order := slices.Compare(a.bands[:], b.bands[:]); order != 0 {
			return order
		}
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Resource, b.Resource))
	})
	for i, c := range cands {
		c.Rank = i + 1
		if i > 0 {
			s.lose(cands[0], c)
		}
	}
}

// How far apart candidates have to be for a factor to tell them apart. They are properties of the estimates, which are no finer, and
// no wish of whoever writes a policy: so they are no thresholds.
const (
	completionStep = 1.5  // the ratio of two completion times
	costStep       = 1.25 // the ratio of two costs
	loadBandsFull  = 10   // the bands between an idle cluster and one whose slots are all taken
)

// shares are the parts of the SLA target below which a candidate falls into the next band.
var shares = [...]float64{1, 0.75, 0.4, 0.1}

// lost is the band from which the SLA is as good as lost.
const lost = 3

// slaBands: 0 good enough, then ever worse. The target is the policy's. A candidate whose queue or health nobody sees is a band worse
// off than one that is known to do as well, and so never good enough.
func slaBands(s *scene, cands []*candidate, out []banded) bool {
	for i, c := range cands {
		out[i].band = slaBand(s, c)
		if !c.sure() {
			out[i].band++
		}
	}
	return true
}

func slaBand(s *scene, c *candidate) int {
	band := 0
	for band < len(shares) && c.parts.pHit < s.needed(band) {
		band++
	}
	return band
}

// needed is the probability that the band asks for, rounded as those that it is held against are.
func (s *scene) needed(band int) float64 {
	if band >= len(shares) {
		return 0
	}
	return round(shares[band] * s.in.Policy.Thresholds.SLATarget)
}

// sure reports whether the candidate's queue and health are known.
func (c *candidate) sure() bool { return c.parts.waitKnown && c.seen }

// completionBands count only where the SLA is as good as lost: then the sooner the better, in steps of completionStep.
func completionBands(s *scene, cands []*candidate, out []banded) bool {
	return logBands(cands, out, &s.totals, func(c *candidate) (float64, bool) { return c.parts.total, c.bands[bySLA] >= lost })
}

// hintBands prefer what the request asks for, by cluster or by engine and by resources, where the SLA leaves the choice. The value is
// how many of its wishes are met.
func hintBands(s *scene, cands []*candidate, out []banded) bool {
	asked := wishes(&s.in.Task)
	for i, c := range cands {
		met := 0
		for _, w := range asked {
			if w.met(&c.Target) {
				met++
			}
		}
		out[i] = banded{signal.Num(float64(met)), len(asked) - met}
	}
	if len(asked) == 0 {
		clear(out)
	}
	return len(asked) > 0
}

// costBands are steps of costStep.
func costBands(s *scene, cands []*candidate, out []banded) bool {
	return logBands(cands, out, &s.costs, func(c *candidate) (float64, bool) { return c.parts.cost, true })
}

// scale is what values are banded by: the logarithm of their ratio to the least of them, in steps.
type scale struct {
	step, least float64
	// none says that some candidate has nothing of it at all, which no ratio could say: band 0 is its own then.
	none bool
}

func (s *scale) band(v float64) int {
	if v <= 0 {
		return 0
	}
	band := int(math.Round(math.Log(v/s.least) / math.Log(s.step)))
	if s.none {
		band++
	}
	return band
}

// edge is a value that is just in the band still.
func (s *scale) edge(band int) float64 {
	if s.none {
		band--
	}
	if band < 0 {
		return 0
	}
	return s.least * math.Pow(s.step, float64(band)+0.5) * (1 - 1e-5)
}

// logBands bands by a scale. Candidates that do not count are in band 0.
func logBands(cands []*candidate, out []banded, sc *scale, of func(*candidate) (float64, bool)) (says bool) {
	sc.least, sc.none = math.Inf(1), false
	for _, c := range cands {
		if v, ok := of(c); ok && v > 0 {
			sc.least = math.Min(sc.least, v)
		} else if ok {
			sc.none = true
		}
	}
	for i, c := range cands {
		if v, ok := of(c); ok {
			out[i].band, says = sc.band(v), true
		}
	}
	return says
}

// loadBands are parts of the slots. If any candidate's load is unknown the factor says nothing: a missing signal must
// look neither idle nor full.
func loadBands(_ *scene, cands []*candidate, out []banded) bool {
	for i, c := range cands {
		if !c.parts.loadKnown {
			clear(out)
			return false
		}
		out[i] = banded{value(c.parts.load), int(math.Floor(round(c.parts.load)*loadBandsFull + 1e-9))}
	}
	return true
}

// affinityBands keep a fingerprint on one cluster by rendezvous hashing (Thaler and Ravishankar, 1998), so that caches
// stay warm and a cluster that comes or goes moves only its own share.
func affinityBands(s *scene, cands []*candidate, out []banded) bool {
	order := make([]int, len(cands))
	for i, c := range cands {
		c.hash, order[i] = affinity(s.in.Fingerprint, &c.Target), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cands[b].hash, cands[a].hash) })
	for band, i := range order {
		out[i].band = band
	}
	return true
}

// affinity is the 64-bit FNV-1a hash of a fingerprint and a target.
func affinity(fingerprint string, t *event.Target) uint64 {
	h := uint64(14695981039346656037)
	for _, part := range [...]string{fingerprint, "\x00", t.Engine, "/", t.Cluster, "/", t.Queue, "/", t.Resource} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
	}
	return h
}
