package stream

import (
	"cmp"
	"slices"
)

// tracker knows which delivered records of one partition are finished, and how far from the start all of them are. Only that prefix
// may be committed: a committed offset says that everything below it is done (franz-go's own marks leave holes).
//
// It goes by the records that were delivered, not by numbers: offsets of aborted transactions and of compacted records never come.
// What was delivered and is not among the items is finished, so that records which wait behind a slow one cost no memory.
type tracker struct {
	items     []tracked // not finished, ordered by offset, with finished ones among them until compact
	open      int       // items that are not finished
	next      int64     // first offset not delivered yet
	last      int32     // epoch of the newest delivered record
	epoch     int32     // of the last finished record of the prefix
	prefix    int64     // everything below is finished
	committed int64     // what the group's offset is, -1 if there is none
	rewound   bool      // the group's offset is behind the end of the log
	held      int64     // bytes of the records that are not finished
}

type tracked struct {
	offset int64
	from   int64 // where the record delivered before it ended
	bytes  int64
	epoch  int32
	before int32 // epoch of the record delivered before it
	done   bool
}

func newTracker(committed, next int64) *tracker {
	return &tracker{next: next, last: -1, prefix: max(committed, 0), committed: committed, epoch: -1}
}

// deliver notes a record that is about to be handed on. It is false for one that was handed on before.
func (t *tracker) deliver(offset int64, epoch int32, bytes int) bool {
	if offset < t.next {
		return false
	}
	t.items = append(t.items, tracked{offset: offset, from: t.next, epoch: epoch, before: t.last, bytes: int64(bytes)})
	t.open++
	t.held += int64(bytes)
	t.next, t.last = offset+1, epoch
	return true
}

// done finishes a record. Unknown and repeated ones change nothing, and neither does one that the log has lost since: another record
// may lie at its offset, of a later epoch.
func (t *tracker) done(offset int64, epoch int32) {
	i, ok := t.find(offset)
	if !ok || t.items[i].done || t.items[i].epoch != epoch {
		return
	}
	t.finish(i)
	t.compact()
}

// find returns where an offset is among the items, or would be.
func (t *tracker) find(offset int64) (int, bool) {
	return slices.BinarySearchFunc(t.items, offset, func(it tracked, o int64) int { return cmp.Compare(it.offset, o) })
}

func (t *tracker) finish(i int) {
	t.items[i].done = true
	t.held -= t.items[i].bytes
	t.open--
}

// compact moves the prefix on, and frees what is finished whenever that is as much as what is not.
func (t *tracker) compact() {
	n := 0
	for n < len(t.items) && t.items[n].done {
		n++
	}
	t.items = t.items[n:]
	switch {
	case len(t.items) > 0:
		if head := t.items[0]; head.from > t.prefix {
			t.prefix, t.epoch = head.from, head.before
		}
	case t.next > t.prefix:
		t.prefix, t.epoch = t.next, t.last
	}
	if len(t.items)-t.open > max(1024, t.open) {
		t.items = slices.Clone(slices.DeleteFunc(t.items, func(it tracked) bool { return it.done }))
	}
}

// doneBelow finishes everything below an offset.
func (t *tracker) doneBelow(next int64) {
	end, _ := t.find(next)
	for i := range t.items[:end] {
		if !t.items[i].done {
			t.finish(i)
		}
	}
	if end > 0 {
		t.compact()
	}
	t.prefix = max(t.prefix, next)
}

// rewind goes back to an offset, because the log lost what it had from there on. What comes now is new, at offsets that were there before.
func (t *tracker) rewind(to int64) {
	if to >= t.next {
		return
	}
	keep, _ := t.find(to)
	for i := keep; i < len(t.items); i++ {
		if !t.items[i].done {
			t.finish(i)
		}
	}
	t.items = t.items[:keep]
	t.next, t.last = to, -1
	if t.prefix > to {
		t.prefix, t.epoch = to, -1
	}
	if t.committed > to {
		t.committed, t.rewound = to, true
	}
	t.compact()
}

// span is how many delivered records are not finished.
func (t *tracker) span() int { return t.open }

// behind is how far a record that is not finished lies back, which is how much is read again if the process dies.
func (t *tracker) behind() int64 {
	if len(t.items) == 0 {
		return 0
	}
	return t.next - t.items[0].offset
}

// toCommit is false if the group's offset is up to date. It never goes back, unless the log did.
func (t *tracker) toCommit() (offset int64, epoch int32, ok bool) {
	return t.prefix, t.epoch, t.rewound || t.prefix > t.committed && (t.committed >= 0 || t.prefix > 0)
}
