package router

import (
	"context"
	"hash/fnv"
	"sync/atomic"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/fingerprint/cache"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// scanSizer bounds what a query over some tables scans.
type scanSizer interface {
	ScanBytes(tables []string, now time.Time) signal.Value
}

// decider gathers what a decision depends on, and has it decided. Everything it knows besides its arguments is state that the
// router folds from topics and asks of history; the decision itself is route.Decide's.
type decider struct {
	policy   atomic.Pointer[policy.Policy]
	texts    *cache.Cache
	profiles *profiles
	clusters *clusters
	latches  *latches
	sizes    scanSizer
	metrics  *metrics
	clock    func() time.Time

	tenants *tenants
}

// subject is a Task with what was read off its text.
type subject struct {
	task        query.Task
	digest      string
	attempt     int
	excluded    []event.Target
	lastFailure *event.Failure
	fingerprint string
	bucket      string
	shape       shape.Shape
}

// subject reads a Task's text. What the text's fingerprint says is remembered; a parser that takes too long is not waited for,
// and serves the next Task of the same fingerprint.
func (d *decider) subject(ctx context.Context, t query.Task, attempt int) subject {
	s := subject{task: t, attempt: attempt}
	if t.SQL == "" {
		return s
	}
	// A dialect that is not known is read as any: routing must not fail for want of a name.
	dialect, err := fingerprint.ParseDialect(t.Dialect)
	if err != nil {
		dialect, _ = fingerprint.ParseDialect("auto")
	}
	var found cache.Lookup // what it gives lives as long as the subject, so it is not used again
	d.texts.Get(ctx, t.SQL, dialect, &found)
	s.fingerprint, s.shape = found.Entry.ID.String(), found.Shape()
	if b := found.Binding.Bucket; b != (shape.Bucket{}) {
		s.bucket = b.String()
	}
	return s
}

// reroute is the subject of a failed attempt whose Task wants another decision.
func (d *decider) reroute(ctx context.Context, a *event.Attempt) subject {
	s := d.subject(ctx, *a.Decision.Task, a.Number+1)
	s.excluded, s.lastFailure, s.digest = a.Excluded, a.Failure, a.Decision.TaskDigest
	return s
}

func fingerprints(subjects []subject) []string {
	out := make([]string, 0, len(subjects))
	for _, s := range subjects {
		if s.fingerprint != "" {
			out = append(out, s.fingerprint)
		}
	}
	return out
}

// lookup asks history for all subjects at once.
func (d *decider) lookup(ctx context.Context, subjects []subject) answers {
	return d.profiles.lookup(ctx, fingerprints(subjects))
}

// input is everything that the decision of one subject depends on.
func (d *decider) input(s subject, history profile.Lookup) route.Input {
	now := d.clock().UTC().Round(0) // without the process's own clock, which no record can carry
	signals, inflight := d.clusters.view(now)
	inForce, latches := d.latches.view(&d.policy)
	in := route.Input{
		Task: s.task, TaskDigest: s.digest, Attempt: s.attempt, Excluded: s.excluded, LastFailure: s.lastFailure,
		Fingerprint: s.fingerprint, Bucket: s.bucket, Shape: s.shape, Estimates: map[string]signal.Value{route.ScanBytes: signal.Missing("catalog")},
		History: history, Signals: signals, Latches: latches, Inflight: inflight, Policy: inForce, Now: now, Seed: seed(s.task.ID),
	}
	if d.sizes != nil {
		tables := shape.Names(s.shape.Tables)
		in.Estimates[route.ScanBytes] = d.sizes.ScanBytes(tables, now)
		for _, name := range in.Policy.SummariesOf(tables) { // what a query that is refused may be pointed to
			if in.SummaryBytes == nil {
				in.SummaryBytes = map[string]signal.Value{}
			}
			in.SummaryBytes[name] = d.sizes.ScanBytes([]string{name}, now)
		}
	}
	return in
}

// decide decides for real: it counts the Task as on its way, and for its tenant. account gives the account of the Task's session, nil if
// it has none. It returns what it decided on, too.
func (d *decider) decide(s subject, history profile.Lookup, account func(*route.Input) *route.SessionAccount) (event.RouteDecision, *route.Input) {
	in := d.input(s, history)
	if account != nil {
		in.Session = account(&in)
	}
	start := d.clock()
	var decision event.RouteDecision
	if q := quotaOf(in.Policy, s.task); q.on {
		decision = d.tenants.decide(&in, q, func() event.RouteDecision { return route.Decide(in) })
	} else {
		decision = route.Decide(in)
	}
	d.metrics.decideSeconds.Observe(d.clock().Sub(start).Seconds())
	if decision.Kind == event.Route {
		d.clusters.routed(decision.Cluster, in.Now)
	}
	return decision, &in
}

// explainTime is how long an explanation waits for history.
const explainTime = 2 * time.Second

// explain decides without any effect.
func (d *decider) explain(ctx context.Context, t query.Task, account func(*route.Input) *route.SessionAccount) route.Explanation {
	s := d.subject(ctx, t, 1)
	// A person waits here, not a query: history may take its time.
	history := d.profiles.lookupWithin(ctx, fingerprints([]subject{s}), explainTime)
	in := d.input(s, history.of(s.fingerprint, s.bucket))
	if account != nil {
		in.Session = account(&in)
	}
	if q := quotaOf(in.Policy, t); q.on {
		d.tenants.look(&in, q)
	}
	return route.ExplainInput(in)
}

func seed(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return h.Sum64()
}
