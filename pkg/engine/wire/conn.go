// Package wire is what adapters of engines with a connection per session share: a guard on a connection's first byte, names
// that every engine can carry, connections that are kept ready, and how a statement in a session of its own is begun, read and
// stopped.
//
// It knows no engine and no protocol: how a session is made, spoken to and told to stop is its adapter's. ClickHouse's adapter has a guard of its own, since its native protocol opens with a hello that is not the query's.
package wire

import (
	"net"
	"sync/atomic"
	"time"
)

// Submission is what is known of one statement on its way: whether a byte of it has left, or is leaving.
type Submission struct {
	// Before is the moment past which its first byte must not leave any more; zero means no bound.
	Before time.Time
	// Late is the error of a write that came too late.
	Late error

	sent, late atomic.Bool
}

// Sent says that a byte of it has left, or may be leaving.
func (s *Submission) Sent() bool { return s != nil && s.sent.Load() }

// Expired says that it was held back because its time had passed.
func (s *Submission) Expired() bool { return s != nil && s.late.Load() }

// TooLate says that nothing of it may begin to leave any more.
func (s *Submission) TooLate() bool {
	if s.Before.IsZero() || time.Now().Before(s.Before) {
		return false
	}
	s.late.Store(true)
	return true
}

// Conn is a connection that asks the submission it serves before that one's first byte. A check before the statement is handed
// to the driver would not do: between the two the process may have been stopped.
type Conn struct {
	net.Conn
	serves atomic.Pointer[service]
}

// service is one connection's part in a submission.
type service struct {
	sub   *Submission
	begun atomic.Bool // a byte has left: what has begun must not be cut in two
}

// Guard wraps a connection. Until Serve is called it is a connection like any other.
func Guard(c net.Conn) *Conn { return &Conn{Conn: c} }

// Serve makes the next byte written the first one of a submission; nil makes it a connection like any other again.
func (c *Conn) Serve(s *Submission) {
	if s == nil {
		c.serves.Store(nil)
		return
	}
	c.serves.Store(&service{sub: s})
}

// Write sends, unless the submission's time has passed before its first byte.
func (c *Conn) Write(p []byte) (int, error) {
	v := c.serves.Load()
	if v == nil || v.begun.Load() {
		return c.Conn.Write(p)
	}
	if v.sub.TooLate() {
		return 0, v.sub.Late
	}
	first := v.sub.sent.CompareAndSwap(false, true) // while it may be leaving it counts as sent
	n, err := c.Conn.Write(p)
	switch {
	case n > 0:
		v.begun.Store(true)
	case err != nil && first: // another connection may have sent some of it before
		v.sub.sent.Store(false)
	}
	return n, err
}
