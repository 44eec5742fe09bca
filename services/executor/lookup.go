package executor

import (
	"context"
	"errors"
	"time"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// What a look-up found, as a metric label.
const (
	foundActive   = "active"
	foundNothing  = "nothing"
	foundEnded    = "ended"
	foundNoEngine = "unreachable"
)

// awaitGuard waits until a submission of the earlier owner would be seen at the engine.
func (y *try) awaitGuard(ctx context.Context) {
	if err := y.t.ledger.WaitGuard(ctx, y.t.ledger.Driver(y.id, y.t.id)); err != nil && ctx.Err() == nil {
		y.log.WarnContext(ctx, "waiting for the guard of an earlier owner", telemetry.Err(err))
	}
}

// lookUp asks the engine what became of the attempt. The result of a query that ClickHouse runs can't be had by anybody but the
// connection that submitted it, so a read that still runs is stopped and made again.
func (y *try) lookUp(ctx context.Context) attempt.Event {
	if y.running != nil { // our own connection broke: nothing more comes from it
		y.settled = y.settles(time.Now())
		y.letGo(nil)
		y.running = nil
	}
	if y.failure == nil {
		f := failure.Of(failure.SubmitUnknown, "the executor that ran it went away before its result was stored")
		y.failure = &f
	}
	write := !y.t.current.ReadOnly
	if y.cluster == nil {
		y.found(foundNoEngine)
		if write {
			return attempt.FoundGoneWrite
		}
		return attempt.FoundGoneRead
	}
	began := time.Now()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		if e := y.interrupted(ctx); e != "" {
			return e
		}
		asked, cancel := context.WithTimeout(ctx, y.p.app.cfg.Attempts.LookUpTimeout)
		run, err := y.cluster.engine.Find(asked, y.id)
		cancel()
		settling := time.Until(y.settled)
		switch {
		case err == nil && run.State == engine.RunUnknown && settling > 0:
			wait = min(wait, settling) // it may be on its way yet
		case err == nil:
			return y.foundRun(run, write)
		case !write && time.Since(began) > y.p.app.cfg.Attempts.patience(err):
			y.log.WarnContext(ctx, "the engine can't be asked for a read of unknown fate; it is taken for gone", telemetry.Err(err))
			y.found(foundNoEngine)
			f := failure.Of(failure.ClusterDown, err.Error())
			y.failure = &f
			return attempt.FoundGoneRead
		}
		if e := y.sleep(ctx, wait); e != "" {
			return e
		}
	}
}

// settles is when a submission of our own whose connection has broken is seen at the engine, if it ever is: it left before the
// connection broke, and within the guard of its claim.
func (y *try) settles(broke time.Time) time.Time {
	left := broke
	if bound := y.submitBefore(); bound.Before(left) {
		left = bound
	}
	return left.Add(y.p.app.cfg.Attempts.GuardSettle)
}

// refusedFor is how long an engine at whose address nobody listens is asked again: it is gone, and its queries with it.
const refusedFor = time.Second

// patience is how long an engine that does not answer is asked again for a read. One that is only slow gets all of it.
func (c AttemptConfig) patience(err error) time.Duration {
	if e, ok := errors.AsType[*engine.Error](err); ok && e.Phase == engine.NotSent {
		return min(refusedFor, c.LookUpTimeout)
	}
	return c.LookUpTimeout
}

func (y *try) found(what string) { y.p.app.metrics.takeovers.WithLabelValues(what).Inc() }

func (y *try) foundRun(run engine.Run, write bool) attempt.Event {
	if run.Elapsed > 0 && y.times.started.IsZero() {
		y.times.started = time.Now().Add(-run.Elapsed)
	}
	switch {
	case run.State == engine.RunActive && write:
		y.found(foundActive)
		return attempt.FoundRunningWrite
	case run.State == engine.RunActive:
		y.found(foundActive)
		return attempt.FoundRunningRead
	case run.State == engine.RunFinished && write:
		y.found(foundEnded)
		y.failure, y.engine = nil, run.Stats
		return attempt.FoundFinished
	case run.State == engine.RunFailed:
		y.found(foundEnded)
		f := failure.Of(failure.Internal, "the engine says that it failed, and no more")
		if run.Failure != nil {
			f, y.reach = y.classify(run.Failure)
		}
		y.failure = &f
		return attempt.FoundFailed
	case write:
		y.found(foundNothing)
		return attempt.FoundGoneWrite
	default:
		y.found(foundNothing)
		return attempt.FoundGoneRead
	}
}

// watchEngine follows a write of an earlier owner until the engine has nothing of it any more.
func (y *try) watchEngine(ctx context.Context) attempt.Event {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		if e := y.sleep(ctx, wait); e != "" {
			return e
		}
		asked, cancel := context.WithTimeout(ctx, y.p.app.cfg.Attempts.LookUpTimeout)
		run, err := y.cluster.engine.Find(asked, y.id)
		cancel()
		if err == nil && run.State != engine.RunActive {
			return y.foundRun(run, true)
		}
	}
}
