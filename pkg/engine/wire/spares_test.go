package wire_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/engine/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard counts what was dialled and closed.
type yard struct {
	mu     sync.Mutex
	dialed int
	closed []int
	err    error
	takes  time.Duration
}

func (y *yard) spares(keep int) *wire.Spares[int] {
	return wire.NewSpares(wire.SparesConfig[int]{
		Dial: func(ctx context.Context) (int, error) {
			select {
			case <-time.After(y.takes):
			case <-ctx.Done():
				return 0, ctx.Err()
			}
			y.mu.Lock()
			defer y.mu.Unlock()
			if y.err != nil {
				return 0, y.err
			}
			y.dialed++
			return y.dialed, nil
		},
		Close: func(n int) {
			y.mu.Lock()
			defer y.mu.Unlock()
			y.closed = append(y.closed, n)
		},
		Keep: keep, MaxAge: time.Minute,
	})
}

func (y *yard) counts() (dialed int, closed []int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.dialed, y.closed
}

func TestSparesAreReadyAndUsedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := &yard{takes: time.Second}
		s := y.spares(2)
		defer s.Close()
		synctest.Wait()
		dialed, _ := y.counts()
		require.Zero(t, dialed, "an engine that is never used is never dialled")

		conn, ready, err := s.Take(t.Context())
		require.NoError(t, err)
		require.False(t, ready)
		require.Equal(t, 1, conn)
		time.Sleep(2 * time.Second)
		dialed, _ = y.counts()
		require.Equal(t, 3, dialed, "two more are kept ready")
		seen := map[int]bool{conn: true}
		for range 2 {
			began := time.Now()
			conn, ready, err = s.Take(t.Context())
			require.NoError(t, err)
			require.True(t, ready)
			require.Zero(t, time.Since(began))
			require.False(t, seen[conn], "each is taken once")
			seen[conn] = true
		}
	})
}

func TestSparesGrowOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := &yard{}
		s := y.spares(1)
		defer s.Close()
		_, _, err := s.Take(t.Context())
		require.NoError(t, err)
		time.Sleep(61 * time.Second)
		dialed, closed := y.counts()
		require.Equal(t, 2, dialed, "and none is made again before somebody wants one")
		require.Equal(t, []int{2}, closed)
		_, ready, err := s.Take(t.Context())
		require.NoError(t, err)
		require.False(t, ready)
	})
}

func TestSparesThatCanNotBeHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := &yard{}
		s := y.spares(2)
		_, _, err := s.Take(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		y.mu.Lock()
		y.err = errors.New("the server is down")
		y.mu.Unlock()
		for range 2 {
			_, ready, err := s.Take(t.Context())
			require.NoError(t, err, "what was made before is given")
			require.True(t, ready)
		}
		_, _, err = s.Take(t.Context())
		require.ErrorIs(t, err, y.err)

		y.mu.Lock()
		y.err, y.takes = nil, time.Hour
		y.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err = s.Take(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		waiting := make(chan error, 1)
		go func() {
			_, _, err := s.Take(t.Context())
			waiting <- err
		}()
		synctest.Wait()
		s.Close()
		require.ErrorIs(t, <-waiting, wire.ErrClosed)
		_, _, err = s.Take(t.Context())
		require.ErrorIs(t, err, wire.ErrClosed)
		dialed, closed := y.counts()
		require.Equal(t, 3, dialed)
		require.Empty(t, closed, "those that were taken are the taker's")
	})
}

func TestCloseClosesWhatIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := &yard{}
		s := y.spares(2)
		_, _, err := s.Take(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		s.Close()
		_, closed := y.counts()
		require.ElementsMatch(t, []int{2, 3}, closed)
	})
}

// TestReadyEnds: sessions that were kept ready and say nothing are given up, but not those that are made meanwhile as well, or nothing would
// ever be told of a server that takes too long.
func TestReadyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := &yard{}
		s := y.spares(2)
		defer s.Close()
		first, _, err := s.Take(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, first)
		synctest.Wait()
		prepared := 0
		_, err = s.Ready(t.Context(), &wire.Submission{}, 5*time.Second, func(ctx context.Context, _ int) error {
			prepared++
			<-ctx.Done()
			return ctx.Err()
		}, func(int, error) bool { return false })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3, prepared, "the two that were ready, and one more")
	})
}

// TestLockOfASlowServer: a server that takes a second to say no is not asked five times.
func TestLockOfASlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		err := wire.Lock(t.Context(), 5, 20*time.Millisecond, func() (bool, error) {
			asked++
			time.Sleep(time.Second)
			return false, nil
		})
		require.ErrorIs(t, err, wire.ErrDuplicate)
		require.Equal(t, 2, asked)
		require.Less(t, time.Since(began), 3*time.Second)
	})
}
