// Package line is the queue in front of one cluster: a number of slots, and an order for those who wait for one.
//
// Higher priority goes first, then the lower order number, which is the order in which Tasks came: one that is tried again does
// not start over behind those that came later. A slot belongs to the attempt that holds its Place and comes back with
// Leave, which every way out of an attempt calls; nothing here expires, because nothing outlives its process. Cancelling a
// query needs no slot.
package line

import (
	"container/heap"
	"sync"
)

// Line is the queue of one cluster.
type Line struct {
	mu      sync.Mutex
	slots   int
	used    int
	waiting places
}

// New makes a line with a number of slots.
func New(slots int) *Line { return &Line{slots: slots} }

// Place is one attempt's place in a line, or its slot.
type Place struct {
	line     *Line
	priority int
	order    uint64
	index    int // in the heap, -1 outside of it
	granted  chan struct{}
	left     bool
}

// Join stands in line. The slot may be granted at once.
func (l *Line) Join(priority int, order uint64) *Place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &Place{line: l, priority: priority, order: order, granted: make(chan struct{})}
	heap.Push(&l.waiting, p)
	l.grant()
	return p
}

// Granted is closed once the place has a slot.
func (p *Place) Granted() <-chan struct{} { return p.granted }

// Position is how many are in front, counted from 1 for the next in line; 0 means that it has its slot, or has left.
func (p *Place) Position() int {
	p.line.mu.Lock()
	defer p.line.mu.Unlock()
	if p.index < 0 {
		return 0
	}
	n := 1
	for _, other := range p.line.waiting {
		if other.before(p) {
			n++
		}
	}
	return n
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
	if p.index >= 0 {
		heap.Remove(&l.waiting, p.index)
		return
	}
	l.used--
	l.grant()
}

// Load is how many slots there are, how many are taken, and how many wait.
func (l *Line) Load() (slots, used, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slots, l.used, len(l.waiting)
}

func (l *Line) grant() {
	for l.used < l.slots && len(l.waiting) > 0 {
		p := heap.Pop(&l.waiting).(*Place)
		l.used++
		close(p.granted)
	}
}

func (p *Place) before(other *Place) bool {
	if p.priority != other.priority {
		return p.priority > other.priority
	}
	return p.order < other.order
}

// places is a heap of those who wait.
type places []*Place

func (h places) Len() int           { return len(h) }
func (h places) Less(i, j int) bool { return h[i].before(h[j]) }
func (h places) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is part of heap.Interface.
func (h *places) Push(x any) {
	p := x.(*Place)
	p.index = len(*h)
	*h = append(*h, p)
}

// Pop is part of heap.Interface.
func (h *places) Pop() any {
	old := *h
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	p.index = -1
	return p
}
