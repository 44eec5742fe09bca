package executor

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
)

// submission is a query at an engine with the goroutines that wait for it. They hang on no partition: when an attempt is let
// go, its query must neither be killed nor be held up by rows that nobody reads.
type submission struct {
	stop     context.CancelCauseFunc // kills it at the engine
	answered chan answer
	stored   chan stored // of deliver
	ended    chan struct{}
	last     error // what it ended with, once ended is closed; nil is the end of the statement
	letGo    atomic.Bool
}

type answer struct {
	rows engine.Rows
	err  error
	at   time.Time
}

var errStopped = errors.New("the attempt was stopped")

func (s *submission) done() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// submit sends the query. The answer comes to follow.
func (y *try) submit(ctx context.Context) {
	y.p.app.hooks.at(ctx, StepSubmitting, y.id)
	y.p.app.metrics.submitted.WithLabelValues(y.label()).Inc()
	if !y.retries() {
		y.cluster.budget.submitted()
	}
	run, stop := context.WithCancelCause(trace.ContextWithSpan(context.Background(), trace.SpanFromContext(ctx)))
	s := &submission{stop: stop, answered: make(chan answer, 1), stored: make(chan stored, 1), ended: make(chan struct{})}
	y.running = s
	q := y.query()
	y.times.started, y.missing = time.Now(), time.Time{}
	y.p.app.leftovers.Go(func() {
		rows, err := y.cluster.engine.Submit(run, q)
		if err != nil {
			s.last = err
			close(s.ended)
		}
		s.answered <- answer{rows, err, time.Now()}
	})
}

// retries says that the attempt before this one failed on the same target.
func (y *try) retries() bool {
	n := len(y.t.tried)
	return n > 1 && y.t.tried[n-2].ending != nil && y.t.tried[n-2].ending.Remedy == event.RemedyRetry
}

// query is what the engine is asked.
func (y *try) query() engine.Query {
	task := y.t.first.Task
	limits := y.cluster.cfg.limits(y.target)
	left := y.t.deadline().Sub(y.t.now())
	if limits.MaxExecution > 0 {
		left = min(left, limits.MaxExecution)
	}
	return engine.Query{
		ID: y.id, SQL: task.SQL, Database: engines.Database(y.cluster.cfg.Kind, task.Catalog, task.Schema), MaxExecution: max(left, time.Millisecond),
		MaxMemoryBytes: int64(limits.MaxMemory), Settings: limits.Settings, SubmitBefore: y.submitBefore(),
		ReadOnly: y.t.current.ReadOnly,
	}
}

// follow waits for the first answer. An engine that takes its time is asked whether it has started, and then how far it is.
func (y *try) follow(ctx context.Context) attempt.Event {
	var w *watcher
	if y.state == attempt.Running {
		if w = y.watchProgress(); w.timer == nil && y.t.current.ReadOnly { // no bounds, but whether it is there at all
			lookUp := y.p.app.cfg.Attempts.LookUpTimeout
			w = y.watch(lookUp/2, lookUp)
		}
	} else {
		w = y.watch(y.p.app.cfg.Attempts.SeenAfter, mostUnseen)
	}
	defer w.stop()
	for {
		select {
		case a := <-y.running.answered:
			return y.answered(ctx, a)
		case <-w.due():
			w.ask(ctx)
		case s := <-w.answers:
			if e := y.progress(ctx, w, s); e != "" {
				return e
			}
		case <-y.t.cancelled:
			return attempt.CancelWished
		case <-y.late.C:
			return attempt.DeadlinePassed
		case <-ctx.Done():
			return attempt.Abandoned
		}
	}
}

// mostUnseen is the longest between two questions whether a submission has started.
const mostUnseen = 5 * time.Second

