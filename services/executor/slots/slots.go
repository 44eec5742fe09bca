// Package slots knows which attempts hold a slot anywhere, so that caps per cluster, queue and tenant hold across executors.
//
// A slot is a lease bound to an attempt id: it begins with the claim in the ledger of whichever executor made it and ends with
// the end there, or when its Task's deadline has passed. The table is a fold over the ledgers of all partitions, together with
// what this process has granted and not claimed yet. Nobody is asked before a grant, so a cap may be exceeded by grants that
// executors make at the same moment; Take says by how many. Reading the ledgers and standing in line are not done here.
package slots

import (
	"sync"
	"time"

	"github.com/pointsman/pointsman/pkg/ledger"
)

// Want is what an attempt needs a slot for.
type Want struct {
	Attempt string
	Cluster string
	Queue   string
	Tenant  string
}

// Caps are the most attempts at once, all executors together. 0, or no entry, sets no cap.
type Caps struct {
	Cluster map[string]int
	Queue   map[Queue]int
	Tenant  map[string]int
	// AnyTenant is the cap of a tenant without one of its own.
	AnyTenant int
}

// Queue names a queue of a cluster.
type Queue struct{ Cluster, Name string }

// Any reports whether there is a cap at all.
func (c Caps) Any() bool {
	return len(c.Cluster) > 0 || len(c.Queue) > 0 || len(c.Tenant) > 0 || c.AnyTenant > 0
}

// place is something that is capped.
type place struct{ kind, cluster, name string }

// places are those that an attempt takes a slot of, with their caps.
func (c Caps) places(w Want) (out [3]place, caps [3]int) {
	out = [3]place{{"cluster", w.Cluster, ""}, {"queue", w.Cluster, w.Queue}, {"tenant", "", w.Tenant}}
	tenant, ok := c.Tenant[w.Tenant]
	if !ok {
		tenant = c.AnyTenant
	}
	return out, [3]int{c.Cluster[w.Cluster], c.Queue[Queue{w.Cluster, w.Queue}], tenant}
}

// lease is one attempt's slot.
type lease struct {
	want Want
	// here means that this process has granted it and the attempt is on its way; claimed that its claim was read in a ledger.
	here, claimed bool
	// over means that it ended here and its end has not been read in the ledger yet: it holds nothing any more.
	over  bool
	until time.Time // of a claim: its Task's deadline
}

// counts are how many leases a place has, and how many of those are granted here and not seen in a ledger yet.
type counts struct{ held, unseen int }

// owner is who has a partition's ledger.
type owner struct {
	name  string
	epoch int64
}

// Table is the fold. It may be used from any goroutine.
type Table struct {
	mu     sync.Mutex
	caps   Caps
	ready  bool
	leases map[string]*lease
	counts map[place]counts
	owners map[int32]owner
	// executors is how many different ones own a partition.
	executors int
}

// New makes an empty table, which grants nothing before it is Ready.
func New(caps Caps) *Table {
	return &Table{caps: caps, leases: map[string]*lease{}, counts: map[place]counts{}, owners: map[int32]owner{}, executors: 1}
}

// Ready says that the ledgers have been read up to now, so that what others hold is known.
func (t *Table) Ready() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ready = true
}

// Take grants a slot if every cap allows it. An attempt that has one already keeps it.
//
// What others have granted in this moment is not known. So that executors do not all give away the same free slots, each has at
// most its share of them on the way, and one at least: with n executors that have read the ledgers up to date a cap is exceeded by
// n-1 at most. What others have claimed and this process has not read yet, a few milliseconds' worth, comes on top. A cap that is
// never exceeded would need one more acknowledged write per attempt, to a partition that all share.
func (t *Table) Take(w Want) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.leases[w.Attempt]
	if l != nil && l.here {
		return true
	}
	if l == nil || !l.holds() {
		if !t.ready {
			return false
		}
		places, caps := t.caps.places(w)
		n := t.executors
		for i, p := range places {
			c := t.counts[p]
			if caps[i] <= 0 {
				continue
			}
			free := caps[i] - (c.held - c.unseen)
			if c.held >= caps[i] || (n > 1 && c.unseen >= max(1, free/n)) {
				return false
			}
		}
	}
	if l == nil {
		l = &lease{want: w}
		t.leases[w.Attempt] = l
	}
	t.change(l, func() { l.here, l.over = true, false })
	return true
}

