package wire

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
)

var (
	errStopped = errors.New("stopped by request")
	errCut     = errors.New("the connection was cut")
)

// server is a session and its result: rows numbers, and then it waits until it is stopped or cut, or ends if it is to end.
type server struct {
	rows  int
	ends  bool
	deaf  bool // it takes a wish to stop, and goes on
	quick bool // it is done when the wish to stop comes
	stops int

	row     int
	once    sync.Once
	over    chan struct{}
	said    error
	cut     bool
	closed  int
	drained bool
}

func (s *server) end(err error) { s.once.Do(func() { s.said = err; close(s.over) }) }

func (s *server) Stop(context.Context) error {
	s.stops++
	switch {
	case s.quick:
		s.end(nil)
	case !s.deaf:
		s.end(errStopped)
	}
	return nil
}

func (s *server) Drop() { s.cut = true; s.end(errCut) }

func (s *server) Next() (bool, error) {
	if s.row < s.rows {
		s.row++
		return true, nil
	}
	if s.ends {
		return false, nil
	}
	<-s.over
	return false, s.said
}

func (s *server) Columns() []event.Column { return []event.Column{{Name: "n", Type: "int"}} }
func (s *server) Values() []any           { return []any{s.row} }

// ending tells the two Close of a session and of a cursor apart.
type ending struct{ *server }

func (e ending) Close() { e.closed++ }

type reading struct{ *server }

func (r reading) Close() { <-r.over; r.drained = true }

func submit(ctx context.Context, s *server) (engine.Rows, error) {
	s.over = make(chan struct{})
	sub := &Submission{}
	sub.sent.Store(true)
	statement := &Statement{
		Session: ending{s}, Sub: sub, Life: context.Background(), Send: func() (Cursor, error) { return reading{s}, nil },
		Wrap: func(err error) *engine.Error { return &engine.Error{Err: err} },
	}
	return statement.Submit(ctx)
}

func TestStatementIsReadToItsEnd(t *testing.T) {
	s := &server{rows: 3, ends: true}
	rows, err := submit(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, "n", rows.Columns()[0].Name)
	for n := 1; rows.Next(); n++ {
		values, err := rows.Values()
		require.NoError(t, err)
		require.Equal(t, []any{n}, values)
		require.Nil(t, rows.Stats().ResultRows, "an unfinished result has no count")
	}
	require.NoError(t, rows.Err())
	require.EqualValues(t, 3, *rows.Stats().ResultRows)
	require.NoError(t, rows.Close())
	require.Equal(t, 1, s.closed)
	require.Zero(t, s.stops, "what is over is not stopped")
}

func TestStatementIsStoppedBeforeItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("unwanted")) })
		s := &server{}
		_, err := submit(ctx, s)
		require.ErrorIs(t, err, errStopped, "the server's own word")
		require.Equal(t, 1, s.stops)
		require.False(t, s.cut)
		require.Equal(t, 1, s.closed)
	})
}

func TestStatementThatIsDoneWhenItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unwanted := errors.New("unwanted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(unwanted) })
		_, err := submit(ctx, &server{quick: true})
		require.ErrorIs(t, err, unwanted)
		require.ErrorIs(t, err, engine.ErrDone, "a write must not be taken for one that was stopped")
	})
}

func TestStatementThatDoesNotStopIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unwanted := errors.New("unwanted")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(unwanted)
		s := &server{deaf: true}
		began := time.Now()
		_, err := submit(ctx, s)
		require.ErrorIs(t, err, unwanted)
		require.ErrorContains(t, err, "did not confirm")
		require.True(t, s.cut)
		require.Greater(t, s.stops, 3, "it may have been on its way still: it is told again")
		require.Equal(t, StopWithin, time.Since(began))
	})
}

func TestStatementIsStoppedWhileItIsRead(t *testing.T) {
	t.Run("its result is closed", func(t *testing.T) {
		s := &server{rows: 5}
		rows, err := submit(t.Context(), s)
		require.NoError(t, err)
		require.True(t, rows.Next())
		require.NoError(t, rows.Close())
		require.True(t, s.drained)
		require.Equal(t, 1, s.stops)
		require.Equal(t, 1, s.closed)
		require.False(t, rows.Next())
		require.Nil(t, rows.Stats().ResultRows)
	})
	t.Run("its context ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := &server{rows: 1}
			rows, err := submit(ctx, s)
			require.NoError(t, err)
			require.True(t, rows.Next())
			time.AfterFunc(time.Second, cancel)
			require.False(t, rows.Next())
			require.ErrorIs(t, rows.Err(), errStopped)
			require.Equal(t, 1, s.closed)
			time.Sleep(2 * dropAfter)
			synctest.Wait()
		})
	})
	t.Run("a server that does not listen is cut", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &server{rows: 1, deaf: true}
			rows, err := submit(t.Context(), s)
			require.NoError(t, err)
			began := time.Now()
			require.NoError(t, rows.Close())
			require.True(t, s.cut)
			require.Equal(t, dropAfter, time.Since(began))
		})
	})
}

func TestPlaceSaysHowFarASubmissionCame(t *testing.T) {
	sent, late, both := &Submission{}, &Submission{}, &Submission{}
	sent.sent.Store(true)
	late.late.Store(true)
	both.sent.Store(true)
	both.late.Store(true)
	for name, c := range map[string]struct {
		sub   *Submission
		err   error
		phase engine.Phase
		want  error
	}{
		"a control statement, and nobody listens": {nil, syscall.ECONNREFUSED, engine.NotSent, syscall.ECONNREFUSED},
		"a control statement that broke":          {nil, io.EOF, engine.SentUnknown, io.EOF},
		"not sent":                                {&Submission{}, io.EOF, engine.NotSent, io.EOF},
		"not sent in time":                        {late, io.EOF, engine.NotSent, engine.ErrGuardExpired},
		"another one has its name":                {&Submission{}, ErrDuplicate, engine.SentUnknown, ErrDuplicate},
		"sent":                                    {sent, io.EOF, engine.SentUnknown, io.EOF},
		"half of it":                              {both, engine.ErrGuardExpired, engine.SentUnknown, errHalfSent},
	} {
		t.Run(name, func(t *testing.T) {
			out := &engine.Error{Phase: engine.SentUnknown, Err: c.err}
			c.sub.Place(out, c.err)
			require.Equal(t, c.phase, out.Phase)
			require.ErrorIs(t, out.Err, c.want)
			if errors.Is(c.want, errHalfSent) {
				require.NotErrorIs(t, out.Err, engine.ErrGuardExpired, "whoever reads that may send it again")
			}
		})
	}
}

func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		require.NoError(t, Lock(t.Context(), 3, time.Second, func() (bool, error) { tries++; return tries == 3, nil }))
		began := time.Now()
		require.ErrorIs(t, Lock(t.Context(), 3, time.Second, func() (bool, error) { return false, nil }), ErrDuplicate)
		require.Equal(t, 2*time.Second, time.Since(began))
		require.ErrorIs(t, Lock(t.Context(), 3, time.Second, func() (bool, error) { return false, io.EOF }), io.EOF)
	})
}
