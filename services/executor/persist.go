package executor

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/pointsman/pointsman/pkg/stream"
)

// persist does something until it succeeds or the context ends: what has been decided must be written.
func (a *App) persist(ctx context.Context, what string, f func(ctx context.Context) error) error {
	return stream.Persist(ctx, a.log, what, f)
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