// Free gives a grant back. ended means that the attempt is over at the engine too, or never got there; otherwise its claim goes
// on holding the slot, for its next owner.
func (t *Table) Free(attempt string, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.leases[attempt]
	if l == nil || !l.here {
		return
	}
	t.change(l, func() { l.here, l.over = false, l.over || ended })
	if !l.claimed && !ended {
		delete(t.leases, attempt) // else it is kept until its end is read: a claim that is read before that must count for nothing
	}
}

// Claimed folds a claim in.
func (t *Table) Claimed(partition int32, r ledger.Record, w Want) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.valid(partition, r) {
		return
	}
	l := t.leases[w.Attempt]
	if l == nil {
		l = &lease{want: w}
		t.leases[w.Attempt] = l
	}
	t.change(l, func() { l.claimed, l.until = true, r.Deadline })
}

// Ended folds an end in.
func (t *Table) Ended(partition int32, r ledger.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.leases[r.Key]; l != nil && t.valid(partition, r) {
		t.change(l, func() { l.claimed, l.here = false, false })
		delete(t.leases, r.Key)
	}
}

// Leased folds a lease of a partition in: what an earlier owner writes behind it is void.
func (t *Table) Leased(partition int32, r ledger.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.owners[partition]; r.Epoch > o.epoch {
		t.own(partition, owner{r.Owner, r.Epoch})
	}
}

// valid says whether a claim or an end is its owner's to write. Of a partition whose lease lies before what was read the first
// writer is believed.
func (t *Table) valid(partition int32, r ledger.Record) bool {
	o, known := t.owners[partition]
	if !known || r.Epoch > o.epoch {
		o = owner{r.Owner, r.Epoch}
		t.own(partition, o)
	}
	return o.epoch == r.Epoch && o.name == r.Owner
}

// Expire drops leases whose Task's deadline passed some time ago: whoever held them is gone, and nobody has ended them. A live
// query keeps its slot until its deadline, and is stopped then.
func (t *Table) Expire(now time.Time, grace time.Duration) (dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, l := range t.leases {
		switch {
		case l.here:
			continue
		case l.until.IsZero(): // it ended here, and what the ledger says of it is still to be read
			l.until = now
			continue
		case now.Before(l.until.Add(grace)):
			continue
		}
		if l.holds() {
			dropped++
		}
		t.change(l, func() { l.claimed = false })
		delete(t.leases, id)
	}
	return dropped
}

// Held is how many leases a cluster has, in all executors.
func (t *Table) Held(cluster string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[place{"cluster", cluster, ""}].held
}

func (t *Table) own(partition int32, o owner) {
	t.owners[partition] = o
	names := map[string]struct{}{}
	for _, o := range t.owners {
		names[o.name] = struct{}{}
	}
	t.executors = len(names)
}

func (l *lease) holds() bool { return !l.over && (l.here || l.claimed) }

func (l *lease) unseen() bool { return l.holds() && l.here && !l.claimed }

// change changes a lease and keeps the counts.
func (t *Table) change(l *lease, f func()) {
	heldBefore, unseenBefore := l.holds(), l.unseen()
	f()
	dh, du := diff(heldBefore, l.holds()), diff(unseenBefore, l.unseen())
	if dh == 0 && du == 0 {
		return
	}
	places, _ := t.caps.places(l.want)
	for _, p := range places {
		c := t.counts[p]
		c.held, c.unseen = c.held+dh, c.unseen+du
		if c == (counts{}) {
			delete(t.counts, p)
		} else {
			t.counts[p] = c
		}
	}
}

func diff(before, after bool) int {
	switch {
	case !before && after:
		return 1
	case before && !after:
		return -1
	default:
		return 0
	}
}
