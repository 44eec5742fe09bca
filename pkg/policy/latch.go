package policy

import (
	"cmp"
	"time"

	"github.com/pointsman/pointsman/pkg/signal"
)

// LatchSpec declares a latch: a truth value that follows a fact of a pool with hysteresis. It goes on when the fact has
// crossed Enter, and off when it has crossed Leave, for as long and in as many observations as each says; between the two
// it stays as it is. Rules test it by its name.
//
// Its state is a fold over the signals alone, by the time of observation: neither the clock of a router nor what a router
// has in flight moves it, so that all routers that read the same signals have the same state.
type LatchSpec struct {
	Name string
	// Watch is the name of the fact, Pool and Fact what it is.
	Watch string
	Pool  string
	Fact  PoolFact
	Enter Edge
	Leave Edge
	// AbsentAfter is how long without an observation makes the latch missing. KeepFor is how long the latch keeps its state
	// while nothing confirms it: after that it is missing too, so that the state never depends on what is older.
	AbsentAfter time.Duration
	KeepFor     time.Duration
	Line        int

	column int
	// implied says that it stands in the policy by another name, so that nobody has to test it.
	implied bool
}

// Edge is one side of a latch.
type Edge struct {
	Op     Op
	Number float64
	// Threshold is the named threshold that Number is the value of.
	Threshold string
	// Hold is how long, and Samples in how many observations in a row, the fact must have been there.
	Hold    time.Duration
	Samples int
}

func (e Edge) holds(n float64) bool {
	switch e.Op {
	case Less:
		return n < e.Number
	case LessEqual:
		return n <= e.Number
	case Greater:
		return n > e.Number
	case GreaterEqual:
		return n >= e.Number
	default:
		return n == e.Number
	}
}

// Latch is the state of a latch at a moment, as a decision uses it.
type Latch struct {
	// Known says that the signals have shown which state it is.
	Known bool `json:"known"`
	On    bool `json:"on"`
	// Since is when it went on or off, At when the fact was last observed, and Value what it was.
	Since time.Time `json:"since,omitzero"`
	At    time.Time `json:"at,omitzero"`
	Value float64   `json:"value"`
}

// At is the latch's fact at a moment: missing while the state is not known, when nothing was observed for too long, and when the last
// observation is as far ahead.
func (s *LatchSpec) At(l Latch, now time.Time) Fact {
	if !l.Known || now.Sub(l.At).Abs() > s.AbsentAfter {
		return Fact{}
	}
	return BoolFact(l.On)
}

// streak counts observations in a row that were beyond one edge.
type streak struct {
	from    time.Time
	samples int
}

func (s *streak) add(at time.Time) {
	if s.samples == 0 {
		s.from = at
	}
	s.samples++
}

func (s *streak) held(e Edge, at time.Time) bool {
	return s.samples >= max(1, e.Samples) && at.Sub(s.from) >= e.Hold
}

// fold is the state of one latch while observations come in.
type fold struct {
	spec         LatchSpec
	state        Latch
	confirmed    time.Time // when the state was last confirmed: the time of the last observation that ended or prolonged a full streak
	enter, leave streak
}

// observe folds one number in. One that is not newer than the last changes nothing. It reports whether the state changed
// beyond its time.
func (f *fold) observe(at time.Time, n float64) {
	if !f.state.At.IsZero() {
		if !at.After(f.state.At) {
			return
		}
		if at.Sub(f.state.At) > f.spec.AbsentAfter {
			*f = fold{spec: f.spec} // what was before the gap says nothing about what is behind it
		}
	}
	f.state.At, f.state.Value = at, n
	if f.spec.Enter.holds(n) {
		f.enter.add(at)
	} else {
		f.enter = streak{}
	}
	if f.spec.Leave.holds(n) {
		f.leave.add(at)
	} else {
		f.leave = streak{}
	}
	switch {
	case f.enter.held(f.spec.Enter, at):
		f.settle(true, at)
	case f.leave.held(f.spec.Leave, at):
		f.settle(false, at)
	case f.state.Known && at.Sub(f.confirmed) > f.spec.KeepFor:
		f.state.Known, f.state.On, f.state.Since = false, false, time.Time{}
	}
}

