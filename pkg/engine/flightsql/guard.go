package flightsql

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/pointsman/pointsman/pkg/engine"
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
	frames frames
}

// Write sends, unless it would begin a request too late. The check and the write are one step for whoever bars.
func (c *guarded) Write(p []byte) (int, error) {
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	if !c.frames.carries(p) || c.guard.passed {
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

// frames follows the frames of HTTP/2 that a client writes.
type frames struct {
	begun  bool
	skip   int    // bytes of the current frame, or of the preface, that are still to come
	header []byte // of the next one, as far as it is there
}

const (
	preface     = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	headerBytes = 9
	dataFrame   = 0
)

// carries says that the bytes have the header of a frame with a part of a request's body: without one a server starts nothing.
func (f *frames) carries(p []byte) bool {
	if !f.begun {
		f.begun, f.skip = true, preface
	}
	found := false
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			f.skip -= n
			p = p[n:]
			continue
		}
		n := min(headerBytes-len(f.header), len(p))
		f.header = append(f.header, p[:n]...)
		p = p[n:]
		if len(f.header) < headerBytes {
			return found
		}
		f.skip = int(binary.BigEndian.Uint32(f.header) >> 8)
		found = found || f.header[3] == dataFrame
		f.header = f.header[:0]
	}
	return found
}

// guarding puts the guard above the encryption, where frames can be read.
type guarding struct {
	credentials.TransportCredentials
	guard *guard
}

// ClientHandshake makes a connection that carries the statement.
func (c guarding) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, err
	}
	return &guarded{Conn: conn, guard: c.guard}, info, nil
}

// Clone copies the credentials; the guard stays the same one.
func (c guarding) Clone() credentials.TransportCredentials {
	return guarding{c.TransportCredentials.Clone(), c.guard}
}
