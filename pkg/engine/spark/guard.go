package spark

import (
	"net"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire/http2"
)

// guard is what is known of one statement on its way. The server starts nothing before it has the whole request, so the frame of
// HTTP/2 that ends the request is what must not leave past the guard of the claim.
type guard struct{ http2.Guard }

func newGuard(before time.Time) *guard { return &guard{http2.Guard{Before: before}} }

// guarded is a connection that carries one statement.
type guarded struct {
	net.Conn
	guard  *guard
	frames http2.Frames
}

// Write sends, unless it would complete the request too late. The check and the write are one step for whoever bars.
func (c *guarded) Write(p []byte) (int, error) {
	c.guard.Lock()
	defer c.guard.Unlock()
	_, completes := c.frames.Next(p)
	switch {
	case c.guard.Sent, !completes && !c.guard.Barred:
		return c.Conn.Write(p)
	case c.guard.Barred || c.guard.Expired():
		c.guard.Barred = true
		return 0, engine.ErrGuardExpired
	}
	c.guard.Sent = true
	n, err := c.Conn.Write(p)
	if n == 0 && err != nil {
		c.guard.Sent = false // a dead connection that has taken nothing
	}
	return n, err
}

// guarding puts the guard above the encryption, where frames can be read.
func guarding(c credentials.TransportCredentials, g *guard) credentials.TransportCredentials {
	return http2.Above(c, func(conn net.Conn) net.Conn { return &guarded{Conn: conn, guard: g} })
}
