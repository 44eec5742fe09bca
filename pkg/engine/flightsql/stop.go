package flightsql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pointsman/pointsman/pkg/engine"
)

var (
	errLetGo         = errors.New("the result was let go")
	errTimeLimit     = errors.New("the time limit has passed")
	errUncancellable = errors.New("the server can't cancel it")
	errNotThere      = errors.New("the server has nothing of it, and may have done it before")
	errTicketLost    = errors.New("the connection broke before rows were asked for, and the server does not give them over another one")
)

// watch stops the run when its context ends, or its time limit passes.
func (r *rows) watch(ctx context.Context, limit time.Duration) {
	background := func(cause error) {
		r.engine.group.Add(1)
		defer r.engine.group.Done()
		r.halt(cause)
	}
	r.unhook = context.AfterFunc(ctx, func() { background(context.Cause(ctx)) })
	if limit > 0 {
		r.limit = time.AfterFunc(limit, func() { background(fmt.Errorf("%w (%s)", errTimeLimit, limit)) })
	}
}

// halt stops the run at the server, once, and then drops its streams. Whoever comes second waits for it.
func (r *rows) halt(cause error) {
	r.halting.Do(func() {
		if r.finished.Load() {
			return
		}
		sent := r.guard.Bar()
		r.mu.Lock()
		r.cause = cause
		info := r.info
		r.mu.Unlock()
		var err error
		switch {
		case !sent:
		case info == nil: // nothing yet by which the protocol could name it
			r.cancel(cause)
			err = r.engine.killed(r.attempt)
		default:
			err = r.engine.cancelled(info, r.attempt)
		}
		r.mu.Lock()
		r.unconfirmed = err
		r.mu.Unlock()
		r.cancel(cause)
	})
}

// cancelled tells the server to cancel a query until it says that it has. A server that can be asked by the attempt id is asked
// then, too: nothing of it may run any more.
func (e *Engine) cancelled(info *flight.FlightInfo, attempt string) error {
	ctx, cancel := context.WithTimeout(e.life, stopWithin)
	defer cancel()
	err := e.cancelFlight(ctx, info)
	known, _, killErr := e.kill(ctx, attempt)
	if known {
		return killErr
	}
	return err
}

func (e *Engine) cancelFlight(ctx context.Context, info *flight.FlightInfo) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		var result *flight.CancelFlightInfoResult
		err := e.do(ctx, func(ctx context.Context) error {
			var err error
			result, err = e.client.CancelFlightInfo(ctx, &flight.CancelFlightInfoRequest{Info: info})
			return err
		})
		switch {
		case err != nil:
			return err
		case result.GetStatus() == flight.CancelStatusCancelled:
			return nil
		case result.GetStatus() != flight.CancelStatusCancelling:
			return errUncancellable
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("the server is still cancelling it: %w", context.Cause(ctx))
		}
	}
}

// killed kills what may be on its way to the server, where that is possible.
func (e *Engine) killed(attempt string) error {
	ctx, cancel := context.WithTimeout(e.life, stopWithin)
	defer cancel()
	known, found, err := e.kill(ctx, attempt)
	switch {
	case !known:
		return errUncancellable
	case err == nil && !found:
		return errNotThere
	}
	return err
}

// unredeemed is the error of a ticket that was refused over another connection than the server had given it on. A server that was
// started anew meanwhile does not know it any more, and its words for that are those for a table that is not there.
func (r *rows) unredeemed(err *engine.Error) *engine.Error {
	if !r.redeems || err.Phase != engine.Answered || r.dialled.Load() == r.asked {
		return err
	}
	return &engine.Error{Engine: Kind, Phase: engine.SentUnknown, Err: fmt.Errorf("%w: %w", errTicketLost, err.Err)}
}

// settle makes an error of a run the one that its caller sees.
func (r *rows) settle(err error) *engine.Error {
	r.mu.Lock()
	stopped := r.cause != nil
	r.mu.Unlock()
	if !stopped {
		return r.unredeemed(r.engine.wrap(err, r.call, r.guard))
	}
	r.halt(nil) // it goes on in the background: wait for it
	r.mu.Lock()
	cause, unconfirmed := r.cause, r.unconfirmed
	r.mu.Unlock()
	out := &engine.Error{Engine: Kind, Err: cause}
	switch {
	case !r.guard.WasSent():
		out.Phase = engine.NotSent
		return out
	case unconfirmed != nil:
		out.Phase = engine.SentUnknown
		out.Err = fmt.Errorf("%w; the server did not confirm that it stopped: %w", cause, unconfirmed)
	default:
		out.Phase = engine.Answered
		out.Code, out.Name = codeOf(codes.Canceled)
	}
	if errors.Is(cause, errTimeLimit) {
		out.Code, out.Name = codeOf(codes.DeadlineExceeded)
	}
	return out
}

func unimplemented(err error) bool {
	if wrapped, ok := errors.AsType[*engine.Error](err); ok {
		code, _ := codeOf(codes.Unimplemented)
		return wrapped.Code == code
	}
	return status.Code(err) == codes.Unimplemented
}
