package telemetry

import (
	"context"
	"errors"

	"github.com/pointsman/pointsman/pkg/lifecycle"
)

// Run is a whole service in a process of its own: its telemetry, the app that build makes with it, and the app's life until ctx ends
// or it fails.
func Run(ctx context.Context, cfg Config, service string, build func(*Telemetry) (lifecycle.App, error)) error {
	tel, err := New(ctx, cfg, Options{Service: service})
	if err != nil {
		return err
	}
	app, err := build(tel)
	if err == nil {
		err = lifecycle.Run(ctx, app)
	}
	return errors.Join(err, tel.Stop(context.WithoutCancel(ctx)))
}
