package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// errLetGo ends the work on a Task without an end: somebody else has it, or will.
var errLetGo = errors.New("the task is left to its next owner")

// errAgain means that the ledger says something else than this process believed: the Task is begun anew from the ledger.
var errAgain = errors.New("the ledger is ahead of this process")

// task is one Task on its way. Its goroutine is the only one that acts for it.
type task struct {
	p     *partition
	id    string
	first event.RouteDecision // the first in the log; it is what the Task is
	rec   *kgo.Record         // of the first
	seen  time.Time           // when it was read
	order uint64              // among the Tasks of this process
	log   *slog.Logger

	arrived   chan struct{} // a further decision is there
	cancelled chan struct{} // closed when the user takes the Task back

	// Under the partition's lock.
	recs   []*kgo.Record
	next   map[int]event.RouteDecision // by attempt number
	cancel *event.Cancel

	// Of the goroutine.
	ledger    *stream.Ledger
	tried     []tried
	current   event.RouteDecision // the newest decision that was acted on
	fallbacks []event.Target      // of that decision
	changes   map[int]int         // published so far, by attempt number
}

// tried is an attempt that was made.
type tried struct {
	number  int
	target  event.Target
	claimed bool
	ending  *ending // nil while it is open
}

// free says that the attempt does not count, since it ended only because its owner changed.
func (m tried) free() bool { return m.ending != nil && m.ending.TakenOver }

func newTask(p *partition, rec *kgo.Record, d event.RouteDecision) *task {
	t := &task{
		p: p, id: d.TaskID, first: d, rec: rec, seen: time.Now(), order: p.app.arrivals.Add(1), log: p.log.With(telemetry.KeyTask, d.TaskID),
		arrived: make(chan struct{}, 1), cancelled: make(chan struct{}),
		recs: []*kgo.Record{rec}, next: map[int]event.RouteDecision{}, changes: map[int]int{},
	}
	if d.Task != nil {
		t.log = t.log.With(telemetry.KeyTenant, d.Task.Tenant)
	}
	return t
}

// add takes a further record of the Task and says what it was. The partition's lock is held.
func (t *task) add(rec *kgo.Record, d event.RouteDecision) string {
	t.recs = append(t.recs, rec)
	switch {
	case d.Kind == event.PassCancel:
		if t.cancel != nil || t.first.Kind == event.PassCancel {
			return readRepeat
		}
		c := d.Cancel
		if c == nil {
			c = &event.Cancel{TaskID: t.id}
		}
		if t.first.Task != nil && c.Tenant != "" && t.first.Task.Tenant != c.Tenant {
			t.log.Warn("a cancel names another tenant and is ignored", telemetry.KeyOffset, rec.Offset)
			return readRepeat
		}
		t.cancel = c
		close(t.cancelled)
		return readCancel
	case d.Attempt > t.first.Attempt:
		if _, ok := t.next[d.Attempt]; ok {
			return readRepeat
		}
		t.next[d.Attempt] = d
		select {
		case t.arrived <- struct{}{}:
		default:
		}
		return readNext
	default:
		return readRepeat
	}
}

// records are those that are finished with the Task. The partition's lock is held.
func (t *task) records() []*kgo.Record { return t.recs }

// decisionFor gives the decision for an attempt number, if it has come.
func (t *task) decisionFor(number int) (event.RouteDecision, bool) {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	d, ok := t.next[number]
	return d, ok
}

// govern makes the newest decision up to an attempt's number the one that its events and its Outcome tell of. After a take-over
// it may come behind the attempt that it led to.
func (t *task) govern(number int) {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	best := t.first.Attempt
	for n, d := range t.next {
		if n > best && n <= number && d.Kind == event.Route {
			best, t.current = n, d
		}
	}
}

func (t *task) cancelWish() *event.Cancel {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	return t.cancel
}

