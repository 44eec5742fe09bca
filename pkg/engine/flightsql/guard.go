package flightsql

import (
	"net"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire/http2"
)

// guard is what is known of one statement on its way. It takes two requests: the one that has the statement, and the one for its
// rows. Which of them starts it is the server's choice, so neither may leave past the guard of the claim.
type guard struct {
	http2.Guard
	// refuse ends the calls of a run of which something was held back: gRPC would try again on a new connection, for ever.
	refuse func(error)
	passed bool // the present request has begun to leave: what has begun is not cut in two
}

func newGuard(before time.Time) *guard { return &guard{Guard: http2.Guard{Before: before}} }

// next makes what is written now another request. Once rows have been answered the statement runs, and time has no say any more.
func (g *guard) next(started bool) {
	g.Lock()
	defer g.Unlock()
	g.passed = false
	if started {
		g.Before = time.Time{}
	}
}

// guarded is a connection that carries one statement.
type guarded struct {
	net.Conn
	guard  *guard
	frames http2.Frames
}

// Write sends, unless it would begin a request too late. The check and the write are one step for whoever bars.
func (c *guarded) Write(p []byte) (int, error) {
	c.guard.Lock()
	defer c.guard.Unlock()
	if carries, _ := c.frames.Next(p); !carries || c.guard.passed {
		return c.Conn.Write(p)
	}
	if c.guard.Barred || c.guard.Expired() {
		c.guard.Barred = true
		c.guard.refuse(engine.ErrGuardExpired)
		return 0, engine.ErrGuardExpired
	}
	before := c.guard.Sent
	c.guard.passed, c.guard.Sent = true, true // while it may be leaving it counts as sent
	n, err := c.Conn.Write(p)
	if n == 0 && err != nil {
		c.guard.passed, c.guard.Sent = false, before // a dead connection that has taken nothing
	}
	return n, err
}

// guarding puts the guard above the encryption, where frames can be read.
func guarding(c credentials.TransportCredentials, g *guard) credentials.TransportCredentials {
	return http2.Above(c, func(conn net.Conn) net.Conn { return &guarded{Conn: conn, guard: g} })
}
