package lifecycle

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// SignalError is the cause of a context that a signal has ended.
type SignalError struct{ Signal os.Signal }

// Error names the signal.
func (e *SignalError) Error() string { return fmt.Sprintf("signal: %s", e.Signal) }

// SignalContext returns a context that the first SIGINT, SIGTERM or SIGHUP ends, with a *SignalError as its cause: a terminal that
// is closed must not leave behind what a stop clears away. SIGHUP stays ignored where it is, as under nohup.
// A second one ends the process at once with code 128 plus the signal's number, for when the stop hangs.
// The returned function gives the signals back to their default, and must be called.
func SignalContext(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	quit := make(chan struct{})
	var gone sync.WaitGroup
	gone.Go(func() {
		select {
		case s := <-signals:
			cancel(&SignalError{s})
		case <-quit:
			return
		}
		select {
		case s := <-signals:
			os.Exit(hardExitCode(s)) //nolint:forbidigo // the second signal is for when main does not get there
		case <-quit:
		}
	})
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(quit)
		gone.Wait()
		cancel(nil)
	})
}

func hardExitCode(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return ExitRuntime
}
