package spark

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/spark/connect"
)

const (
	// A run of another client is attached to after it was asked for during a while, and then at most once in a while: its reader, if
	// it still has one, has to attach again behind us.
	lookAfter = 500 * time.Millisecond
	lookEvery = time.Second
	// lookFor is how long such a look waits for the end of the run.
	lookFor = 250 * time.Millisecond
	// watchedRuns is how many runs of others are kept in mind.
	watchedRuns = 1024
)

// watch is a run of another client that was asked for here.
type watch struct {
	since, looked time.Time
	end           *engine.Run
}

// watches keeps the newest ones.
type watches struct {
	mu   sync.Mutex
	runs *lru.Cache[string, *watch]
}

// of gives what is kept of a run. due says that it may be looked at now, which counts as a look.
func (w *watches) of(id string, now time.Time) (end *engine.Run, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		w.runs, _ = lru.New[string, *watch](watchedRuns) // a size above zero is no error
	}
	one, ok := w.runs.Get(id)
	if !ok {
		w.runs.Add(id, &watch{since: now})
		return nil, false
	}
	if one.end == nil && now.Sub(one.since) >= lookAfter && now.Sub(one.looked) >= lookEvery {
		one.looked = now
		return nil, true
	}
	return one.end, false
}

func (w *watches) ended(id string, run engine.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one, ok := w.runs.Get(id); ok {
		one.end = &run
	}
}

// unseen is for how much longer a run must be known here until it is sure to be out of its first moments.
func (w *watches) unseen(id string, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs != nil {
		if one, ok := w.runs.Peek(id); ok {
			return tender - now.Sub(one.since)
		}
	}
	return tender
}

func (w *watches) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs != nil {
		w.runs.Remove(id)
	}
}

// Find looks an attempt id up. The server says at once whether it has the operation, and not whether that still runs: this shows only
// in its responses, which have one reader at a time. So a run that another client may be reading counts as active at first, and is
// attached to when it is asked for again later. That also keeps the server from giving up a run that nobody reads.
func (e *Engine) Find(ctx context.Context, id string) (engine.Run, error) {
	if held, ours := e.mine.Load(id); ours {
		return engine.Run{State: engine.RunActive, Stats: held.(*rows).seen()}, nil
	}
	ctx, cancel := e.asked(ctx, answerWithin)
	defer cancel()
	n := namesOf(id)
	exists, err := e.probe(ctx, n)
	if err != nil {
		return engine.Run{}, fmt.Errorf("looking up a query: %w", e.wrap(err))
	}
	if !exists {
		e.watched.forget(id)
		return engine.Run{State: engine.RunUnknown}, nil
	}
	end, due := e.watched.of(id, time.Now())
	switch {
	case end != nil:
		return *end, nil
	case !due:
		return engine.Run{State: engine.RunActive}, nil
	}
	run, over := e.look(ctx, n)
	if over {
		e.watched.ended(id, run)
	}
	return run, nil
}

// probe asks whether the server has an operation, without attaching to it: it is asked to let go of the responses up to one that never
// was. Attaching in the moment in which the server is about to start an operation would end that: it is taken for one without a thread.
func (e *Engine) probe(ctx context.Context, n names) (bool, error) {
	answer, err := e.client().ReleaseExecute(ctx, &connect.ReleaseExecuteRequest{
		SessionId: n.session, UserContext: e.user(), OperationId: n.operation, ClientType: new(clientType),
		Release: &connect.ReleaseExecuteRequest_ReleaseUntil_{ReleaseUntil: &connect.ReleaseExecuteRequest_ReleaseUntil{ResponseId: uuid.Nil.String()}},
	})
	if err == nil {
		return answer.GetOperationId() != "", nil
	}
	f, told := faultOf(err)
	switch {
	case told && (f.is(classNotThere) || f.is(classNoReattach)):
		return true, nil
	case told && f.gone():
		return false, nil
	default:
		return false, err
	}
}

// look attaches to an operation for a moment and sees whether it has ended.
func (e *Engine) look(ctx context.Context, n names) (run engine.Run, over bool) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	run.State = engine.RunActive
	seen := rows{}
	responses, err := e.client().Reattach(ctx, e.reattach(n, ""))
	var count int64
	for err == nil {
		m, failed := responses.Recv()
		if err = failed; err != nil {
			break
		}
		count += m.GetArrowBatch().GetRowCount()
		if p := m.GetExecutionProgress(); p != nil {
			seen.progress = p
		}
		run.Stats = seen.seen()
		if m.GetResultComplete() != nil {
			run.State, run.Stats.ResultRows = engine.RunFinished, &count
			return run, true
		}
	}
	f, told := faultOf(err)
	switch {
	case !told, f.is(classDisconnected), f.is(classNoMore), f.gone():
		return run, false
	case f.is(classCanceled):
		run.State = engine.RunCancelled
	default:
		run.State, run.Failure = engine.RunFailed, e.detailed(context.WithoutCancel(ctx), n.session, f).error(engine.Answered)
	}
	return run, true
}

// Kill stops an attempt and waits until the server has ended it.
func (e *Engine) Kill(ctx context.Context, id string) (bool, error) {
	ctx, cancel := e.asked(ctx, answerWithin)
	defer cancel()
	n := namesOf(id)
	exists, err := e.probe(ctx, n)
	if err != nil {
		return false, fmt.Errorf("killing a query: %w", e.wrap(err))
	}
	if !exists {
		return false, nil
	}
	// How old it is can't be seen from here.
	if err := pause(ctx, e.watched.unseen(id, time.Now())); err != nil {
		return false, fmt.Errorf("killing a query: %w", e.wrap(err))
	}
	if err := e.stop(ctx, n, "", false); err != nil {
		return true, fmt.Errorf("killing a query: %w", e.unstopped(err))
	}
	return true, nil
}

func (e *Engine) unstopped(err error) *engine.Error {
	if own, ok := errors.AsType[*engine.Error](err); ok {
		return own
	}
	return &engine.Error{Engine: Kind, Phase: engine.SentUnknown, Err: err}
}
