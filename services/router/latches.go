package router

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/signal"
)

// latches folds the signals into the states of the policy's latches. It remembers what was observed, so that a policy that
// is loaded later has the states that it would have had from the start.
type latches struct {
	mu     sync.Mutex
	book   *policy.LatchBook
	memory map[watch]*series
	// states is shared with decisions and never changes: an observation makes a new one.
	states map[string]policy.Latch
	// changed is told of every latch that goes on, off, or is not known any more.
	changed func(name string, now policy.Latch)
}

// watch is a fact of a pool that a latch may follow.
type watch struct {
	pool string
	fact policy.PoolFact
}

// series is what was observed of one fact, in the order in which it was read.
type series struct {
	at     []time.Time
	number []float64
}

// remembered is how long a series goes back: longer than any latch may depend on it.
const remembered = policy.LongestKeep + 5*time.Minute

func newLatches(changed func(name string, now policy.Latch)) *latches {
	return &latches{memory: map[watch]*series{}, changed: changed}
}

// observe folds an observation in.
func (l *latches) observe(o signal.Observation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for fact := range policy.PoolFacts {
		w := watch{o.Cluster, policy.PoolFact(fact)}
		n, at, ok := policy.Watched(o, w.fact)
		if !ok {
			continue
		}
		s := l.memory[w]
		if s == nil {
			s = &series{}
			l.memory[w] = s
		}
		s.add(at, n)
	}
	if l.book != nil && l.book.Observe(o) {
		l.publish(l.book.States())
	}
}

func (s *series) add(at time.Time, n float64) {
	s.at, s.number = append(s.at, at), append(s.number, n)
	// Half is dropped at a time, so that it is seldom done.
	if half := len(s.at) / 2; half >= 512 && at.Sub(s.at[half]) > remembered {
		s.at, s.number = slices.Clone(s.at[half:]), slices.Clone(s.number[half:])
	}
}

// use puts a policy in force, and its latches with it: they are folded from what is remembered.
func (l *latches) use(p *policy.Policy, inForce *atomic.Pointer[policy.Policy]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer inForce.Store(p)
	l.book, l.states = nil, nil
	if len(p.Latches) == 0 {
		return
	}
	l.book = policy.NewLatchBook(p)
	for w, s := range l.memory {
		for i, at := range s.at {
			l.book.Feed(w.pool, w.fact, at, s.number[i])
		}
	}
	l.publish(l.book.States())
}

func (l *latches) publish(states map[string]policy.Latch) {
	for name, now := range states {
		if before, ok := l.states[name]; !ok || before.Known != now.Known || before.On != now.On {
			l.changed(name, now)
		}
	}
	l.states = states
}

// view returns the policy in force and the states of its latches, which are only to be read: never those of another policy, which
// may have latches of the same names.
func (l *latches) view(inForce *atomic.Pointer[policy.Policy]) (*policy.Policy, map[string]policy.Latch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return inForce.Load(), l.states
}
