package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// writeEnd fixes how the attempt ended, reads it back, and publishes what the ledger says. What follows is in y.next.
func (y *try) writeEnd(ctx context.Context) error {
	y.p.app.hooks.at(ctx, StepEnding, y.id)
	final, end := y.conclude(ctx)
	y.p.app.metrics.ended(y.label(), string(y.state), y.stats())
	if final != nil {
		return y.t.endAttempt(ctx, y, *final)
	}
	note, err := encodeNote(end)
	if err != nil {
		return err
	}
	entry, err := y.t.write(ctx, ledger.Record{Key: y.id, TaskID: y.t.id, Attempt: y.number, Deadline: y.t.deadline(), Payload: note})
	if err != nil {
		return err
	}
	if !entry.Verdict.Accepted {
		return fmt.Errorf("ending %s: %w (%s)", y.id, errAgain, entry.Verdict.Reason)
	}
	y.p.app.hooks.at(ctx, StepEnded, y.id)
	last := &y.t.tried[len(y.t.tried)-1]
	last.ending = end
	if err := y.t.publishEnding(ctx, y.number, *end); err != nil {
		return err
	}
	y.next = y.t.after(*last)
	return nil
}

// conclude says whether the Task ends with this attempt, or what follows it.
func (y *try) conclude(ctx context.Context) (*event.Outcome, *ending) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	y.t.govern(y.number)
	if y.prev == attempt.Running && y.times.first.IsZero() {
		y.times.first = time.Now() // stopped while it ran: it has run that long, and would have taken longer
	}
	switch y.state {
	case attempt.Succeeded:
		o := y.t.outcome(event.Succeeded, y)
		o.Result = y.result
		return &o, nil
	case attempt.Cancelled:
		o := y.t.withdrawn(y.t.cancelWish())
		y.t.attach(&o, y)
		return y.settle(o), nil
	case attempt.TimedOut:
		o := y.t.expired()
		y.t.attach(&o, y)
		return y.settle(o), nil
	default: // it failed in one way or another
	}
	f := y.failure
	if f == nil {
		internal := failure.Of(failure.Internal, "the attempt ended as "+string(y.state)+" and nobody said why")
		f = &internal
	}
	y.p.app.metrics.failures.WithLabelValues(y.label(), f.Class).Inc()
	remedy, why, next := y.remedy(failure.Class(f.Class))
	y.p.app.metrics.remedies.WithLabelValues(string(remedy)).Inc()
	y.log.InfoContext(ctx, "an attempt failed", "state", string(y.state), telemetry.KeyClass, f.Class, "code", f.Code, "name", f.Name,
		"remedy", string(remedy), telemetry.KeyReason, why)
	// The engine's message may quote the statement, literals and all.
	y.log.DebugContext(ctx, "what was said of a failed attempt", "message", telemetry.SQL(f.Message))
	if remedy == event.RemedyFail {
		o := y.t.outcome(event.Failed, y)
		if f.Class == string(failure.Timeout) && !y.t.now().Before(y.t.deadline()) {
			o.Status = event.Expired // the engine's limit was the Task's deadline
		}
		o.Failure = y.unsettled(f)
		return &o, nil
	}
	stats := y.stats()
	end := &ending{
		TakenOver: y.ownersChanged(failure.Class(f.Class)),
		State:     y.state, Prev: y.prev, At: now, Target: y.target, Failure: f, Remedy: remedy, Why: why, Next: next, Stats: &stats, Claimed: y.claimed,
		Fallbacks: y.t.fallbacks,
	}
	if remedy == event.RemedyRetry {
		if !end.TakenOver && y.cluster != nil {
			y.cluster.budget.take()
		}
		end.DelayMs = y.p.app.cfg.Attempts.retryDelay(y.t.inARow(y.target, end.TakenOver)).Milliseconds()
	}
	return nil, end
}

// remedy fits the class's advice to what the Task has left. Rows are shown to nobody before the whole result is stored, so an
// attempt that failed has delivered none.
func (y *try) remedy(c failure.Class) (r event.Remedy, why string, next *event.Target) {
	if y.unstored {
		return event.RemedyFail, "whichever engine runs it, its result is stored here", nil
	}
	advice := failure.Advise(failure.Situation{Class: c, ReadOnly: y.t.current.ReadOnly, Reach: y.reach, Delivered: false})
	options, larger := y.t.candidates(y.target, c), y.larger()
	r, why = failure.Choose(advice, failure.Left{
		Attempts:    y.p.app.cfg.Attempts.MaxAttempts - y.t.spent(y.ownersChanged(c)),
		Retries:     y.p.app.cfg.Attempts.MaxRetries + 1 - y.t.inARow(y.target, y.ownersChanged(c)),
		RetryBudget: y.ownersChanged(c) || y.cluster == nil || y.cluster.budget.left(),
		Larger:      larger != nil,
		Fallbacks:   len(options),
	})
	if r == event.RemedyFailover {
		next = &options[0]
	}
	if r == event.RemedyEnlarge {
		next = larger
	}
	return r, why, next
}

// larger is the same target with the next larger resource profile, or nil.
func (y *try) larger() *event.Target {
	if y.cluster == nil {
		return nil
	}
	name := y.cluster.cfg.Larger[y.target.Resource]
	if name == "" {
		return nil
	}
	next := y.target
	next.Resource = name
	return &next
}

