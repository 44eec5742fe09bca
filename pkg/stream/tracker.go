package stream

import "slices"

// tracker knows which delivered records of one partition are finished, and how far from the start all of them are. Only that prefix
// may be committed: a committed offset says that everything below it is done (franz-go's own marks leave holes).
//
// It goes by the records that were delivered, not by numbers: offsets of aborted transactions and of compacted records never come.
type tracker struct {
	items     []tracked // unfinished prefix first, ordered by offset
	head      int
	next      int64 // first offset not delivered yet
	epoch     int32 // of the last finished record of the prefix
	prefix    int64 // everything below is finished
	committed int64 // what the group's offset is, -1 if there is none
	held      int64 // bytes of the records that are not finished
}

type tracked struct {
	offset int64
	bytes  int64
	epoch  int32
	done   bool
}

func newTracker(committed, next int64) *tracker {
	return &tracker{next: next, prefix: max(committed, 0), committed: committed, epoch: -1}
}

// deliver notes a record that is about to be handed on. It is false for one that was handed on before.
func (t *tracker) deliver(offset int64, epoch int32, bytes int) bool {
	if offset < t.next {
		return false
	}
	t.items = append(t.items, tracked{offset: offset, epoch: epoch, bytes: int64(bytes)})
	t.held += int64(bytes)
	t.next = offset + 1
	return true
}

// done finishes a record. Unknown and repeated offsets change nothing.
func (t *tracker) done(offset int64) {
	open := t.items[t.head:]
	i, ok := slices.BinarySearchFunc(open, offset, func(it tracked, o int64) int { return int(min(1, max(-1, it.offset-o))) })
	if !ok || open[i].done {
		return
	}
	open[i].done = true
	t.held -= open[i].bytes
	for t.head < len(t.items) && t.items[t.head].done {
		t.prefix, t.epoch = t.items[t.head].offset+1, t.items[t.head].epoch
		t.head++
	}
	if t.head > 1024 && t.head > len(t.items)/2 {
		t.items = slices.Clone(t.items[t.head:])
		t.head = 0
	}
}

// doneBelow finishes everything below an offset.
func (t *tracker) doneBelow(next int64) {
	for _, it := range slices.Clone(t.items[t.head:]) {
		if it.offset < next {
			t.done(it.offset)
		}
	}
	t.prefix = max(t.prefix, next)
}

// span is how many delivered records are not finished, or wait behind one that is not.
func (t *tracker) span() int { return len(t.items) - t.head }

// toCommit is false if the group's offset is up to date. It never goes back.
func (t *tracker) toCommit() (offset int64, epoch int32, ok bool) {
	return t.prefix, t.epoch, t.prefix > t.committed && (t.committed >= 0 || t.prefix > 0)
}
