package clickhouse

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
)

// deaf is a connection whose peer has gone: the kernel takes only what is left of its allowance.
type deaf struct {
	net.Conn
	dead  *atomic.Bool
	takes int
}

func (d *deaf) Write(p []byte) (int, error) {
	if d.dead.Load() {
		return d.takes, syscall.EPIPE
	}
	return d.Conn.Write(p)
}

// TestGuardHoldsOverTheTransportsRetry: the first write of a reused connection takes nothing, and the transport dials anew. What
// leaves then must still be within the guard.
func TestGuardHoldsOverTheTransportsRetry(t *testing.T) {
	var arrived atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	defer srv.Close()
	for _, c := range []struct {
		name    string
		redial  time.Duration
		arrives int64
		err     error
	}{
		{"the second dial is in time", 0, 2, nil},
		{"the second dial takes longer than the guard", 400 * time.Millisecond, 1, engine.ErrGuardExpired},
	} {
		t.Run(c.name, func(t *testing.T) {
			arrived.Store(0)
			var dials atomic.Int64
			var dead atomic.Bool
			base := &http.Transport{DialContext: func(_ context.Context, network, addr string) (net.Conn, error) {
				again := dials.Add(1) > 1
				if again {
					time.Sleep(c.redial)
				}
				conn, err := net.Dial(network, addr)
				if err == nil && !again {
					conn = &deaf{Conn: conn, dead: &dead}
				}
				return &guardedConn{Conn: conn}, err
			}}
			defer base.CloseIdleConnections()
			do := func(s *submission) error {
				req, err := http.NewRequestWithContext(withSubmission(t.Context(), s), http.MethodPost, srv.URL, strings.NewReader("SELECT 1"))
				require.NoError(t, err)
				resp, err := transport{base}.RoundTrip(req)
				if err == nil {
					_ = resp.Body.Close()
				}
				return err
			}
			require.NoError(t, do(&submission{}))
			dead.Store(true)
			s := &submission{before: time.Now().Add(200 * time.Millisecond)}
			err := do(s)
			require.Equal(t, c.arrives, arrived.Load())
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.err == nil, s.sent.Load())
			require.EqualValues(t, 2, dials.Load())
		})
	}
}

func TestAGuardThatRunsOutAfterAByteHasLeft(t *testing.T) {
	var dead atomic.Bool
	dead.Store(true)
	s := &submission{before: time.Now().Add(time.Hour)}
	first := &guardedConn{Conn: &deaf{dead: &dead, takes: 1}}
	first.serve(s)
	_, err := first.Write([]byte("SELECT 1"))
	require.ErrorIs(t, err, syscall.EPIPE)
	require.True(t, s.sent.Load())

	s.before = time.Now()
	_, err = first.Write([]byte("ELECT 1"))
	require.ErrorIs(t, err, syscall.EPIPE, "what has begun is not cut in two")
	second := &guardedConn{Conn: &deaf{dead: &dead, takes: 1}}
	second.serve(s)
	_, err = second.Write([]byte("SELECT 1"))
	require.ErrorIs(t, err, engine.ErrGuardExpired)
	wrapped := (&Engine{}).wrap(err, s)
	require.Equal(t, engine.SentUnknown, wrapped.Phase)
	require.NotErrorIs(t, wrapped, engine.ErrGuardExpired, "it may have been sent, so it must not be sent again")
}

// taker counts what leaves.
type taker struct {
	net.Conn
	taken atomic.Int64
}

func (c *taker) Write(p []byte) (int, error) {
	c.taken.Add(int64(len(p)))
	return len(p), nil
}

// TestWhatIsHeldDoesNotLeave: either nothing leaves behind a stop, or whoever stops is told that something did. There is no third
// outcome, in which an answer would be waited for that has come already.
func TestWhatIsHeldDoesNotLeave(t *testing.T) {
	outcomes := map[bool]int{}
	for i := range 3000 {
		conn := &taker{}
		sub := &submission{}
		guarded := &guardedConn{Conn: conn}
		guarded.serve(sub)
		wrote := make(chan error, 1)
		go func() {
			_, err := guarded.Write([]byte("q"))
			wrote <- err
		}()
		for range i % 4 {
			runtime.Gosched() // so that now the one comes first, and now the other
		}
		held := sub.hold()
		err := <-wrote
		if held {
			require.ErrorIs(t, err, errHeld)
		}
		require.Equal(t, err == nil, conn.taken.Load() == 1)
		require.Equal(t, err == nil, sub.sent.Load())
		outcomes[held]++
	}
	t.Logf("held back: %d, too late: %d", outcomes[true], outcomes[false])
}
