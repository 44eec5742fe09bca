package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Latches fold the latches of a policy again, from the signals of the recorded inputs in the order of their time. A router folds
// every observation; here are those that some decision saw, so where hours pass between decisions a latch may come out
// otherwise than it would have.
type Latches struct {
	policy *policy.Policy
	seen   map[seenAt]bool
	obs    []signal.Observation
	// states are those after each observation, once folded.
	states []map[string]policy.Latch
	folded bool
}

// seenAt names an observation: which cluster's facts, and as of when the newest of them was.
type seenAt struct {
	cluster string
	at      int64
}

// NewLatches returns the latches of a policy; nil when it has none, so that there is nothing to fold.
func NewLatches(p *policy.Policy) *Latches {
	if p == nil || len(p.Latches) == 0 {
		return nil
	}
	return &Latches{policy: p, seen: map[seenAt]bool{}}
}

// Note takes the signals of an input in, in any order.
func (l *Latches) Note(in route.Input) {
	for _, spec := range l.policy.Latches {
		values := in.Signals[spec.Pool]
		o := signal.Observation{Cluster: spec.Pool, Values: values}
		for _, v := range values {
			if v.At.After(o.At) {
				o.At = v.At
			}
		}
		key := seenAt{spec.Pool, o.At.UnixNano()}
		if len(values) > 0 && !l.seen[key] {
			l.seen[key] = true
			l.obs = append(l.obs, o)
		}
	}
	l.folded = false
}

func (l *Latches) fold() {
	slices.SortStableFunc(l.obs, func(a, b signal.Observation) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Cluster, b.Cluster))
	})
	book := policy.NewLatchBook(l.policy)
	l.states = make([]map[string]policy.Latch, len(l.obs))
	for i, o := range l.obs {
		book.Observe(o)
		l.states[i] = book.States()
	}
	l.folded = true
}

// at returns the latches for an input that was decided by own: those of the record where both policies declare a latch alike,
// the folded ones where they don't.
func (l *Latches) at(in route.Input, own *policy.Policy) map[string]policy.Latch {
	if !l.folded {
		l.fold()
	}
	out := map[string]policy.Latch{}
	states := l.before(in.Now)
	for _, spec := range l.policy.Latches {
		recorded, ok := in.Latches[spec.Name]
		if !ok || own == nil || !declaredAlike(own, spec) {
			recorded, ok = states[spec.Name]
		}
		if ok {
			out[spec.Name] = recorded
		}
	}
	return out
}

// before returns the states after the last observation up to a moment.
func (l *Latches) before(now time.Time) map[string]policy.Latch {
	i, _ := slices.BinarySearchFunc(l.obs, now, func(o signal.Observation, t time.Time) int {
		if o.At.After(t) {
			return 1
		}
		return -1
	})
	if i == 0 {
		return nil
	}
	return l.states[i-1]
}

func declaredAlike(p *policy.Policy, spec policy.LatchSpec) bool {
	return slices.ContainsFunc(p.Latches, func(o policy.LatchSpec) bool {
		return o.Name == spec.Name && o.Watch == spec.Watch && o.Enter == spec.Enter && o.Leave == spec.Leave &&
			o.AbsentAfter == spec.AbsentAfter && o.KeepFor == spec.KeepFor
	})
}
