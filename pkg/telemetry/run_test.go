package telemetry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// app is one that is told when it was started and stopped.
type app struct {
	started func()
	stopped bool
}

func (a *app) Start(context.Context) error { a.started(); return nil }
func (a *app) Done() <-chan struct{}       { return nil }
func (a *app) Err() error                  { return nil }
func (a *app) Stop(context.Context) error  { a.stopped = true; return nil }

func TestRunIsAServiceFromItsBeginningToItsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := &app{started: cancel}
	var tel *telemetry.Telemetry
	require.NoError(t, telemetry.Run(ctx, telemetry.Default(""), "router", func(own *telemetry.Telemetry) (lifecycle.App, error) {
		tel = own
		return a, nil
	}))
	require.NotNil(t, tel.Log)
	require.True(t, a.stopped)

	broken := errors.New("no such topic")
	err := telemetry.Run(t.Context(), telemetry.Default(""), "router", func(*telemetry.Telemetry) (lifecycle.App, error) { return nil, broken })
	require.ErrorIs(t, err, broken)
}
