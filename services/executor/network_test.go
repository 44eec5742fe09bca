package executor_test

import (
	"context"
	"errors"
	"net"
	"sync"
)

// network is one process's way to the broker. It can be cut, as by a kill, and frozen, as by SIGSTOP: then nothing moves until it
// thaws, and nobody on either side is told.
type network struct {
	mu     sync.Mutex
	conns  []net.Conn
	cut    bool
	frozen chan struct{} // nil when it is not
}

var errCut = errors.New("the process is gone")

func (n *network) dial(ctx context.Context, proto, addr string) (net.Conn, error) {
	if err := n.wait(ctx); err != nil {
		return nil, err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, proto, addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut {
		_ = c.Close()
		return nil, errCut
	}
	n.conns = append(n.conns, c)
	return &conn{Conn: c, n: n}, nil
}

func (n *network) wait(ctx context.Context) error {
	n.mu.Lock()
	cut, frozen := n.cut, n.frozen
	n.mu.Unlock()
	if cut {
		return errCut
	}
	if frozen == nil {
		return nil
	}
	select {
	case <-frozen:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kill cuts the network for good.
func (n *network) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = true
	for _, c := range n.conns {
		_ = c.Close()
	}
	if n.frozen != nil {
		close(n.frozen)
		n.frozen = nil
	}
}

// revive ends a cut, when the test is over: clients that can't say goodbye take their time.
func (n *network) revive() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = false
}

func (n *network) freeze() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.frozen = make(chan struct{})
}

func (n *network) thaw() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.frozen)
	n.frozen = nil
}

type conn struct {
	net.Conn
	n *network
}

func (c *conn) Read(p []byte) (int, error) {
	k, err := c.Conn.Read(p)
	if w := c.n.wait(context.Background()); w != nil {
		return 0, w
	}
	return k, err
}

func (c *conn) Write(p []byte) (int, error) {
	if w := c.n.wait(context.Background()); w != nil {
		return 0, w
	}
	return c.Conn.Write(p)
}
