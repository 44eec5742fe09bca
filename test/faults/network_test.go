package faults_test

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// network is one process's way to the broker.
type network struct {
	mu     sync.Mutex
	wake   *sync.Cond
	conns  []net.Conn
	cut    bool
	frozen bool // nothing moves
	deaf   bool // what is sent arrives, and its answers don't
}

// What a cut looks like is what the kernel says of a broker that is gone; clients go by that.
var (
	errDial  = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	errWrite = &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}
)

func newNetwork() *network {
	n := &network{}
	n.wake = sync.NewCond(&n.mu)
	return n
}

func (n *network) dial(ctx context.Context, proto, addr string) (net.Conn, error) {
	if !n.pass(false) {
		return nil, errDial
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
		return nil, errDial
	}
	n.conns = append(n.conns, c)
	return &conn{c, n}, nil
}

// pass waits while nothing moves; false means that the network is cut.
func (n *network) pass(reading bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for !n.cut && (n.frozen || reading && n.deaf) {
		n.wake.Wait()
	}
	return !n.cut
}

// set makes the network what it is from now on. A cut hangs up everywhere.
func (n *network) set(cut, frozen, deaf bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut, n.frozen, n.deaf = cut, frozen, deaf
	if cut {
		for _, c := range n.conns {
			_ = c.Close()
		}
		n.conns = nil
	}
	n.wake.Broadcast()
}

type conn struct {
	net.Conn
	n *network
}

// Read reads once something may arrive.
func (c *conn) Read(p []byte) (int, error) {
	k, err := c.Conn.Read(p)
	if !c.n.pass(true) {
		return 0, io.EOF
	}
	return k, err
}

// Write writes once something may leave.
func (c *conn) Write(p []byte) (int, error) {
	if !c.n.pass(false) {
		return 0, errWrite
	}
	return c.Conn.Write(p)
}

// thaw lets what arrives through again, if nothing worse has happened meanwhile.
func (n *network) thaw() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deaf = false
	n.wake.Broadcast()
}
