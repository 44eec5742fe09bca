package stream_test

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
)

// cable is a member's way to the broker. While it is out nobody listens at the other end, and what was open is closed.
type cable struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	out   bool
	conns []net.Conn
}

func (c *cable) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	conn, err := c.dial(ctx, network, addr)
	c.conns = append(c.conns, conn)
	return conn, err
}

func (c *cable) pull() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = true
	for _, conn := range c.conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
	c.conns = nil
}

func (c *cable) plug() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = false
}

// A broker that is alone and restarts costs no member of a group its partitions, in either protocol, as long as it is back within half
// a session timeout; one that stays away for longer does, but not for ever.
func TestALoneBrokerGoesAway(t *testing.T) {
	for _, c := range []struct {
		name     string
		server   bool
		away     time.Duration
		assigned int
	}{
		{"for a second", false, time.Second, 1},
		{"for 20 s", false, 20 * time.Second, 1},
		{"for a minute", false, time.Minute, 2},
		{"for 20 s, balanced by the server", true, 20 * time.Second, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := streamtest.Virtual(t, kfake.GroupMaxSessionTimeout(10*time.Minute))
				defer b.Close()
				b.Topic(t, "t", 1, nil)
				produce(t, b, "t", 0, 0, 1)
				wire := &cable{dial: b.Deps.Dialer}
				deps := b.Deps
				deps.Dialer, deps.Log = wire.DialContext, nil
				cc := stream.DefaultConsumerConfig("g", "t")
				cc.ServerBalanced = c.server
				var mu sync.Mutex
				assigned := 0
				var s seen
				consumer, err := stream.NewConsumer(b.Config, deps, cc, func(_ context.Context, p *stream.Partition) (stream.Processor, error) {
					mu.Lock()
					defer mu.Unlock()
					assigned++
					return processor{p, func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
						s.add(recs...)
						p.Done(recs...)
						return nil
					}}, nil
				})
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- consumer.Run(ctx) }()
				settle(10 * time.Second)
				require.Equal(t, []string{"0"}, s.take())

				wire.pull()
				settle(c.away)
				wire.plug()
				settle(time.Minute)
				produce(t, b, "t", 0, 1, 1)
				settle(10 * time.Second)
				require.Equal(t, []string{"1"}, s.take())
				mu.Lock()
				require.Equal(t, c.assigned, assigned)
				mu.Unlock()
				require.Equal(t, int64(2), b.Offset(t, "g", "t", 0))

				// And a member that is stopped does not wait for a broker that is away.
				wire.pull()
				settle(time.Second)
				began := time.Now()
				cancel()
				require.NoError(t, <-ended)
				require.Less(t, time.Since(began), 5*time.Second)
			})
		})
	}
}
