package lifecycle_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/lifecycle"
)

func TestStopIsLastInFirstOut(t *testing.T) {
	g := lifecycle.NewGroup(lifecycle.Options{})
	var order []string
	for _, name := range []string{"registry", "client", "consumer"} {
		g.Close(name, func() error { order = append(order, name); return nil })
	}
	require.NoError(t, g.Stop(t.Context()))
	require.Equal(t, []string{"consumer", "client", "registry"}, order)
}

func TestStopJoinsErrorsAndGoesOn(t *testing.T) {
	g := lifecycle.NewGroup(lifecycle.Options{})
	first, second := errors.New("disk full"), errors.New("broken pipe")
	closed := false
	g.Close("base", func() error { closed = true; return nil })
	g.Close("files", func() error { return first })
	g.Close("socket", func() error { return second })
	err := g.Stop(t.Context())
	require.ErrorIs(t, err, first)
	require.ErrorIs(t, err, second)
	require.EqualError(t, err, "stopping socket: broken pipe\nstopping files: disk full")
	require.True(t, closed)
}

func TestStopIsIdempotentAndConcurrentCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := lifecycle.NewGroup(lifecycle.Options{})
		calls := 0
		g.Close("slow", func() error { calls++; time.Sleep(3 * time.Second); return errors.New("late") })
		began := time.Now()
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				require.EqualError(t, g.Stop(t.Context()), "stopping slow: late")
				require.Equal(t, 3*time.Second, time.Since(began))
			})
		}
		wait.Wait()
		require.Equal(t, 1, calls)
	})
}

func TestStopBoundsOneStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := lifecycle.NewGroup(lifecycle.Options{StopTimeout: 2 * time.Second, TotalTimeout: 10 * time.Second})
		release := make(chan struct{})
		closed := false
		g.Close("base", func() error { closed = true; return nil })
		g.Close("stuck", func() error { <-release; return nil })
		began := time.Now()
		err := g.Stop(context.Background())
		require.ErrorIs(t, err, lifecycle.ErrStopTimeout)
		require.ErrorContains(t, err, "stopping stuck")
		require.True(t, closed, "the stops before a stuck one still get their turn")
		require.Less(t, time.Since(began), 3*time.Second)
		close(release)
	})
}

func TestStopBoundsAllStopsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := lifecycle.NewGroup(lifecycle.Options{StopTimeout: 2 * time.Second, TotalTimeout: 3 * time.Second})
		quick := false
		g.Close("quick", func() error { quick = true; return nil })
		for range 5 {
			g.OnStop("obedient", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		}
		began := time.Now()
		err := g.Stop(context.Background())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, quick, "what closes at once is closed even when time is up")
		require.LessOrEqual(t, time.Since(began), 4*time.Second)
	})
}

func TestStopEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := lifecycle.NewGroup(lifecycle.Options{})
		g.OnStop("obedient", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, g.Stop(ctx), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestRegisteringAfterStopClosesAtOnce(t *testing.T) {
	g := lifecycle.NewGroup(lifecycle.Options{})
	require.NoError(t, g.Stop(t.Context()))
	closed := false
	g.Close("late", func() error { closed = true; return errors.New("was open") })
	require.True(t, closed)
	require.EqualError(t, g.Stop(t.Context()), "stopping late: was open")

	started := false
	g.Go(t.Context(), "worker", func(context.Context) error { started = true; return nil })
	require.NoError(t, g.Err())
	require.False(t, started)
}

func TestGoRunsUntilItsPlaceInTheOrder(t *testing.T) {
	g := lifecycle.NewGroup(lifecycle.Options{})
	var order []string
	g.Close("client", func() error { order = append(order, "client closed"); return nil })
	g.Go(t.Context(), "consumer", func(ctx context.Context) error {
		<-ctx.Done()
		order = append(order, "consumer ended")
		return ctx.Err()
	})
	require.NoError(t, g.Stop(t.Context()))
	require.Equal(t, []string{"consumer ended", "client closed"}, order)
	require.NoError(t, g.Err())
}

func TestGoSurvivesTheEndOfTheStartContext(t *testing.T) {
	type key struct{}
	g := lifecycle.NewGroup(lifecycle.Options{})
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "trace"))
	got := make(chan any, 1)
	g.Go(ctx, "worker", func(ctx context.Context) error {
		<-ctx.Done()
		got <- ctx.Value(key{})
		return nil
	})
	cancel()
	select {
	case <-got:
		t.Fatal("a signal must not cut off background work before its stop")
	case <-time.After(20 * time.Millisecond):
	}
	require.NoError(t, g.Stop(t.Context()))
	require.Equal(t, "trace", <-got)
}

func TestGoErrorFailsTheGroup(t *testing.T) {
	g := lifecycle.NewGroup(lifecycle.Options{})
	cause := errors.New("offset out of range")
	g.Go(t.Context(), "consumer", func(context.Context) error { return cause })
	<-g.Done()
	require.EqualError(t, g.Err(), "running consumer: offset out of range")
	g.Fail(errors.New("second"))
	require.ErrorIs(t, g.Err(), cause, "the first failure is the cause, later ones are its effects")
	require.NoError(t, g.Stop(t.Context()), "a failure is told once")
}

func TestGoErrorWhileStoppingBelongsToStop(t *testing.T) {
	g := lifecycle.NewGroup(lifecycle.Options{})
	cause := errors.New("last commit failed")
	g.Go(t.Context(), "consumer", func(ctx context.Context) error { <-ctx.Done(); return cause })
	require.ErrorIs(t, g.Stop(t.Context()), cause)
	require.NoError(t, g.Err())
}

func TestGoThatIgnoresItsContextIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := lifecycle.NewGroup(lifecycle.Options{StopTimeout: time.Second})
		release := make(chan struct{})
		g.Go(t.Context(), "deaf", func(context.Context) error { <-release; return nil })
		require.ErrorIs(t, g.Stop(t.Context()), lifecycle.ErrStopTimeout)
		close(release)
	})
}
