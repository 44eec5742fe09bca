package stream

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// town is a network of addresses, each of which may be down with an error of its own.
type town struct {
	mu    sync.Mutex
	down  map[string]error
	tried map[string]int
}

func refusal(errno syscall.Errno) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
}

func (n *town) dial(_ context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tried[addr]++
	if err := n.down[addr]; err != nil {
		return nil, err
	}
	conn, other := net.Pipe()
	_ = other.Close()
	return conn, nil
}

func (n *town) set(err error, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range addrs {
		n.down[a] = err
	}
}

func TestADialWaitsWhileNobodyAnswers(t *testing.T) {
	const a, b, alias = "a:1", "b:1", "localhost:1"
	refused := refusal(syscall.ECONNREFUSED)
	nameless := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}
	for _, c := range []struct {
		name    string
		seeds   []string
		met     []string // dialled before it happened
		down    []string
		err     error
		back    time.Duration // 0: never
		hurry   time.Duration // 0: never
		gaveUp  time.Duration // the request's own end; 0: never
		took    time.Duration
		atMost  time.Duration // 0: exactly took
		refused bool
	}{
		{name: "a lone broker comes back", seeds: []string{a}, met: []string{a}, down: []string{a}, err: refused, back: time.Second, took: time.Second, atMost: 1500 * time.Millisecond},
		{name: "it has two names", seeds: []string{alias}, met: []string{a}, down: []string{a, alias}, err: refused, back: time.Second, took: time.Second, atMost: 1500 * time.Millisecond},
		{name: "its name comes back", seeds: []string{a}, met: []string{a}, down: []string{a}, err: nameless, back: time.Second, took: time.Second, atMost: 1500 * time.Millisecond},
		{name: "it stays away", seeds: []string{a}, met: []string{a}, down: []string{a}, err: refused, took: 4 * time.Second, refused: true},
		{name: "another one of the cluster answers", seeds: []string{a, b}, met: []string{a}, down: []string{a}, err: refused, refused: true},
		{name: "another one that is no seed answers", seeds: []string{a}, met: []string{a, b}, down: []string{a}, err: refused, refused: true},
		{name: "all of a cluster are away", seeds: []string{a, b}, met: []string{a}, down: []string{a, b}, err: refused, took: 4 * time.Second, refused: true},
		{name: "the address was never right", seeds: []string{a}, down: []string{a}, err: refused, refused: true},
		{name: "it is forbidden", seeds: []string{a}, met: []string{a}, down: []string{a}, err: refusal(syscall.EACCES), refused: true},
		{name: "it took its time already", seeds: []string{a}, met: []string{a}, down: []string{a}, err: refusal(syscall.ETIMEDOUT), refused: true},
		{name: "no error of the network", seeds: []string{a}, met: []string{a}, down: []string{a}, err: errors.New("no"), refused: true},
		{name: "its client is stopped", seeds: []string{a}, met: []string{a}, down: []string{a}, err: refused, hurry: time.Second, took: time.Second, refused: true},
		{name: "its request has ended", seeds: []string{a}, met: []string{a}, down: []string{a}, err: refused, gaveUp: time.Second, took: time.Second, refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := &town{down: map[string]error{}, tried: map[string]int{}}
				d := newDialer(Config{Brokers: c.seeds}, Deps{Dialer: net.dial})
				stop := make(chan struct{})
				d.patience, d.hurry = 4*time.Second, stop
				for _, addr := range c.met {
					_, err := d.dial(t.Context(), "tcp", addr)
					require.NoError(t, err)
				}
				net.set(c.err, c.down...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				after := func(d time.Duration, f func()) {
					if d > 0 {
						time.AfterFunc(d, f)
					}
				}
				after(c.back, func() { net.set(nil, c.down...) })
				after(c.hurry, func() { close(stop) })
				after(c.gaveUp, cancel)
				began := time.Now()
				conn, err := d.dial(ctx, "tcp", a)
				if c.refused {
					require.Equal(t, c.err, err, "the library goes by what the network said")
				} else {
					require.NoError(t, err)
					require.NotNil(t, conn)
				}
				require.GreaterOrEqual(t, time.Since(began), c.took)
				require.LessOrEqual(t, time.Since(began), max(c.took, c.atMost))
				require.Less(t, net.tried[a], 20, "no busy loop")
			})
		})
	}
}

// The patience is that of an outage, not of each dial in it: a member of a group has several connections, dialled one after the other.
func TestAnOutageIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := &town{down: map[string]error{}, tried: map[string]int{}}
		d := newDialer(Config{Brokers: []string{"a:1"}}, Deps{Dialer: net.dial})
		dial := func() time.Duration {
			began := time.Now()
			_, _ = d.dial(t.Context(), "tcp", "a:1")
			return time.Since(began)
		}
		require.Zero(t, dial())
		for range 2 {
			net.set(refusal(syscall.ECONNREFUSED), "a:1")
			require.Equal(t, dialPatience, dial())
			require.Zero(t, dial())
			time.Sleep(time.Minute)
			require.Zero(t, dial())
			net.set(nil, "a:1")
			require.Zero(t, dial(), "it is over, and the next one is another")
		}
	})
}
