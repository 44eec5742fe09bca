package route

import (
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
	cands                 []candidate
	records               []record // by the place of the pool in the policy; none without history
	engines               []engineRuns
	totals, costs         scale // by which completion and cost are banded
}

// candidate is a lane of a pool on its way through the filters and the ranking.
type candidate struct {
	event.Candidate
	pool *policy.Pool
	rec  *record
	// own are the signals of the cluster, lane those of the lane alone, which come first.
	own, lane map[signal.Name]signal.Value
	// asleep says that the pool has to be woken first, seen that it is known to be up or asleep.
	asleep, seen bool
	// mayWait says that only filters stand in the way that waiting at the cluster itself overcomes.
	mayWait bool
	// estimate is what Candidate.Estimate points to.
	estimate event.CandidateEstimate
	parts    parts
	bands    [numFactors]int
	hash     uint64
	loss     event.Loss
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
		totals: scale{step: 1.5}, costs: scale{step: 1.25},
	}
	s.remember()
	pools, n := in.Policy.Pools, 0
	for i := range pools {
		n += max(1, len(pools[i].Lanes))
	}
	s.cands = make([]candidate, 0, n)
	for i := range pools {
		if len(pools[i].Lanes) == 0 {
			s.add(&pools[i], i)
		}
		for j := range pools[i].Lanes {
			s.add(&pools[i].Lanes[j], i)
		}
	}
	return s
}

func (s *scene) add(p *policy.Pool, at int) {
	s.cands = append(s.cands, candidate{pool: p, own: s.in.Signals[p.Name]})
	c := &s.cands[len(s.cands)-1]
	c.Target = event.Target{Engine: p.Kind, Cluster: p.Name, Queue: p.Queue, Resource: p.Resource}
	if p.SignalKey != "" {
		c.lane = s.in.Signals[p.SignalKey]
	}
	c.rec = &noRecord
	if s.records != nil {
		c.rec = &s.records[at]
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
			s.engine(p.Kind).Add(r.runs)
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
func (s *scene) signal(c *candidate, name signal.Name) signal.Value {
	v, ok := c.lane[name]
	if !ok {
		v = c.own[name]
	}
	return v.Aged(s.in.Now, s.in.Policy.Defaults.SignalMaxAge)
}
