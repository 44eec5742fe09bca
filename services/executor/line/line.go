// Package line is the queue in front of one cluster: a number of slots in this process, and an order for those who wait for one.
//
// Higher priority goes first, then the lower order number, which is the order in which Tasks came: one that is tried again does
// not start over behind those that came later. Caps that hold across processes are asked for, and the answer comes later; whoever
// waits for it takes no slot here yet, and does not hold up the others. Only who was allowed a slot once and found none left here has one
// kept until it is known what it is told next: those behind it, who need not ask, would always be quicker. A slot belongs to the attempt that holds its Place and
// comes back with Leave, which every way out of an attempt calls; nothing here expires, because nothing outlives its process.
// Cancelling a query needs no slot.
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

// Ask is what else has to allow a slot; nil asks nobody. Its functions are called with the line locked and must not call back.
type Ask struct {
	// Key is what the answer depends on. Of each key there are never more asks under way than slots are free here.
	Key string
	// Needed says whether anybody has to be asked.
	Needed func() bool
	// Send asks. What comes of it is told by the place's Answer, and by Waits if that takes its time.
	Send func(p *Place)
	// Return gives back what was allowed when no slot is free here any more.
	Return func()
}

// Place is one attempt's place in a line, or its slot.
type Place struct {
	line     *Line
	priority int
	order    uint64
	ask      *Ask
	granted  chan struct{}
	asked    bool // the answer is to come
	lost     bool // it was allowed a slot when none was left here; what it is told next is not known
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
		if p.asked {
			l.grant() // the next of its key may be asked for
		}
		return
	}
	l.used--
	l.grant()
}

// Asked says that others have been asked for the slot and that it has not been granted yet.
func (p *Place) Asked() bool {
	p.line.mu.Lock()
	defer p.line.mu.Unlock()
	return p.asked && !p.has && !p.left
}

// Answer says that what was asked for is allowed.
func (p *Place) Answer() {
	l := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case p.left || p.has || !p.asked: // whoever leaves gives back what was asked for
	case l.used < l.slots:
		l.give(slices.Index(l.waiting, p))
		l.grant()
	default: // others took the last slot meanwhile
		p.asked, p.lost = false, true
		p.ask.Return()
	}
}

// Waits says that the answer takes its time: no slot is kept for it.
func (p *Place) Waits() {
	l := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.lost {
		p.lost = false
		l.grant()
	}
}

// Resize changes the number of slots. Of fewer than are taken none is given before as many have come back.
func (l *Line) Resize(slots int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots = slots
	l.grant()
}

// Load is how many slots there are, how many are taken, and how many wait.
func (l *Line) Load() (slots, used, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slots, l.used, len(l.waiting)
}

func (l *Line) grant() {
	asked, kept := map[string]int{}, 0
	for i := 0; l.used+kept < l.slots && i < len(l.waiting); {
		p := l.waiting[i]
		switch {
		case p.ask == nil:
			l.give(i)
			continue
		case asked[p.ask.Key] >= l.slots-l.used:
		case !p.asked && !p.ask.Needed():
			l.give(i)
			continue
		default:
			asked[p.ask.Key]++
			if !p.asked {
				p.asked = true
				p.ask.Send(p)
			}
			if p.lost {
				kept = 1
			}
		}
		i++
	}
}

func (l *Line) give(i int) {
	p := l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.used++
	p.has = true
	close(p.granted)
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
