package route

import (
	"cmp"
	"slices"

	"github.com/pointsman/pointsman/pkg/classify"
	"github.com/pointsman/pointsman/pkg/estimate"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/signal"
)

// scene is what the steps from the filters on look at, gathered once for a decision.
type scene struct {
	in *Input
	// slaLeft and deadlineLeft are what is left of the SLA and of the Task's time, in milliseconds.
	slaLeft, deadlineLeft float64
	bytes                 signal.Value // to scan
	verdict               classify.Verdict
	slowest               int64 // of the scan rates that the policy names, 0 when it names none
	cands                 []candidate
	records               []record // by the place of the pool in the policy; none without history
	engines               []engineRuns
	totals, costs         scale // by which completion and cost are banded
	sources               estimate.Sources
	// facts are the signals that were looked at, as they count now, cluster by cluster, and seen the same for the decision.
	facts []signal.Fact
	seen  signal.Seen
	// ofCluster says where the facts are of the cluster whose lanes are being added.
	ofCluster [numFacts]int32
}

// fact is a fact about a cluster that a decision looks at: an index into looked.
type fact int

// The facts, by name.
const (
	appliedTS fact = iota
	donePerSecond
	estWaitMs
	healthy
	lagMs
	queued
	ready
	running
	slowDown
	slots
	wakeMs
	numFacts
)

// looked names the facts. It is in order of the names, so that a decision lists them as it would after a round trip in JSON.
var looked = [numFacts]signal.Name{
	appliedTS: signal.AppliedTS, donePerSecond: signal.DonePerSecond, estWaitMs: signal.EstWaitMs, healthy: signal.Healthy, lagMs: signal.LagMs,
	queued: signal.Queued, ready: signal.Ready, running: signal.Running, slowDown: signal.SlowDown, slots: signal.Slots, wakeMs: signal.WakeMs,
}

// candidate is a lane of a pool on its way through the filters and the ranking.
type candidate struct {
	event.Candidate
	pool   *policy.Pool
	poolAt int // its place in the policy
	rec    *record
	// at says where each fact is in the scene's facts, counted from 1; 0 for one that nobody has reported.
	at [numFacts]int32
	// asleep says that the pool has to be woken first, assumed that nobody has said so, seen that it is known to be up or taken to
	// be asleep.
	asleep, assumed, seen bool
	// mayWait says that only filters stand in the way that waiting at the cluster itself overcomes.
	mayWait bool
	// estimate is what Candidate.Estimate points to.
	estimate event.CandidateEstimate
	parts    parts
	bands    [numFactors]int
	hash     uint64
	loss     event.Loss
	flip     event.Flip
}

// record is what history says of the fingerprint on a pool.
type record struct {
	prof, bucket profile.Profile
	found        bool
	runs         estimate.Runs // of prof
	inBucket     estimate.Runs
}

// engineRuns are the runs of the fingerprint on all clusters of one engine.
type engineRuns struct {
	kind string
	pool estimate.Pool
}

// newScene makes one candidate of each lane of each pool.
func newScene(in *Input) *scene {
	s := &scene{
		in: in, slaLeft: in.slaLeftMs(), deadlineLeft: float64(in.deadline().Sub(in.Now).Milliseconds()),
		bytes: in.scanBytes(), totals: scale{step: completionStep}, costs: scale{step: costStep},
	}
	pools, n := in.Policy.Pools, 0
	for i := range pools {
		n += max(1, len(pools[i].Lanes))
		if rate := pools[i].BytesPerSecond; rate > 0 && (s.slowest == 0 || rate < s.slowest) {
			s.slowest = rate
		}
	}
	s.remember()
	s.cands = make([]candidate, 0, n)
	s.facts = make([]signal.Fact, 0, n*usualFacts)
	s.seen = make(signal.Seen, 0, n)
	for i := range pools {
		if len(pools[i].Lanes) == 0 {
			s.add(&pools[i], i)
		}
		for j := range pools[i].Lanes {
			s.add(&pools[i].Lanes[j], i)
		}
	}
	if len(s.seen) > 1 {
		slices.SortFunc(s.seen, func(a, b signal.Sighting) int { return cmp.Compare(a.Cluster, b.Cluster) })
	}
	return s
}

