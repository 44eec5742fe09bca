package slots

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
)

// Next is the offset of the first record that the fold has not seen.
func (f *Fold) Next() int64 { return f.next }

// At is the newest append time seen: the clock by which slots expire.
func (f *Fold) At() time.Time { return f.at }

// Caps are those in force.
func (f *Fold) Caps() event.Caps { return f.caps }

// Held is how many attempts hold a slot of a cluster.
func (f *Fold) Held(name string) int { return f.held[place{cluster, name, ""}] }

// Len is how many hold a slot or wait for one.
func (f *Fold) Len() int { return len(f.entries) }

// Overdue reports whether something expires once a record of that time is in the log. It may be wrong about what is gone by now.
func (f *Fold) Overdue(now time.Time) bool { return !f.expires.IsZero() && !now.Before(f.expires) }

// Entry is what an attempt has, or waits for.
func (f *Fold) Entry(attemptID string) (e event.SlotEntry, ok bool) {
	if e := f.entries[attemptID]; e != nil {
		return e.SlotEntry, true
	}
	return e, false
}

// Why names the places that have no room for an attempt.
func (f *Fold) Why(w event.SlotWant) (out []Full) {
	where, caps := places(f.caps, w)
	for i, p := range where {
		if caps[i] > 0 && f.held[p] >= caps[i] {
			out = append(out, Full{string(p.kind), cmp.Or(p.name, p.cluster), f.held[p], caps[i]})
		}
	}
	return out
}

// Snapshot is the state as data.
func (f *Fold) Snapshot() event.SlotsSnapshot {
	s := event.SlotsSnapshot{Next: f.next, At: f.at, Caps: f.caps, Epochs: maps.Clone(f.epochs)}
	for _, id := range slices.Sorted(maps.Keys(f.entries)) {
		s.Entries = append(s.Entries, f.entries[id].SlotEntry)
	}
	return s
}

// From is the fold that a snapshot was taken of. It gives the grants that hold in it.
func From(s event.SlotsSnapshot) *Fold {
	f := New()
	f.next, f.at, f.caps = s.Next, s.At, s.Caps
	maps.Copy(f.epochs, s.Epochs)
	for _, one := range s.Entries {
		e := &entry{one}
		f.entries[e.AttemptID] = e
		f.sooner(e.Expires)
		if e.Held {
			f.hold(e)
		} else {
			f.waiting.add(e)
		}
	}
	f.granted = nil
	return f
}
