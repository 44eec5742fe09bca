package wire_test

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine/wire"
)

// socket takes what it is told to.
type socket struct {
	net.Conn
	takes int
	err   error
	got   []byte
}

func (s *socket) Write(p []byte) (int, error) {
	n := min(s.takes, len(p))
	s.got = append(s.got, p[:n]...)
	return n, s.err
}

var errLate = errors.New("too late")

func TestGuard(t *testing.T) {
	for _, c := range []struct {
		name          string
		before        time.Duration // from now; 0 is no bound
		takes         int
		err           error
		sent, expired bool
		want          error
	}{
		{"in time", time.Hour, 100, nil, true, false, nil},
		{"no bound", 0, 100, nil, true, false, nil},
		{"too late", -time.Millisecond, 100, nil, false, true, errLate},
		{"a dead connection that takes nothing", time.Hour, 0, syscall.EPIPE, false, false, syscall.EPIPE},
		{"a connection that dies in the middle", time.Hour, 3, syscall.EPIPE, true, false, syscall.EPIPE},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := &socket{takes: 100}
			conn := wire.Guard(raw)
			_, err := conn.Write([]byte("hello"))
			require.NoError(t, err, "what comes before the submission is not guarded")
			raw.takes, raw.err = c.takes, c.err
			sub := &wire.Submission{Late: errLate}
			if c.before != 0 {
				sub.Before = time.Now().Add(c.before)
			}
			require.False(t, sub.Sent())
			conn.Serve(sub)
			_, err = conn.Write([]byte("SELECT 1"))
			require.ErrorIs(t, err, c.want)
			require.Equal(t, c.sent, sub.Sent())
			require.Equal(t, c.expired, sub.Expired())
		})
	}
}

func TestWhatHasBegunIsNotCutInTwo(t *testing.T) {
	raw := &socket{takes: 100}
	conn := wire.Guard(raw)
	sub := &wire.Submission{Before: time.Now().Add(20 * time.Millisecond), Late: errLate}
	conn.Serve(sub)
	_, err := conn.Write([]byte("SELECT"))
	require.NoError(t, err)
	time.Sleep(30 * time.Millisecond)
	_, err = conn.Write([]byte(" 1"))
	require.NoError(t, err)
	require.Equal(t, "SELECT 1", string(raw.got))
	require.False(t, sub.Expired())
}