// usualFacts are as many as a cluster usually reports.
const usualFacts = 8

func (s *scene) add(p *policy.Pool, at int) {
	s.cands = s.cands[:len(s.cands)+1] // there is room for all; a candidate is large
	c := &s.cands[len(s.cands)-1]
	c.pool, c.poolAt, c.rec = p, at, &noRecord
	c.Target = event.Target{Engine: p.Kind, Cluster: p.Name, Queue: p.Queue, Resource: p.Resource}
	if s.records != nil {
		c.rec = &s.records[at]
	}
	s.look(c)
}

// look takes the cluster's signals into the scene, and over them the lane's own.
func (s *scene) look(c *candidate) {
	lane := c.pool.SignalKey
	for i := len(s.cands) - 2; i >= 0 && s.cands[i].Cluster == c.Cluster; i-- {
		if s.cands[i].pool.SignalKey == lane { // another resource of the same queue
			c.at = s.cands[i].at
			return
		}
	}
	if n := len(s.cands); n < 2 || s.cands[n-2].Cluster != c.Cluster {
		s.ofCluster = [numFacts]int32{}
		s.take(c.Cluster, &s.ofCluster)
	}
	if c.at = s.ofCluster; lane != "" {
		s.take(lane, &c.at)
	}
}

// take appends what is known under a key to the facts, and says where.
func (s *scene) take(key string, at *[numFacts]int32) {
	values, from := s.in.Signals[key], len(s.facts)
	if len(values) == 0 {
		return
	}
	most := s.in.Policy.Defaults.SignalMaxAge
	for f, name := range looked {
		if v, ok := values[name]; ok {
			if fact(f) != appliedTS { // a position counts from wherever its source likes
				v = v.Amount()
			}
			s.facts = append(s.facts, signal.Fact{Name: name, Value: v.Aged(s.in.Now, most)})
			at[f] = int32(len(s.facts))
		}
	}
	if to := len(s.facts); to > from {
		s.seen = append(s.seen, signal.Sighting{Cluster: key, Facts: s.facts[from:to:to]})
	}
}

var noRecord record

// remember looks up the history of every pool, and sums it up by engine.
func (s *scene) remember() {
	in := s.in
	if len(in.History.Found) == 0 {
		return
	}
	s.records = make([]record, len(in.Policy.Pools))
	for i := range in.Policy.Pools {
		p, r := &in.Policy.Pools[i], &s.records[i]
		key := profile.Key{Fingerprint: in.Fingerprint, Engine: p.Kind, Cluster: p.Name}
		if r.prof, r.found = in.History.Found[key]; r.found {
			r.runs = estimate.RunsOf(&r.prof)
		}
		if key.Bucket = in.Bucket; key.Bucket != "" {
			r.bucket = in.History.Found[key]
			r.inBucket = estimate.RunsOf(&r.bucket)
		}
		if r.runs.N > 0 {
			s.engine(p.Kind).Add(r.runs, estimate.Assumed(s.priorOf(p), s.bytes))
		}
	}
}

// engine are the runs on all clusters of an engine: there are a few engines, so they are looked for one by one.
func (s *scene) engine(kind string) *estimate.Pool {
	for i := range s.engines {
		if s.engines[i].kind == kind {
			return &s.engines[i].pool
		}
	}
	s.engines = append(s.engines, engineRuns{kind: kind})
	return &s.engines[len(s.engines)-1].pool
}

// signal is a fact about the candidate as it counts now: the lane's own where it has it, else the cluster's.
func (s *scene) signal(c *candidate, f fact) signal.Value {
	if at := c.at[f]; at > 0 {
		return s.facts[at-1].Value
	}
	return signal.Value{}
}
