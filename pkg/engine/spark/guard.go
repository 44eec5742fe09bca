package spark

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/pointsman/pointsman/pkg/engine"
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
	frames frames
}

// Write sends, unless it would complete the request too late. The check and the write are one step for whoever bars.
func (c *guarded) Write(p []byte) (int, error) {
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	completes := c.frames.completes(p)
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
	endStream   = 1
)

// completes says that the bytes have the header of a frame with the end of a request's body.
func (f *frames) completes(p []byte) bool {
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
		found = found || f.header[3] == dataFrame && f.header[4]&endStream != 0
		f.header = f.header[:0]
	}
	return found
}

// guarding puts the guard above the encryption, where frames can be read.
type guarding struct {
	credentials.TransportCredentials
	guard *guard
}

// ClientHandshake makes a connection that carries the statement, unless it must not leave any more.
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
