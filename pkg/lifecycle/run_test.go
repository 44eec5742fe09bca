package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/lifecycle"
)

type app struct {
	*lifecycle.Group
	startErr error
	stopped  *bool
}

func newApp() app {
	a := app{Group: lifecycle.NewGroup(lifecycle.Options{}), stopped: new(bool)}
	a.Close("base", func() error { *a.stopped = true; return nil })
	return a
}

func (a app) Start(context.Context) error { return a.startErr }

func TestRunEndsWithItsContext(t *testing.T) {
	a := newApp()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, lifecycle.Run(ctx, a))
	require.True(t, *a.stopped)
}

func TestRunStopsAnAppThatFailedToStart(t *testing.T) {
	a := newApp()
	a.startErr = errors.New("address in use")
	require.EqualError(t, lifecycle.Run(t.Context(), a), "starting: address in use")
	require.True(t, *a.stopped)
}

func TestRunReturnsTheFailureOfTheApp(t *testing.T) {
	a := newApp()
	a.Go(t.Context(), "executor", func(context.Context) error { return fmt.Errorf("partition 3: %w", lifecycle.ErrFenced) })
	err := lifecycle.Run(t.Context(), a)
	require.ErrorIs(t, err, lifecycle.ErrFenced)
	require.Equal(t, lifecycle.ExitFenced, lifecycle.ExitCode(err))
	require.True(t, *a.stopped)
}

func TestRunGivesStopALivingContext(t *testing.T) {
	a := newApp()
	var atStop error
	a.OnStop("flush", func(ctx context.Context) error { atStop = ctx.Err(); return nil })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, lifecycle.Run(ctx, a))
	require.NoError(t, atStop)
}

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{fmt.Errorf("a: %w", &lifecycle.UsageError{Err: errors.New("x")}), 2},
		{errors.Join(errors.New("x"), fmt.Errorf("a: %w", lifecycle.ErrFenced)), 3},
	} {
		require.Equal(t, c.want, lifecycle.ExitCode(c.err), "%v", c.err)
	}
}
