package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// How a broker that refuses connections is tried again.
const (
	dialTimeout    = 10 * time.Second
	dialPatience   = 5 * time.Second // of clients that keep no place in a group
	dialPauseFirst = 50 * time.Millisecond
	dialPauseMost  = 500 * time.Millisecond
	probeTimeout   = time.Second
)

// dialer opens the connections of one client. While nobody of a cluster that it has met takes connections, it waits and tries again
// before it says so: the library ends a member's session in its group as soon as a heartbeat can't be sent and no other broker
// can be asked for the coordinator, and all that the member works on would move because a lone broker restarts. Where another broker
// can be reached the refusal is told at once, so that a failover takes no longer for it. A cluster that was never met is no such
// case either: its address may be wrong, and that should show.
type dialer struct {
	open     func(ctx context.Context, network, addr string) (net.Conn, error)
	tls      *tls.Config   // nil for none
	patience time.Duration // from the moment at which the last one of the cluster was found to refuse
	hurry    <-chan struct{}

	mu     sync.Mutex
	client *kgo.Client
	known  map[string]bool // addresses
	met    bool
	since  time.Time // of the outage; zero while there is none
}

func newDialer(c Config, d Deps) *dialer {
	out := &dialer{open: d.Dialer, patience: dialPatience, known: map[string]bool{}}
	if out.open == nil {
		out.open = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	for _, b := range c.Brokers {
		out.known[b] = true
	}
	return out
}

// serve tells the dialer whose connections these are.
func (d *dialer) serve(cl *kgo.Client) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.client = cl
}

// dial is what the client calls.
func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.open(ctx, network, addr)
	if err != nil && passing(err) {
		conn, err = d.wait(ctx, network, addr, err)
	}
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.known[addr], d.met, d.since = true, true, time.Time{}
	d.mu.Unlock()
	return d.secure(ctx, conn, addr)
}

// wait tries an address that refuses until somebody of the cluster can be reached, or the outage has lasted for too long.
func (d *dialer) wait(ctx context.Context, network, addr string, err error) (net.Conn, error) {
	for pause := dialPauseFirst; ; pause = min(2*pause, dialPauseMost) {
		others, waits := d.others(addr)
		if !waits || d.reachable(ctx, network, others) {
			return nil, err
		}
		left := d.outage()
		if left <= 0 {
			return nil, err
		}
		t := time.NewTimer(min(pause, left))
		select {
		case <-t.C:
		case <-d.hurry:
		case <-ctx.Done():
		}
		if t.Stop() { // somebody has had enough
			return nil, err
		}
		conn, again := d.open(ctx, network, addr)
		if again == nil || !passing(again) {
			return conn, again
		}
		err = again
	}
}

// others are the addresses besides one at which the cluster may be reached. Waiting is out of the question before the first
// connection, and while the client knows of a broker whose address was never tried: it will try.
func (d *dialer) others(addr string) (addrs []string, waits bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[addr] = true
	if !d.met || d.client != nil && len(d.client.DiscoveredBrokers()) > len(d.known) {
		return nil, false
	}
	if !d.since.IsZero() && time.Since(d.since) >= d.patience {
		return nil, false
	}
	for a := range d.known {
		if a != addr {
			addrs = append(addrs, a)
		}
	}
	return addrs, true
}

// reachable says whether one of the addresses takes connections.
func (d *dialer) reachable(ctx context.Context, network string, addrs []string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var wg sync.WaitGroup
	found := make(chan struct{}, len(addrs))
	for _, a := range addrs {
		wg.Go(func() {
			conn, err := d.open(ctx, network, a)
			if err != nil {
				return
			}
			_ = conn.Close()
			found <- struct{}{}
			cancel()
		})
	}
	wg.Wait()
	return len(found) > 0
}

// outage says how much of the patience is left. The first to ask finds the outage.
func (d *dialer) outage() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since.IsZero() {
		d.since = time.Now()
	}
	return d.patience - time.Since(d.since)
}

func (d *dialer) secure(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	if d.tls == nil {
		return conn, nil
	}
	conf := d.tls.Clone()
	if conf.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("the broker's name: %w", err)
		}
		conf.ServerName = host
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	secure := tls.Client(conn, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// passing says that an error of a dial may be gone in a moment. A name that does not resolve is one of these: names of brokers in a
// cluster of containers come and go with them. What took its time has waited long enough.
func passing(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" && !op.Timeout() && !errors.Is(err, context.Canceled) && !errors.Is(err, syscall.EACCES) && !errors.Is(err, syscall.EPERM)
}
