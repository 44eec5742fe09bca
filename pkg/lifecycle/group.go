package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Bounds of Stop where the options don't say otherwise. The total is below the 30 s that Kubernetes and docker leave
// between SIGTERM and SIGKILL.
const (
	DefaultStopTimeout  = 10 * time.Second
	DefaultTotalTimeout = 25 * time.Second
)

// ErrStopTimeout is what a stop that did not return in time is reported as. Its work is left behind, not waited for.
var ErrStopTimeout = errors.New("did not stop in time")

// Options bound how long Stop may take. A zero field means its default.
type Options struct {
	StopTimeout  time.Duration // one stop
	TotalTimeout time.Duration // all stops together
}

type namedStop struct {
	name string
	stop func(context.Context) error
}

// Group holds what a service has to stop, and the first failure of what runs in the background.
// Its methods may be called from any goroutine.
type Group struct {
	opts Options

	mu       sync.Mutex
	stops    []namedStop
	stopping bool
	failure  error
	late     []error // of stops that were registered after Stop had begun

	failed  chan struct{} // closed by the first Fail
	stopped chan struct{} // closed when Stop is through
	stopErr error         // valid once stopped is closed
}

// NewGroup returns an empty group.
func NewGroup(opts Options) *Group {
	if opts.StopTimeout <= 0 {
		opts.StopTimeout = DefaultStopTimeout
	}
	if opts.TotalTimeout <= 0 {
		opts.TotalTimeout = DefaultTotalTimeout
	}
	return &Group{opts: opts, failed: make(chan struct{}), stopped: make(chan struct{})}
}

// OnStop registers a stop. Stop calls them in the reverse order of registration.
// A stop registered after Stop has begun is called at once, so that nothing opened late stays open.
func (g *Group) OnStop(name string, stop func(context.Context) error) {
	g.mu.Lock()
	if !g.stopping {
		g.stops = append(g.stops, namedStop{name, stop})
		g.mu.Unlock()
		return
	}
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), g.opts.StopTimeout)
	defer cancel()
	if err := callStop(ctx, namedStop{name, stop}); err != nil {
		g.mu.Lock()
		g.late = append(g.late, err)
		g.mu.Unlock()
	}
}

// Close is OnStop for an io.Closer's method.
func (g *Group) Close(name string, closeFunc func() error) {
	g.OnStop(name, func(context.Context) error { return closeFunc() })
}

// Go runs a function in the background until Stop reaches its place in the order: then its context ends and Stop
// waits for it. The context carries the values of ctx but not its end, so that a signal does not cut off work that
// a later stop still needs. An error that comes before that is a failure of the whole group (see Fail); one that
// comes after it is joined into Stop's, unless it is only the context's end.
// A function that returns nil early has done its job.
func (g *Group) Go(ctx context.Context, name string, run func(context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	g.stops = append(g.stops, namedStop{name, func(stopCtx context.Context) error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-stopCtx.Done():
			return ErrStopTimeout
		}
	}})
	go func() {
		err := run(ctx)
		asked := ctx.Err() != nil
		cancel()
		switch {
		case err == nil, asked && errors.Is(err, context.Canceled):
			ended <- nil
		case asked:
			ended <- err
		default:
			g.Fail(fmt.Errorf("running %s: %w", name, err))
			ended <- nil // it is told once, by Err
		}
	}()
}

// Fail says that the service cannot go on. The first error is kept; Done is closed.
func (g *Group) Fail(err error) {
	if err == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failure == nil {
		g.failure = err
		close(g.failed)
	}
}

// Done is closed once the group has failed.
func (g *Group) Done() <-chan struct{} { return g.failed }

// Err is the failure, nil while there is none.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failure
}

// Stop calls the stops, last registered first, each within its bound and all within theirs, and joins their errors.
// One that does not return in time is reported and left behind, so that the ones before it still get their turn.
// The second and later calls wait for the first and return the same error.
func (g *Group) Stop(ctx context.Context) error {
	g.mu.Lock()
	if g.stopping {
		g.mu.Unlock()
		<-g.stopped
		return g.result()
	}
	g.stopping = true
	stops := g.stops
	g.stops = nil
	g.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, g.opts.TotalTimeout)
	defer cancel()
	var errs []error
	for _, stop := range slices.Backward(stops) {
		stopCtx, cancelStop := context.WithTimeout(ctx, g.opts.StopTimeout)
		if err := callStop(stopCtx, stop); err != nil {
			errs = append(errs, err)
		}
		cancelStop()
	}
	g.stopErr = errors.Join(errs...)
	close(g.stopped)
	return g.result()
}

func (g *Group) result() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(append([]error{g.stopErr}, g.late...)...)
}

// callStop runs one stop in a goroutine of its own, because a stop may ignore its context. A context that has ended
// already still gets the stop called: closing is often instant, and must happen even when time is up.
func callStop(ctx context.Context, s namedStop) error {
	done := make(chan error, 1)
	go func() { done <- s.stop(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(grace):
			err = ErrStopTimeout
		}
	}
	if err != nil {
		return fmt.Errorf("stopping %s: %w", s.name, err)
	}
	return nil
}

// grace is what a stop gets after its context has ended to return by itself, with an error that says more than ours.
const grace = 100 * time.Millisecond
