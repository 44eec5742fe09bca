package executor

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/query"
)

// outcome begins the Outcome of the Task as it stands. y is the attempt that ends it, or nil. Its times are by the broker's clock,
// as deadlines are: the Task's submission was stamped elsewhere, and this machine's clock may be wrong.
func (t *task) outcome(status event.Status, y *try) event.Outcome {
	now := t.now().UTC().Truncate(time.Millisecond)
	d := t.current
	o := event.Outcome{
		TaskID: t.id, Status: status, Fingerprint: d.Fingerprint, Bucket: d.Bucket, Statement: d.Statement, Tables: d.Tables,
		Rule: d.Rule, Verdict: d.Verdict, PolicyHash: d.PolicyHash, Estimates: d.Estimates,
		SubmittedAt: now, FinishedAt: now,
	}
	for _, r := range d.Reasons {
		o.Reasons = append(o.Reasons, r.Code)
	}
	first := event.Target{}
	for _, m := range t.tried {
		if first == (event.Target{}) {
			first = m.target
		}
		if m.claimed {
			o.Attempts++
			o.Target, o.Rerouted = m.target, m.target != first
		}
	}
	if task := t.first.Task; task != nil {
		o.Tenant, o.User, o.SessionID, o.Class, o.Tags = task.Tenant, task.User, task.SessionID(), task.SessionClass(), task.Tags
		o.Dataset, o.QueryType = task.Dataset, task.QueryType
		if task.SubmittedAt != nil {
			o.SubmittedAt = task.SubmittedAt.UTC()
		}
		// A Task without an SLA of its own has its timeout for one: later than that is never a success.
		o.SLAMs = task.SLA(task.Timeout(t.first.Deadline.Sub(o.SubmittedAt))).Milliseconds()
	}
	// A producer's clock may run ahead of the broker's: nothing takes less than no time, and the reader is told what was wrong.
	if ahead := o.SubmittedAt.Sub(o.FinishedAt).Milliseconds(); ahead > 0 {
		o.FinishedAt = o.SubmittedAt
		o.Extra = query.Extra{"submittedAheadMs": json.RawMessage(strconv.FormatInt(ahead, 10))}
	}
	o.TotalMs = o.FinishedAt.Sub(o.SubmittedAt).Milliseconds()
	if y != nil {
		t.attach(&o, y)
	}
	o.SLAHit = status == event.Succeeded && o.TotalMs <= o.SLAMs
	return o
}

// attach says where the last attempt was and what it took.
func (t *task) attach(o *event.Outcome, y *try) {
	o.Target, o.Stats = y.target, y.stats()
	o.Rerouted = len(t.tried) > 0 && t.tried[0].target != y.target
	if !y.times.started.IsZero() {
		started := y.times.started.Add(time.Until(t.now())).UTC().Truncate(time.Millisecond)
		switch {
		case started.Before(o.SubmittedAt):
			started = o.SubmittedAt
		case started.After(o.FinishedAt):
			started = o.FinishedAt
		}
		o.StartedAt = &started
	}
}

// rejected is the Outcome of a reject decision. After attempts that failed it is a failure: the router found no further place.
func (t *task) rejected(d event.RouteDecision) event.Outcome {
	t.current = d
	o := t.outcome(event.Rejected, nil)
	o.Rejection = d.Rejection
	if n := len(t.tried); n > 0 && t.tried[n-1].ending != nil {
		o.Status, o.Failure = event.Failed, t.tried[n-1].ending.Failure
		if s := t.tried[n-1].ending.Stats; s != nil {
			o.Stats = *s
		}
	}
	return o
}

// withdrawn is the Outcome of a Task that its user took back.
func (t *task) withdrawn(c *event.Cancel) event.Outcome {
	o := t.outcome(event.Cancelled, nil)
	message := "the Task was cancelled"
	if c != nil {
		if c.User != "" {
			message += " by " + c.User
		}
		if c.Reason != "" {
			message += ": " + c.Reason
		}
		if t.first.Task == nil { // it comes before the Task it means
			o.Tenant, o.User = c.Tenant, c.User
		}
	}
	f := failure.Of(failure.CancelledByUser, message)
	o.Failure = &f
	return o
}

// expired is the Outcome of a Task whose deadline has passed.
func (t *task) expired() event.Outcome {
	o := t.outcome(event.Expired, nil)
	f := failure.Of(failure.Timeout, "the Task's deadline "+t.deadline().UTC().Format(time.RFC3339)+" passed before it had ended")
	o.Failure = &f
	return o
}

// stats are what the attempt took so far. What happened in another process is not known, and stays absent.
func (y *try) stats() event.Stats {
	s := y.engine
	w := y.times
	span := func(from, to time.Time) *int64 {
		if from.IsZero() || to.IsZero() {
			return nil
		}
		ms := max(to.Sub(from).Milliseconds(), 0)
		return &ms
	}
	add := func(ms *int64, d time.Duration) {
		if ms != nil {
			*ms = max(*ms+d.Milliseconds(), 0)
		}
	}
	s.QueueMs, s.AcquireMs = span(w.placed, w.slot), span(w.slot, w.started)
	add(s.QueueMs, -w.asleep) // waiting for the pool comes before the slot, and counts as acquisition
	add(s.AcquireMs, w.asleep)
	s.ExecMs, s.DeliverMs = span(w.started, w.first), span(w.first, w.done)
	return s
}
