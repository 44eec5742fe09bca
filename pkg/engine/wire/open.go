package wire

import (
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"
)

// HostPort takes the address of one server apart.
func HostPort(addr string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", "", fmt.Errorf("%q must be host:port: %w", addr, err)
	}
	return host, port, nil
}

// Count counts sessions that are open, for a client that is closed: what was cut off is gone in a moment.
type Count struct{ open atomic.Int64 }

// Opened counts one more.
func (c *Count) Opened() { c.open.Add(1) }

// Closed counts one less.
func (c *Count) Closed() { c.open.Add(-1) }

// Wait waits until none is open, but not for long: one that hangs is the server's to notice.
func (c *Count) Wait() {
	for range 100 {
		if c.open.Load() == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
