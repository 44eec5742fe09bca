package spark

import (
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire/http2"
)

// guard is what is known of one statement on its way. The server starts nothing before it has the whole request, so the frame of
// HTTP/2 that ends the request is what must not leave past the guard of the claim.
type guard struct {
	before time.Time // zero means no bound

	mu     sync.Mutex
	sent   bool
	late   bool
	barred bool
}

// tooLate says that the statement must not leave any more.
func (g *guard) tooLate() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.expired()
}

func (g *guard) expired() bool {
	if !g.before.IsZero() && !time.Now().Before(g.before) {
		g.late = true
	}
	return g.late
}

// wasSent says that the statement has left, or may have.
func (g *guard) wasSent() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sent
}

// bar keeps the statement from leaving if it has not left yet, and says whether it has.
func (g *guard) bar() (sent bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.barred = true
	return g.sent
}

// guarded is a connection that carries one statement.
type guarded struct {
	net.Conn
	guard  *guard
	frames http2.Frames
}

// Write sends, unless it would complete the request too late. The check and the write are one step for whoever bars.
func (c *guarded) Write(p []byte) (int, error) {
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	_, completes := c.frames.Next(p)
	switch {
	case c.guard.sent, !completes && !c.guard.barred:
		return c.Conn.Write(p)
	case c.guard.barred || c.guard.expired():
		c.guard.barred = true
		return 0, engine.ErrGuardExpired
	}
	c.guard.sent = true
	n, err := c.Conn.Write(p)
	if n == 0 && err != nil {
		c.guard.sent = false // a dead connection that has taken nothing
	}
	return n, err
}

// guarding puts the guard above the encryption, where frames can be read.
func guarding(c credentials.TransportCredentials, g *guard) credentials.TransportCredentials {
	return http2.Above(c, func(conn net.Conn) net.Conn { return &guarded{Conn: conn, guard: g} })
}
