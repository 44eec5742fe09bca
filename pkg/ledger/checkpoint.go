package ledger

import "time"

// Forget drops the Tasks that have ended and whose deadline lies before the given moment of the broker's clock, and returns how many.
// A Task without an end is kept however old it is: somebody still has to end it, and forgetting it would lose it.
//
// The caller leaves some slack (a minute) between the broker's present and the moment it passes, because append times of two
// leaders may run apart and a claim is refused by its own append time alone.
func (f *Fold) Forget(before time.Time) int {
	n := 0
	for id, t := range f.tasks {
		if t.final == nil || !t.deadline.Before(before) {
			continue
		}
		for _, a := range t.attempts {
			delete(f.keys, a.key)
		}
		delete(f.tasks, id)
		n++
	}
	if f.state != nil {
		n += f.state.Forget(before)
	}
	return n
}

// Checkpoint returns the oldest position that a new fold must start from to know every Task this one remembers. A fold that starts
// there gives the same verdicts, and holds the same state, for each of those Tasks.
//
// A Task that has ended counts until its deadline, however long that is: before it, nothing but the record of the end keeps a repeated
// decision from being claimed and run again. So the longest timeout in use says how much of the log a take-over reads.
func (f *Fold) Checkpoint() Anchor {
	c := f.here(f.next)
	for _, t := range f.tasks {
		if t.first.Offset < c.Offset {
			c = t.first
		}
	}
	if f.state != nil {
		if a, ok := f.state.Oldest(); ok && a.Offset < c.Offset {
			c = a
		}
	}
	return c
}
