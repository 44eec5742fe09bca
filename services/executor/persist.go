package executor

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/pointsman/pointsman/pkg/telemetry"
)

// persist does something until it succeeds or the context ends: what has been decided must be written, however long the broker
// is away. The error is then the reason why the context ended.
func (a *App) persist(ctx context.Context, what string, f func(ctx context.Context) error) error {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		a.log.WarnContext(ctx, "something failed and is tried again", "what", what, telemetry.Err(err))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait.NextBackOff()):
		}
	}
}

// retryDelay is how long to wait before the nth retry on a target, n from 1.
func (c AttemptConfig) retryDelay(n int) time.Duration {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(c.BackoffFirst), backoff.WithMaxInterval(c.BackoffMax), backoff.WithMultiplier(2), backoff.WithMaxElapsedTime(0))
	d := wait.NextBackOff()
	for range n - 1 {
		d = wait.NextBackOff()
	}
	return d
}
