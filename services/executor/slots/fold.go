// Package slots says which attempts hold one of the slots that all executors share, so that caps per cluster, queue and tenant
// hold across executors.
//
// It is a fold over the topic `slots`, whose one partition puts all that executors ask for into one order. Whoever folds the same
// records comes to the same grants, so nobody has to be asked, and no cap is exceeded: not by executors that ask at the same
// moment, not by one that stood still, not by one whose partitions have another owner. Time is the append time of the records. An
// executor acts on an ask when it has read it back and it holds. Writing, reading and standing in line are not done here.
package slots

import (
	"time"

	"github.com/pointsman/pointsman/pkg/event"
)

// Fold is the state of the slots up to a position in the log. It is not safe for concurrent use.
//
// An ask waits until every cap of its places has room, and those that wait are looked at by priority, then by when their Tasks came.
// One whose places have no room holds up nobody who wants other places. What it wants is counted from the grant to its free. A
// lowered cap takes nothing away, and grants nothing before fewer hold a slot than it allows.
//
// The records of a partition's owner count until a later owner of it writes: epochs are those of the partition's ledger, where
// a claim of the old owner is void too. Of one owner the newest ask of an attempt counts, and a free counts only for the ask
// that it names, or for one of an earlier owner.
type Fold struct {
	next    int64
	at      time.Time
	caps    event.Caps
	epochs  map[int32]int64
	entries map[string]*entry
	held    map[place]int
	waiting queueSet
	expires time.Time // nothing expires before this; zero if nothing does
	granted []Grant
}

// entry is an attempt that has a slot or waits for one.
type entry struct {
	event.SlotEntry
}

// Grant is an ask that came to hold a slot.
type Grant struct {
	AttemptID string
	Owner     string
	Seq       int64
}

// New is the fold of an empty log.
func New() *Fold {
	return &Fold{epochs: map[int32]int64{}, entries: map[string]*entry{}, held: map[place]int{}, waiting: queueSet{}}
}

// Apply folds one record in and gives the asks that hold a slot from then on. at is the broker's append time. Records before Next are
// passed over.
func (f *Fold) Apply(offset int64, at time.Time, r event.SlotRecord) []Grant {
	if offset < f.next {
		return nil
	}
	f.granted = nil
	f.pass(offset, at)
	if r.Kind == event.SlotCaps {
		if r.Caps != nil {
			f.setCaps(*r.Caps)
		}
		return f.granted
	}
	if r.Epoch < 1 || r.Epoch < f.epochs[r.Partition] { // not a partition's, or one that has a newer owner
		return f.granted
	}
	switch r.Kind {
	case event.SlotAsk, event.SlotRun:
		f.epochs[r.Partition] = r.Epoch
		f.ask(r)
	case event.SlotFree:
		f.free(r)
	case event.SlotTake:
		f.epochs[r.Partition] = r.Epoch
		f.take(r)
	case event.SlotCaps, event.SlotTick, event.SlotState: // they change nothing here
	}
	return f.granted
}

// Skip steps over a value that is not a record.
func (f *Fold) Skip(offset int64, at time.Time) []Grant {
	if offset < f.next {
		return nil
	}
	f.granted = nil
	f.pass(offset, at)
	return f.granted
}

// pass moves on to a record, and to its time.
func (f *Fold) pass(offset int64, at time.Time) {
	f.next = offset + 1
	if at.After(f.at) {
		f.at = at
	}
	if f.expires.IsZero() || f.at.Before(f.expires) {
		return
	}
	f.expires = time.Time{}
	freed := false
	for id, e := range f.entries {
		if e.Expires.After(f.at) {
			f.sooner(e.Expires)
			continue
		}
		freed = true
		f.remove(id)
	}
	if freed {
		f.admit()
	}
}

// sooner notes that something expires.
func (f *Fold) sooner(at time.Time) {
	if f.expires.IsZero() || at.Before(f.expires) {
		f.expires = at
	}
}

func (f *Fold) ask(r event.SlotRecord) {
	if r.AttemptID == "" || !r.Expires.After(f.at) {
		return
	}
	e := f.entries[r.AttemptID]
	if e != nil && e.Owner == r.Owner && e.Epoch == r.Epoch && e.Seq >= r.Seq {
		return // a repeat
	}
	held := e != nil && e.Held // it goes on holding what it holds, under a new name
	f.remove(r.AttemptID)
	e = &entry{event.SlotEntry{Owner: r.Owner, Seq: r.Seq, Partition: r.Partition, Epoch: r.Epoch, SlotWant: r.SlotWant}}
	f.entries[r.AttemptID] = e
	f.sooner(e.Expires)
	if held || r.Kind == event.SlotRun {
		f.hold(e)
	} else {
		f.waiting.add(e)
	}
	f.admit()
}

func (f *Fold) free(r event.SlotRecord) {
	e := f.entries[r.AttemptID]
	if e == nil || e.Partition != r.Partition || (r.Epoch == e.Epoch && (r.Owner != e.Owner || r.Seq < e.Seq)) {
		return
	}
	f.remove(r.AttemptID)
	f.admit()
}

// take drops what earlier owners of a partition asked for. What they left at an engine its new owner has said before.
func (f *Fold) take(r event.SlotRecord) {
	for id, e := range f.entries {
		if e.Partition == r.Partition && e.Epoch < r.Epoch {
			f.remove(id)
		}
	}
	f.admit()
}

func (f *Fold) setCaps(c event.Caps) {
	f.caps = c
	f.admit()
}

func (f *Fold) hold(e *entry) {
	e.Held = true
	where, _ := places(f.caps, e.SlotWant)
	for _, p := range where {
		f.held[p]++
	}
	f.granted = append(f.granted, Grant{e.AttemptID, e.Owner, e.Seq})
}

func (f *Fold) remove(id string) {
	e := f.entries[id]
	switch {
	case e == nil:
		return
	case e.Held:
		where, _ := places(f.caps, e.SlotWant)
		for _, p := range where {
			if f.held[p]--; f.held[p] == 0 {
				delete(f.held, p)
			}
		}
	default:
		f.waiting.remove(e)
	}
	delete(f.entries, id)
}

// admit gives out what there is room for.
func (f *Fold) admit() {
	for {
		var first *entry
		for _, q := range f.waiting {
			if e := q[0]; f.room(e.SlotWant) && (first == nil || compare(e, first) < 0) {
				first = e
			}
		}
		if first == nil {
			return
		}
		f.waiting.remove(first)
		f.hold(first)
	}
}

func (f *Fold) room(w event.SlotWant) bool {
	where, caps := places(f.caps, w)
	for i, p := range where {
		if caps[i] > 0 && f.held[p] >= caps[i] {
			return false
		}
	}
	return true
}
