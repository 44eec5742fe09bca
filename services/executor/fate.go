package executor

import (
	"context"
	"errors"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
)

// fate is what the engine says of a write that was stopped before its answer came. "" was not asked, or nothing was sent.
type fate string

const (
	fateDone    fate = "done"    // it was over before it could be stopped
	fateStopped fate = "stopped" // the engine says that it stopped it
	fateUnknown fate = "unknown" // the engine can't be asked, still runs it, or has nothing of it and has not said why
)

// askFate finds out what became of a write that was stopped: a cancel and a deadline end the Task, and whoever asked for the write has
// to know whether it may be run again. Its own answer says it; if that was lost, the engine is asked.
func (y *try) askFate(ctx context.Context) {
	if y.t.current.ReadOnly {
		return
	}
	if s := y.running; s != nil && s.done() {
		said, _ := errors.AsType[*engine.Error](s.last)
		switch {
		case s.last == nil, errors.Is(s.last, engine.ErrDone):
			y.fate = fateDone
			return
		case said != nil && said.Phase == engine.NotSent:
			return
		case said != nil && said.Phase == engine.Answered && said.Code != "":
			y.fate = fateStopped
			return
		}
	}
	y.fate = fateUnknown
	if y.cluster == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), y.p.app.cfg.Attempts.StopTimeout)
	defer cancel()
	run, err := y.cluster.engine.Find(ctx, y.id)
	switch {
	case err != nil:
	case run.State == engine.RunFinished:
		y.fate = fateDone
	case run.State == engine.RunFailed, run.State == engine.RunCancelled:
		y.fate = fateStopped
	}
}

// severed says that an engine has told of a write, which it had, nothing but that something is gone: itself before it was started anew,
// its memory of the query, or a server behind it. What became of the write is looked up.
func (y *try) severed(f event.Failure, reach failure.Reach) bool {
	return !y.t.current.ReadOnly && reach == failure.Answered && f.Class == string(failure.ClusterDown) && failure.Partial(y.cluster.cfg.Kind, failure.ClusterDown)
}

const notKnown = "Whether the write was done is not known, so it was not run again. "

// settle says in the Outcome of a write that was stopped what became of it, as far as that is known. One of unknown fate is no
// cancel and no expiry, which somebody might answer by running it again.
func (y *try) settle(o event.Outcome) *event.Outcome {
	f := *o.Failure
	switch y.fate {
	case "":
		return &o
	case fateDone:
		f.Hint = "The statement was done before it could be stopped. Do not run it again."
	case fateStopped:
		f.Hint = "It writes, and it was stopped at the engine: all of it, a part or nothing may have been done. " + y.lookFor()
	case fateUnknown:
		o.Status, f.Class = event.Failed, string(failure.SubmitUnknown)
		f.Message += ", and whether its write was done is not known"
		f.Hint = notKnown + y.lookFor()
	}
	o.Failure = &f
	return &o
}

// unsettled adds to the hint of a write that failed what is left to check before anybody runs it again.
func (y *try) unsettled(f *event.Failure) *event.Failure {
	told, class := *f, failure.Class(f.Class)
	switch {
	case y.t.current.ReadOnly, y.reach == failure.NotSent:
		return f
	case class == failure.SubmitUnknown:
		told.Hint = notKnown + y.lookFor()
	case y.fate != "": // its rows could not be stored
		told.Hint += " The statement also writes, and that may have been done. " + y.lookFor()
	case y.cluster != nil && failure.Partial(y.cluster.cfg.Kind, class):
		told.Hint += " It writes, and a part of that may have been done. " + y.lookFor()
	default:
		return f
	}
	return &told
}

func (y *try) lookFor() string {
	kind := ""
	if y.cluster != nil {
		kind = y.cluster.cfg.Kind
	}
	return failure.LookFor(kind, y.target.Cluster, y.id, engines.Name(kind, y.id))
}
