package lifecycle

import (
	"context"
	"errors"
	"fmt"
)

// App is a service. A struct that embeds *Group has all of it but Start.
type App interface {
	// Start sets the service going and returns; what runs on does so in the background.
	Start(ctx context.Context) error
	// Done is closed when the service has failed, Err says why.
	Done() <-chan struct{}
	Err() error
	// Stop ends it, also one that has never started or only half.
	Stop(ctx context.Context) error
}

// Run starts an app, waits until the context ends or the app fails, and stops it.
// A context that ends is the normal way out and no error. The stop has its own bounds and outlives the context.
func Run(ctx context.Context, app App) error {
	var failure error
	if err := app.Start(ctx); err != nil {
		failure = fmt.Errorf("starting: %w", err)
	} else {
		select {
		case <-ctx.Done():
		case <-app.Done():
		}
	}
	stopErr := app.Stop(context.WithoutCancel(ctx))
	if failure == nil {
		failure = app.Err()
	}
	return errors.Join(failure, stopErr)
}