// candidates are the fallbacks of the decision that may still be tried: known here and not failed before. When a cluster is down
// or does not start, the decision was made before that was known, and its fallbacks may be down too: those count that are
// elsewhere and that a fresh signal says are ready. The rest is the router's to judge.
func (t *task) candidates(failed event.Target, c failure.Class) []event.Target {
	excluded := append(t.excluded(), failed)
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(t.fallbacks), func(f event.Target) bool {
		if c == failure.ClusterDown || c == failure.EngineStart {
			if f.Cluster == failed.Cluster || !t.p.app.watch.Ready(f.Cluster, now) {
				return true
			}
		}
		return t.p.app.clusters[f.Cluster] == nil || slices.Contains(excluded, f)
	})
}

// ownersChanged says that the attempt fails only because its owner changed. Such an end is nobody's fault, so it uses up neither
// attempts nor retries: a day of restarts must not fail a Task that runs well. The Task's deadline bounds them.
func (y *try) ownersChanged(c failure.Class) bool { return y.adopted && c == failure.SubmitUnknown }

// spent counts the attempts that count, the last one included unless it is free.
func (t *task) spent(free bool) int {
	n := 0
	for _, m := range t.tried {
		if !m.free() {
			n++
		}
	}
	if free {
		n--
	}
	return n
}

// inARow counts the last attempts on the same target, of those that count.
func (t *task) inARow(target event.Target, free bool) int {
	n := 0
	for i := len(t.tried) - 1; i >= 0 && t.tried[i].target == target; i-- {
		if !t.tried[i].free() {
			n++
		}
	}
	if free {
		n--
	}
	return n
}

// endAttempt ends the Task with an attempt. An Outcome that its topics do not take, whatever was believed of them, loses its inline
// rows to a file, and then what is said of it elsewhere too.
func (t *task) endAttempt(ctx context.Context, y *try, o event.Outcome) error {
	smaller := []func() error{
		func() error { return y.sink.ToFile(o.Result, time.Now()) },
		func() error {
			o.Tables, o.Tags, o.Reasons, o.Estimates = nil, nil, nil, nil
			return nil
		},
	}
	if o.Result == nil {
		smaller = smaller[1:]
	}
	for {
		payload, err := event.Marshal(o)
		if err != nil {
			return err
		}
		err = errOverLimit
		if len(payload) <= t.p.app.outcomeLimit() || len(smaller) == 0 {
			err = t.end(ctx, y.id, y.number, payload, y.endOf(o))
		}
		if !errors.Is(err, errOverLimit) || len(smaller) == 0 {
			return err
		}
		if err := smaller[0](); err != nil {
			return err
		}
		smaller = smaller[1:]
	}
}

// errOverLimit is a record that its topic does not take.
var errOverLimit = errors.New("the record is over its topic's limit")

// endTask ends a Task that has no open attempt: a rejection, a cancel or an expiry between attempts. Its record stands under
// the number 0, since it is no attempt's end.
func (t *task) endTask(ctx context.Context, o event.Outcome) error {
	payload, err := event.Marshal(o)
	if err != nil {
		return err
	}
	return t.end(ctx, ledger.AttemptKey(t.id, 0), 0, payload, nil)
}

// end writes the final record and publishes whichever final record stands.
func (t *task) end(ctx context.Context, key string, number int, payload []byte, last *event.Attempt) error {
	entry, err := t.write(ctx, ledger.Record{
		Key: key, TaskID: t.id, Attempt: number, Deadline: t.deadline(), Final: true, Payload: payload,
	})
	if err != nil {
		return err
	}
	if !entry.Verdict.Accepted {
		return fmt.Errorf("ending %s: %w (%s)", key, errAgain, entry.Verdict.Reason)
	}
	t.p.app.hooks.at(ctx, StepEnded, key)
	return t.emit(ctx, entry.Payload, key, last)
}

// write appends an end and reads it back, however long that takes while the partition is ours.
func (t *task) write(ctx context.Context, r ledger.Record) (stream.Entry, error) {
	var entry stream.Entry
	var refused error
	err := t.p.app.persist(ctx, "writing the end of "+r.Key, func(ctx context.Context) (err error) {
		entry, err = t.ledger.End(ctx, r)
		switch {
		case errors.Is(err, stream.ErrTooLarge), errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
			refused = fmt.Errorf("%w: %w", errOverLimit, err)
		case errors.Is(err, stream.ErrLeaseLost):
			refused = err
		default:
			return err
		}
		return nil
	})
	switch {
	case err != nil:
		return entry, fmt.Errorf("%w: %w", errLetGo, err)
	case errors.Is(refused, stream.ErrLeaseLost), entry.Verdict.Lost():
		return entry, errLetGo
	}
	return entry, refused
}

// inlineLimit is how large an inline result may be so that its Outcome fits into both topics that carry it.
func (a *App) inlineLimit() int {
	return min(int(a.cfg.Results.Inline), a.outcomeLimit()-outcomeRoom)
}

// outcomeRoom is what an Outcome takes besides its rows: names of tables, reasons, estimates.
const outcomeRoom = 32 << 10

// outcomeLimit is how large an Outcome may be, with room for the ledger's own fields and the batch around it.
func (a *App) outcomeLimit() int {
	return min(a.maxBytes(event.TopicAttemptState), a.maxBytes(event.TopicOutcomes)) - 4<<10
}
