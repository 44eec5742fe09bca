package http2

import (
	"sync"
	"time"
)

// Guard is what is known of one statement on its way. Which bytes start it at the server is the adapter's to say; the fields belong to
// whoever holds the lock, so that looking and writing are one step.
type Guard struct {
	sync.Mutex
	// Before is the moment past which it must not begin to leave; zero means no bound.
	Before time.Time
	// Sent says that something of it has left, or may have.
	Sent bool
	// Late says that it was held back because its time had passed, and Barred that it may not leave any more.
	Late, Barred bool
}

// Expired says that it must not begin to leave any more. The lock is held.
func (g *Guard) Expired() bool {
	if !g.Before.IsZero() && !time.Now().Before(g.Before) {
		g.Late = true
	}
	return g.Late
}

// TooLate is Expired for whoever does not hold the lock.
func (g *Guard) TooLate() bool {
	g.Lock()
	defer g.Unlock()
	return g.Expired()
}

// WasSent says that something of it has left, or may have.
func (g *Guard) WasSent() bool {
	g.Lock()
	defer g.Unlock()
	return g.Sent
}

// WasLate says that it was held back because its time had passed.
func (g *Guard) WasLate() bool {
	g.Lock()
	defer g.Unlock()
	return g.Late
}

// Bar keeps from leaving what has not begun to leave, and says whether something has.
func (g *Guard) Bar() (sent bool) {
	g.Lock()
	defer g.Unlock()
	g.Barred = true
	return g.Sent
}
