package spark

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/spark/connect"
)

const (
	// releaseWithin bounds how long a session that is done with is let go.
	releaseWithin = 3 * time.Second
	// tender is for how long an operation is not interrupted after its start, unless a stage of it is known to run: an interrupt
	// that meets the submission of a stage ends the operation, while the stage goes on with nobody to stop it (seen with 4.1.0).
	tender = 300 * time.Millisecond
)

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// settle says of an error what became of the operation. One that was stopped from here is stopped by now; of one whose connection
// stays broken, and of what runs when the client is closed, nothing is known.
func (r *rows) settle(err *engine.Error) *engine.Error {
	switch {
	case r.over.Load(), r.foreign, r.engine.life.Err() != nil:
	case r.run.Err() != nil:
		cause := context.Cause(r.run)
		unconfirmed := r.halt(cause) // waits for the one that is under way
		err = r.stopped(cause, unconfirmed)
	case !r.guard.WasSent():
		_ = r.halt(err)
	case err.Phase == engine.Answered: // what it sends can't be read
		if r.halt(err) != nil {
			err.Phase = engine.SentUnknown
		}
	}
	r.finish()
	return err
}

// stopped is the error of an operation that was stopped from here.
func (r *rows) stopped(cause, unconfirmed error) *engine.Error {
	switch {
	case !r.guard.WasSent():
		return &engine.Error{Engine: Kind, Phase: engine.NotSent, Err: cause}
	case unconfirmed != nil:
		return &engine.Error{
			Engine: Kind, Phase: engine.SentUnknown, Err: fmt.Errorf("%w; the server did not confirm that it stopped: %w", cause, unconfirmed),
		}
	}
	if own, ok := errors.AsType[*engine.Error](cause); ok {
		return own
	}
	return &engine.Error{Engine: Kind, Code: classCanceled, Name: stateCanceled, Type: stateCanceled[:2], Phase: engine.Answered, Err: cause}
}

// halt stops the operation at the server and waits until it is over there. It runs once; whoever comes later waits for it and gets
// the same answer: nil when the server has confirmed it.
func (r *rows) halt(cause error) error {
	r.halting.Do(func() {
		r.halted.Store(true)
		sent := r.guard.Bar() // from here on it does not leave any more
		r.drop(cause)
		if r.over.Load() || r.foreign {
			return
		}
		ctx, cancel := context.WithTimeout(r.engine.authorized(r.engine.life), stopWithin)
		defer cancel()
		if !sent {
			r.engine.abandon(ctx, r.names)
			return
		}
		last, young := r.known()
		_ = pause(ctx, young)
		r.unconfirmed = r.engine.stop(ctx, r.names, last, true)
	})
	return r.unconfirmed
}

// finish lets go of what the operation held, here and at the server.
func (r *rows) finish() {
	r.finished.Do(func() {
		r.unhook()
		if r.limit != nil {
			r.limit.Stop()
		}
		if r.attempt != "" {
			r.engine.mine.CompareAndDelete(r.attempt, r)
		}
		r.leave()
		r.drop(errReaderLeft)
		_ = r.conn.Close()
		if !r.over.Load() || r.foreign || r.halted.Load() || r.engine.life.Err() != nil {
			return
		}
		r.engine.group.Go(func() {
			ctx, cancel := context.WithTimeout(r.engine.authorized(context.Background()), releaseWithin)
			defer cancel()
			_ = r.engine.release(ctx, r.names.session, false) // the server does it by itself after an hour
		})
	})
}

// release ends a session. What was stopped runs no more; unless it may be made again, nothing is ever started in it.
func (e *Engine) release(ctx context.Context, session string, again bool) error {
	_, err := e.client().ReleaseSession(ctx, &connect.ReleaseSessionRequest{
		SessionId: session, UserContext: e.user(), ClientType: new(clientType), AllowReconnect: again,
	})
	return err
}

// abandon lets go of a session in which nothing was started, so that the attempt may be submitted again.
func (e *Engine) abandon(ctx context.Context, n names) {
	if exists, err := e.probe(ctx, n); err == nil && !exists { // else another run has this name
		_ = e.release(ctx, n.session, true)
	}
}

// stop interrupts an operation, waits until the server has ended it, and closes its session behind it. A stranger, who does not read
// it, gives its reader a moment to learn of it and let go.
func (e *Engine) stop(ctx context.Context, n names, last string, ours bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer, err := e.client().Interrupt(ctx, &connect.InterruptRequest{
		SessionId: n.session, UserContext: e.user(), ClientType: new(clientType),
		InterruptType: connect.InterruptRequest_INTERRUPT_TYPE_OPERATION_ID,
		Interrupt:     &connect.InterruptRequest_OperationId{OperationId: n.operation},
	})
	if f, told := faultOf(err); told && f.gone() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("interrupting the operation: %w", e.said(err))
	}
	if len(answer.GetInterruptedIds()) > 0 && (ours || !e.letGo(ctx, n)) {
		if err := e.follow(ctx, n, last); err != nil {
			return fmt.Errorf("waiting for the operation to end: %w", e.said(err))
		}
	}
	// One that was sent and has not come is refused from here on.
	if err := e.release(ctx, n.session, false); err != nil {
		return fmt.Errorf("closing the session: %w", e.said(err))
	}
	return nil
}

// letGo waits a moment for the reader of an interrupted operation to let it go.
func (e *Engine) letGo(ctx context.Context, n names) bool {
	for range 20 {
		exists, err := e.probe(ctx, n)
		if err == nil && !exists {
			return true
		}
		if pause(ctx, 25*time.Millisecond) != nil {
			return false
		}
	}
	return false
}

// follow reads an interrupted operation to its end: the server says that it is over once its jobs were cancelled.
func (e *Engine) follow(ctx context.Context, n names, last string) error {
	for {
		responses, err := e.client().Reattach(ctx, e.reattach(n, last))
		for err == nil {
			var m *connect.ExecutePlanResponse
			if m, err = responses.Recv(); err != nil {
				break
			}
			if m.GetResultComplete() != nil {
				return nil
			}
			last = m.GetResponseId()
		}
		if f, told := faultOf(err); told && !f.is(classDisconnected) {
			return nil // it has ended, or its end can't be had any more
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
