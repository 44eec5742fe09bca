// Package line is the queue in front of one cluster: a number of slots in this process, and an order for those who wait for one.
//
// Higher priority goes first, then the lower order number, which is the order in which Tasks came: one that is tried again does
// not start over behind those that came later. Caps that hold across processes are asked of whoever stands first and go by a key:
// one who is refused does not hold up those of another key. A slot belongs to the attempt that holds its Place and comes back
// with Leave, which every way out of an attempt calls; nothing here expires, because nothing outlives its process. Cancelling a
// query needs no slot.
package line

import (
	"slices"
	"sync"
)

// Line is the queue of one cluster.
type Line struct {
	mu      sync.Mutex
	slots   int
	used    int
	waiting []*Place // in order
}

// New makes a line with a number of slots.
func New(slots int) *Line { return &Line{slots: slots} }

// Ask is what else has to allow a slot; nil asks nobody.
type Ask struct {
	// Key is what the answer depends on: who is refused speaks for all of the same key.
	Key string
	// Take takes the slot if it is allowed. It is called with the line locked and must not call back.
	Take func() bool
}

// Place is one attempt's place in a line, or its slot.
type Place struct {
	line     *Line
	priority int
	order    uint64
	ask      *Ask
	granted  chan struct{}
	has      bool
	left     bool
}

// Join stands in line. The slot may be granted at once.
func (l *Line) Join(priority int, order uint64, ask *Ask) *Place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &Place{line: l, priority: priority, order: order, ask: ask, granted: make(chan struct{})}
	i, _ := slices.BinarySearchFunc(l.waiting, p, compare)
	l.waiting = slices.Insert(l.waiting, i, p)
	l.grant()
	return p
}

// Granted is closed once the place has a slot.
func (p *Place) Granted() <-chan struct{} { return p.granted }

// Position is how many are in front, counted from 1 for the next in line; 0 means that it has its slot, or has left.
func (p *Place) Position() int {
	p.line.mu.Lock()
	defer p.line.mu.Unlock()
	return 1 + slices.Index(p.line.waiting, p)
}

// Leave gives the slot or the place back. A second call does nothing.
func (p *Place) Leave() {
	l := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.left {
		return
	}
	p.left = true
	if !p.has {
		i := slices.Index(l.waiting, p)
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return
	}
	l.used--
	l.grant()
}

// Kick looks again whether somebody can have a slot: what was refused before may be allowed now.
func (l *Line) Kick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grant()
}

// Load is how many slots there are, how many are taken, and how many wait.
func (l *Line) Load() (slots, used, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slots, l.used, len(l.waiting)
}

func (l *Line) grant() {
	var refused map[string]bool
	for i := 0; l.used < l.slots && i < len(l.waiting); {
		p := l.waiting[i]
		if p.ask != nil && (refused[p.ask.Key] || !p.ask.Take()) {
			if refused == nil {
				refused = map[string]bool{}
			}
			refused[p.ask.Key] = true
			i++
			continue
		}
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.used++
		p.has = true
		close(p.granted)
	}
}

// compare orders two places; equal ones keep the order in which they came.
func compare(a, b *Place) int {
	switch {
	case a.priority != b.priority:
		return b.priority - a.priority
	case a.order > b.order:
		return 1
	default:
		return -1
	}
}
