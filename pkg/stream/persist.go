package stream

import (
	"context"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Persist does something until it succeeds or the context ends: what has been taken on must be done, however long the broker is away,
// and a process that ends because one broker does helps nobody. what names it in the log. The error is the reason why the context ended.
func Persist(ctx context.Context, log *slog.Logger, what string, f func(ctx context.Context) error) error {
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
		log.WarnContext(ctx, "something failed and is tried again", "what", what, "error", err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait.NextBackOff()):
		}
	}
}
