// Package ports finds ports for processes that tests start. A server that a test starts again needs its own port free, so they lie
// below those that outgoing connections take theirs from.
package ports

import (
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
)

const (
	lowest = 20_000
	span   = 12_000
	// stride sets apart the ports of test processes that run side by side: their ids are often neighbours.
	stride = 97
)

var (
	mu   sync.Mutex
	next = os.Getpid() * stride % span
)

// Free returns a port of 127.0.0.1 that nobody listens on, and that this process has not returned lately.
func Free(t testing.TB) int {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	for range span {
		port := lowest + next
		next = (next + 1) % span
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		return port
	}
	t.Fatalf("no free port between %d and %d", lowest, lowest+span)
	return 0
}

// Closed is an address at which nobody listens.
func Closed(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", Free(t))
}
