package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Supervisor keeps a process alive.
type Supervisor struct {
	cfg    Config
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}

	mu       sync.Mutex
	current  *child
	state    State
	restarts int
	first    chan error // takes the outcome of the first start
}

// Start starts the process and returns when it is ready. A process that does not get ready the
// first time is not tried again: its error is returned. The context bounds the start only.
func Start(ctx context.Context, cfg Config) (*Supervisor, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	s := &Supervisor{cfg: cfg, done: make(chan struct{}), first: make(chan error, 1)}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	go s.loop()
	select {
	case err := <-s.first:
		if err != nil {
			s.cancel(ErrStopped)
			<-s.done
			return nil, err
		}
		return s, nil
	case <-ctx.Done():
		s.cancel(ctx.Err())
		<-s.done
		return nil, fmt.Errorf("starting %s: %w", cfg.Name, context.Cause(ctx))
	}
}

// loop runs one process after another until the supervisor is stopped.
func (s *Supervisor) loop() {
	defer close(s.done)
	pause := s.newBackoff()
	for attempt := 0; ; attempt++ {
		readyFor, err := s.runOnce(attempt)
		if s.ctx.Err() != nil {
			s.change(Stopped, 0, nil)
			return
		}
		if attempt == 0 && readyFor == 0 {
			s.first <- err
			<-s.ctx.Done()
			s.change(Stopped, 0, err)
			return
		}
		if readyFor >= s.cfg.Stable {
			pause.Reset()
		}
		wait := pause.NextBackOff()
		s.cfg.Logger.Warn("the process ended, starting it again", slog.Any("error", err), slog.Duration("pause", wait))
		s.change(Waiting, 0, err)
		select {
		case <-time.After(wait):
		case <-s.ctx.Done():
		}
	}
}

func (s *Supervisor) newBackoff() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.MaxElapsedTime = s.cfg.MinBackoff, s.cfg.MaxBackoff, 0
	b.Reset()
	return b
}

// runOnce runs one process to its end and says for how long it was ready.
func (s *Supervisor) runOnce(attempt int) (readyFor time.Duration, err error) {
	if s.ctx.Err() != nil {
		return 0, nil
	}
	c, err := launch(&s.cfg)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	s.current, s.restarts = c, attempt
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.current = nil
		s.mu.Unlock()
	}()
	s.change(Starting, c.pid, nil)
	if err := s.awaitReady(c); err != nil {
		c.signal(syscall.SIGKILL)
		<-c.ended
		if refused := (*refusedError)(nil); errors.As(err, &refused) {
			return 0, refused.reason // how it ended adds nothing: it was refused for what it said, and killed for it
		}
		return 0, errors.Join(err, c.err)
	}
	since := time.Now()
	s.change(Ready, c.pid, nil)
	if attempt == 0 {
		s.first <- nil
	}
	select {
	case <-c.ended:
	case <-s.ctx.Done():
		c.stop(context.Background(), s.cfg.StopTimeout)
	}
	return max(time.Since(since), 1), c.err
}

// refusedError carries what OnReady thinks of the line.
type refusedError struct{ reason error }

func (e *refusedError) Error() string { return e.reason.Error() }

func (s *Supervisor) awaitReady(c *child) error {
	timer := time.NewTimer(s.cfg.ReadyTimeout)
	defer timer.Stop()
	select {
	case line, ok := <-c.ready:
		if !ok {
			return fmt.Errorf("%s ended before it was ready", s.cfg.Name)
		}
		if err := s.cfg.OnReady(line); err != nil {
			return &refusedError{err}
		}
		return nil
	case <-timer.C:
		return fmt.Errorf("%s was not ready after %s", s.cfg.Name, s.cfg.ReadyTimeout)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

func (s *Supervisor) change(state State, pid int, err error) {
	s.mu.Lock()
	s.state = state
	restarts := s.restarts
	s.mu.Unlock()
	s.cfg.OnChange(Change{State: state, Pid: pid, Restarts: restarts, Err: err})
}

// Pid is the process that runs now, 0 when none does.
func (s *Supervisor) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return 0
	}
	return s.current.pid
}

// State is what the process is doing.
func (s *Supervisor) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Restarts counts the processes started after the first.
func (s *Supervisor) Restarts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restarts
}

// Kill sends SIGKILL to the process that runs now, which is then started again: a crash on demand.
func (s *Supervisor) Kill() {
	s.mu.Lock()
	c := s.current
	s.mu.Unlock()
	if c != nil {
		c.signal(syscall.SIGKILL)
	}
}

// Stop ends the process and its supervision. When the context ends before the process has, it is
// killed. Stopping twice does no harm.
func (s *Supervisor) Stop(ctx context.Context) error {
	s.cancel(ErrStopped)
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		s.Kill()
		<-s.done
		return fmt.Errorf("stopping %s: killed, it did not end in time: %w", s.cfg.Name, ctx.Err())
	}
}