// run lives the Task to its Outcome. What goes wrong here is begun again from the ledger, as another process would.
func (t *task) run() {
	_, span := stream.Span(t.p.app.deps, t.rec)
	defer span.End()
	span.SetAttributes(attribute.String("pointsman.task", t.id))
	var held *lease
	for {
		if held = t.p.held(held); held == nil {
			t.p.drop(t)
			return
		}
		t.ledger = held.ledger
		ctx := trace.ContextWithSpan(held.ctx, span)
		for ctx.Err() == nil {
			err := t.live(ctx)
			switch {
			case err == nil:
				t.p.app.hooks.at(ctx, StepPublished, t.id)
				t.p.finish(t)
				return
			case errors.Is(err, errLetGo):
				<-ctx.Done() // whatever made it let go ends the lease too
			case ctx.Err() != nil:
			default:
				t.log.ErrorContext(ctx, "a task is begun again from the ledger", telemetry.Err(err))
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		}
	}
}

// live goes from what the ledger says to the Outcome.
func (t *task) live(ctx context.Context) error {
	d := t.first
	t.tried, t.current, t.fallbacks = nil, d, d.Fallbacks
	known, err := t.known(ctx)
	if err != nil {
		return err
	}
	if known.Final != nil {
		payload, err := t.ledger.Payload(ctx, *known.Final)
		if err != nil {
			return err
		}
		return t.emit(ctx, payload, known.FinalKey, nil)
	}
	switch d.Kind {
	case event.Reject:
		return t.endTask(ctx, t.rejected(d))
	case event.PassCancel:
		return t.endTask(ctx, t.withdrawn(d.Cancel))
	default:
		return t.route(ctx, known)
	}
}

// known is what the ledger says of the Task. What its fold may have forgotten is looked for in the log: a Task that is past its
// deadline, and one that a cancel names, may have ended long ago. What is read past the end of the lease is its next owner's: an
// attempt that is open there was left by nobody, and its query must not be stopped.
func (t *task) known(ctx context.Context) (v ledger.Task, err error) {
	var ok, ours bool
	t.ledger.View(func(f *ledger.Fold) {
		v, ok = f.Task(t.id)
		ours = f.Holds(t.ledger.Epoch(), t.ledger.Owner())
	})
	if ours && !ok && (t.first.Kind == event.PassCancel || !t.now().Before(t.first.Deadline)) {
		since := t.rec.Timestamp
		if submitted := t.submittedAt(); submitted.Before(since) {
			since = submitted
		}
		err = t.p.app.persist(ctx, "looking into the ledger's past", func(ctx context.Context) (err error) {
			v, _, err = t.ledger.Deep(ctx, t.id, since)
			return err
		})
		t.ledger.View(func(f *ledger.Fold) { ours = f.Holds(t.ledger.Epoch(), t.ledger.Owner()) })
	}
	switch {
	case err != nil:
		return v, fmt.Errorf("%w: %w", errLetGo, err)
	case !ours:
		return v, errLetGo
	}
	return v, nil
}

// submittedAt is when the Task can have had its first record at the earliest.
func (t *task) submittedAt() time.Time {
	if task := t.first.Task; task != nil && task.SubmittedAt != nil {
		return *task.SubmittedAt
	}
	return t.rec.Timestamp.Add(-query.DefaultLimits.MaxTimeout)
}

// step is what to do next.
type step struct {
	number int
	target event.Target
	delay  time.Duration
	await  bool // the router has to decide
}

// route makes attempts until one of them ends the Task.
func (t *task) route(ctx context.Context, known ledger.Task) error {
	open, err := t.restore(ctx, known)
	if err != nil {
		return err
	}
	s := step{number: t.first.Attempt, target: t.first.Target}
	if n := len(t.tried); n > 0 {
		last := t.tried[n-1]
		if last.ending != nil {
			s, err = t.resume(ctx, last)
		} else {
			s, err = t.newTry(step{number: last.number, target: last.target}).adopt(ctx, *open)
		}
		if err != nil {
			return err
		}
	}
	for {
		if s.number == 0 {
			return nil // the Task has ended
		}
		if s, err = t.advance(ctx, s); err != nil {
			return err
		}
	}
}

// advance does one step and gives the next one; the zero step means that the Task has ended.
func (t *task) advance(ctx context.Context, s step) (step, error) {
	if s.await {
		return t.awaitDecision(ctx, s)
	}
	if !t.now().Before(t.deadline()) {
		return step{}, t.endTask(ctx, t.expired())
	}
	if s.delay > 0 {
		if ended, err := t.pause(ctx, s); ended || err != nil {
			return step{}, err
		}
	}
	t.p.app.hooks.at(ctx, StepPlaced, query.AttemptID(t.id, s.number))
	return t.newTry(s).make(ctx)
}

// now is the broker's clock, as far as the ledger tells it: deadlines go by it, whatever this machine's clock shows.
func (t *task) now() time.Time { return t.ledger.BrokerNow() }

// untilDeadline is a timer for the Task's deadline, by the broker's clock.
func (t *task) untilDeadline() *time.Timer { return time.NewTimer(t.deadline().Sub(t.now())) }

func (t *task) deadline() time.Time { return t.first.Deadline }

// pause waits before a retry. ended means that the Task ended meanwhile.
func (t *task) pause(ctx context.Context, s step) (ended bool, err error) {
	wait, late := time.NewTimer(s.delay), t.untilDeadline()
	defer wait.Stop()
	defer late.Stop()
	select {
	case <-wait.C:
		return false, nil
	case <-t.cancelled:
		return true, t.endTask(ctx, t.withdrawn(t.cancelWish()))
	case <-late.C:
		return true, t.endTask(ctx, t.expired())
	case <-ctx.Done():
		return true, errLetGo
	}
}

// awaitDecision waits for the router. A reroute that never comes ends the Task at its deadline.
func (t *task) awaitDecision(ctx context.Context, s step) (step, error) {
	late := t.untilDeadline()
	defer late.Stop()
	for {
		if d, ok := t.decisionFor(s.number); ok {
			t.current, t.fallbacks = d, d.Fallbacks
			if d.Kind == event.Reject {
				return step{}, t.endTask(ctx, t.rejected(d))
			}
			return step{number: s.number, target: d.Target}, nil
		}
		select {
		case <-t.arrived:
		case <-t.cancelled:
			return step{}, t.endTask(ctx, t.withdrawn(t.cancelWish()))
		case <-late.C:
			return step{}, t.endTask(ctx, t.expired())
		case <-ctx.Done():
			return step{}, errLetGo
		}
	}
}