// answered takes the engine's first answer, or its refusal.
func (y *try) answered(ctx context.Context, a answer) attempt.Event {
	if a.err == nil {
		y.reach = failure.Answered
		y.times.first = a.at
		if y.state != attempt.Running { // it is there before it was seen at work: both are told, in order
			y.running.answered <- a
			return attempt.EngineStarted
		}
		y.p.app.hooks.at(ctx, StepSubmitted, y.id)
		y.running.answered <- a // for deliver
		return attempt.ResultBegan
	}
	return y.failed(a.err)
}

// failed classifies an engine's error and says what it means for the attempt.
func (y *try) failed(err error) attempt.Event {
	if errors.Is(err, engine.ErrGuardExpired) {
		y.p.app.metrics.guards.Inc()
		return attempt.GuardRanOut
	}
	f, reach := y.classify(err)
	if y.severed(f, reach) {
		f.Class = string(failure.SubmitUnknown)
	}
	y.failure, y.reach = &f, reach
	switch {
	case reach == failure.NotSent:
		return attempt.NotReached
	case f.Class == string(failure.SubmitUnknown):
		return attempt.ConnectionLost
	default:
		return attempt.EngineFailed
	}
}

// maxMessage bounds the engine's message in events: it may quote the whole statement.
const maxMessage = 4 << 10

func (y *try) classify(err error) (event.Failure, failure.Reach) {
	r := failure.Report{Engine: y.cluster.cfg.Kind, Message: err.Error(), Reach: failure.SentUnknown}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		r = failure.Report{Engine: e.Engine, Code: e.Code, Name: e.Name, Type: e.Type, Message: e.Error(), Reach: failure.Reach(e.Phase)}
	}
	if len(r.Message) > maxMessage {
		r.Message = r.Message[:maxMessage] + "…"
	}
	return failure.Classify(r), r.Reach
}

// stopEngine ends the query at the engine and waits, within a bound, until it is gone.
func (y *try) stopEngine(ctx context.Context) {
	// The bound outlives the partition: whoever stops a query wants it stopped.
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), y.p.app.cfg.Attempts.StopTimeout)
	defer cancel()
	if s := y.running; s != nil {
		s.letGo.Store(true) // what it still gives is not stored
		s.stop(errStopped)
		y.drain()
		select {
		case <-s.ended:
			return
		case <-bound.Done():
		}
		y.log.WarnContext(ctx, "the engine did not say that a stopped query is gone")
		return
	}
	if y.cluster == nil {
		return
	}
	for bound.Err() == nil {
		found, err := y.cluster.engine.Kill(bound, y.id)
		if err == nil && (found || !time.Now().Before(y.settled)) {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-bound.Done():
		}
	}
	y.log.WarnContext(ctx, "a query of an earlier owner could not be stopped")
}

// letGo leaves the attempt to its next owner. Nobody but this connection can have the result of a read, so one that runs past the
// grace of a shutdown is stopped at the engine: the next owner finds nothing and runs it again, and no attempt is used up. A
// write goes on, and so does what another owner has taken already, which looks for itself. Their rows are read and dropped, so
// that they are not held up.
func (y *try) letGo(why error) {
	s := y.running
	if s == nil || s.letGo.Swap(true) {
		return
	}
	if errors.Is(why, errReleased) && y.t.current.ReadOnly {
		s.stop(why)
		bound := time.NewTimer(y.p.app.cfg.Attempts.StopTimeout)
		y.p.app.stopping.Go(func() {
			defer bound.Stop()
			select {
			case <-s.ended:
			case <-bound.C:
			}
		})
	}
	y.drain()
}

// drain reads what deliver has not begun to read.
func (y *try) drain() {
	s := y.running
	y.p.app.leftovers.Go(func() {
		select {
		case a := <-s.answered: // deliver takes it, or this does
			if a.rows == nil {
				return
			}
			for a.rows.Next() {
			}
			s.last = a.rows.Err()
			_ = a.rows.Close()
			close(s.ended)
		case <-s.ended:
		}
	})
}
