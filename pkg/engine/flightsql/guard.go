package flightsql

import (
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire/http2"
)

// guard is what is known of one statement on its way. It takes two requests: the one that has the statement, and the one for its
// rows. Which of them starts it is the server's choice, so neither may leave past the guard of the claim.
type guard struct {
	before time.Time // zero means no bound
	// refuse ends the calls of a run of which something was held back: gRPC would try again on a new connection, for ever.
	refuse func(error)

	mu     sync.Mutex
	passed bool // the present request has begun to leave: what has begun is not cut in two
	sent   bool // something of the statement has left, or may have
	late   bool
	barred bool
}

// tooLate says that no request may begin to leave any more.
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

// wasSent says that something of the statement has left, or may have.
func (g *guard) wasSent() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sent
}

// wasLate says that a request was held back because its time had passed.
func (g *guard) wasLate() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.late
}

// next makes what is written now another request. Once rows have been answered the statement runs, and time has no say any more.
func (g *guard) next(started bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed = false
	if started {
		g.before = time.Time{}
	}
}

// bar keeps requests that have not begun to leave from leaving, and says whether one has.
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

// Write sends, unless it would begin a request too late. The check and the write are one step for whoever bars.
func (c *guarded) Write(p []byte) (int, error) {
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	if carries, _ := c.frames.Next(p); !carries || c.guard.passed {
		return c.Conn.Write(p)
	}
	if c.guard.barred || c.guard.expired() {
		c.guard.barred = true
		c.guard.refuse(engine.ErrGuardExpired)
		return 0, engine.ErrGuardExpired
	}
	before := c.guard.sent
	c.guard.passed, c.guard.sent = true, true // while it may be leaving it counts as sent
	n, err := c.Conn.Write(p)
	if n == 0 && err != nil {
		c.guard.passed, c.guard.sent = false, before // a dead connection that has taken nothing
	}
	return n, err
}

// guarding puts the guard above the encryption, where frames can be read.
func guarding(c credentials.TransportCredentials, g *guard) credentials.TransportCredentials {
	return http2.Above(c, func(conn net.Conn) net.Conn { return &guarded{Conn: conn, guard: g} })
}