func (f *fold) settle(on bool, at time.Time) {
	f.confirmed = at
	if !f.state.Known || f.state.On != on {
		f.state.Known, f.state.On, f.state.Since = true, on, at
	}
}

// LatchBook folds observations into the states of a policy's latches. It is not safe for concurrent use.
type LatchBook struct {
	folds []fold
}

// NewLatchBook returns a book for the latches of a policy, with nothing observed.
func NewLatchBook(p *Policy) *LatchBook {
	b := &LatchBook{folds: make([]fold, len(p.Latches))}
	for i, s := range p.Latches {
		b.folds[i].spec = s
	}
	return b
}

// Observe folds one observation in, and reports whether any latch watches it. Observations of one cluster come in the order
// of their time; one that comes late changes nothing.
func (b *LatchBook) Observe(o signal.Observation) bool {
	watched := false
	for i := range b.folds {
		f := &b.folds[i]
		if f.spec.Pool != o.Cluster {
			continue
		}
		if n, at, ok := Watched(o, f.spec.Fact); ok {
			f.observe(at, n)
			watched = true
		}
	}
	return watched
}

// Feed folds one number of a pool's fact in, as Watched has read it.
func (b *LatchBook) Feed(pool string, fact PoolFact, at time.Time, n float64) {
	for i := range b.folds {
		if f := &b.folds[i]; f.spec.Pool == pool && f.spec.Fact == fact {
			f.observe(at, n)
		}
	}
}

// States returns the state of every latch by its name; nil when the policy has none.
func (b *LatchBook) States() map[string]Latch {
	if len(b.folds) == 0 {
		return nil
	}
	out := make(map[string]Latch, len(b.folds))
	for i := range b.folds {
		out[b.folds[i].spec.Name] = b.folds[i].state
	}
	return out
}

// Watched reads a pool's fact off one observation, with the time it was observed. It uses nothing but the observation: where
// nobody predicts a wait, the wait follows from an empty queue, or from the queue and the rate at which it is worked off.
func Watched(o signal.Observation, fact PoolFact) (n float64, at time.Time, ok bool) {
	get := func(name signal.Name) (float64, bool) {
		v := o.Values[name].Amount()
		n, ok := v.Get()
		if ok && at.IsZero() {
			at = v.At
		}
		return n, ok
	}
	n, ok = watched(fact, get)
	return n, cmp.Or(at, o.At).UTC(), ok
}

func watched(fact PoolFact, get func(signal.Name) (float64, bool)) (float64, bool) {
	switch fact {
	case PoolQueueWaitMs:
		if n, ok := get(signal.EstWaitMs); ok {
			return n, true
		}
		queued, ok := get(signal.Queued)
		if !ok || queued == 0 {
			return 0, ok
		}
		rate, ok := get(signal.DonePerSecond)
		if !ok || rate <= 0 {
			return 0, false
		}
		return queued / rate * 1000, true
	case PoolLoad:
		running, ok1 := get(signal.Running)
		queued, ok2 := get(signal.Queued)
		slots, ok3 := get(signal.Slots)
		if !ok1 || !ok2 || !ok3 || slots <= 0 {
			return 0, false
		}
		return (running + queued) / slots, true
	default:
		return get(SignalOf[fact])
	}
}

// SignalOf names the signal that each of a pool's facts comes from. Load is computed from three.
var SignalOf = [poolFacts]signal.Name{
	PoolQueueWaitMs: signal.EstWaitMs, PoolQueued: signal.Queued, PoolRunning: signal.Running, PoolSlots: signal.Slots,
	PoolOldestQueuedMs: signal.OldestQueuedMs, PoolDonePerSecond: signal.DonePerSecond, PoolMemoryUsedBytes: signal.MemoryUsedBytes,
	PoolReadyReplicas: signal.ReadyReplicas, PoolReady: signal.Ready, PoolHealthy: signal.Healthy,
}
