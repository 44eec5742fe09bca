// Package demand folds decisions, attempts and outcomes into the one thing a pool's size depends on: which Tasks wait for
// it or run on it now.
//
// It counts Tasks, not records and not offsets: transaction markers, repeats and a group without commits change nothing.
// A Task is open on a cluster from its decision to its outcome, and moves with its attempts. What a pool should do about
// it is pkg/capacity's.
package demand

import (
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/event"
)

// Options bound the fold.
type Options struct {
	// Grace is how long after its deadline a Task without an outcome still counts: an executor that lives ends it at the
	// deadline, one that comes back soon after.
	Grace time.Duration
	// Unended is how long a Task counts of which only attempts were seen, so that its deadline is not known.
	Unended time.Duration
	// KeepEnded is how long the end of a Task is remembered, so that a decision that is read after it opens nothing. The
	// topics are read side by side, and in the catch-up far apart.
	KeepEnded time.Duration
}

// task is an open Task.
type task struct {
	cluster  string // where it waits or runs; empty while the router is to decide again
	attempt  int
	seq      int
	until    time.Time
	deadline bool // until comes from a decision
}

// Demand is the fold. It is safe for concurrent use.
type Demand struct {
	opts Options

	mu      sync.Mutex
	open    map[string]*task
	count   map[string]int       // open Tasks by cluster
	last    map[string]time.Time // when a Task last left a cluster or was on it
	ended   map[uint64]time.Time // by the hash of the id: 2^64 ids make a false end too rare to matter
	changed chan struct{}
}

// New makes an empty fold.
func New(opts Options) *Demand {
	return &Demand{
		opts: opts, open: map[string]*task{}, count: map[string]int{}, last: map[string]time.Time{}, ended: map[uint64]time.Time{},
		changed: make(chan struct{}),
	}
}

// Decision takes a decision that was written at a moment. Only a newer attempt than the one that is known moves a Task.
func (d *Demand) Decision(dec event.RouteDecision, at time.Time) {
	if dec.Kind != event.Route {
		return // a rejected or cancelled Task wants no pool; its outcome closes it where it is open
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.task(dec.TaskID, at)
	if t == nil {
		return
	}
	if !dec.Deadline.IsZero() {
		t.until, t.deadline = dec.Deadline.Add(d.opts.Grace), true
	}
	if dec.Attempt > t.attempt {
		t.attempt, t.seq = dec.Attempt, 0
		d.move(t, dec.Cluster, at)
	}
}

// Attempt takes a change of an attempt.
func (d *Demand) Attempt(a event.Attempt, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.task(a.TaskID, at)
	if t == nil || a.Number < t.attempt || (a.Number == t.attempt && a.Seq <= t.seq) {
		return
	}
	t.attempt, t.seq = a.Number, a.Seq
	cluster := a.Cluster
	if attempt.State(a.State).Terminal() {
		switch {
		case a.Remedy == event.RemedyReroute:
			cluster = "" // wherever the router sends it next
		case a.Remedy == event.RemedyFailover && a.Next != nil:
			cluster = a.Next.Cluster // it needs that pool from now on, before its next attempt says so
		}
	}
	d.move(t, cluster, at)
}

// Outcome takes the end of a Task.
func (d *Demand) Outcome(o event.Outcome, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended[xxh3.HashString(o.TaskID)] = at
	if t := d.open[o.TaskID]; t != nil {
		d.move(t, "", at)
		delete(d.open, o.TaskID)
	}
}

// task finds or makes the open Task, or nil when it has ended.
func (d *Demand) task(id string, at time.Time) *task {
	if id == "" {
		return nil
	}
	if _, over := d.ended[xxh3.HashString(id)]; over {
		return nil
	}
	t := d.open[id]
	if t == nil {
		t = &task{until: at.Add(d.opts.Unended)}
		d.open[id] = t
	}
	return t
}

// move puts a Task on a cluster. The one that it leaves has had work until now.
func (d *Demand) move(t *task, cluster string, at time.Time) {
	d.touch(t.cluster, at)
	d.touch(cluster, at)
	if t.cluster == cluster {
		return
	}
	if t.cluster != "" {
		d.count[t.cluster]--
	}
	if cluster != "" {
		d.count[cluster]++
	}
	t.cluster = cluster
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *Demand) touch(cluster string, at time.Time) {
	if cluster != "" && at.After(d.last[cluster]) {
		d.last[cluster] = at
	}
}

// Sweep drops Tasks whose deadline is long past, and the memory of ends.
func (d *Demand) Sweep(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, t := range d.open {
		if now.After(t.until) {
			d.move(t, "", t.until)
			delete(d.open, id)
		}
	}
	for id, at := range d.ended {
		if now.Sub(at) > d.opts.KeepEnded {
			delete(d.ended, id)
		}
	}
}

// Open is how many Tasks wait for a cluster or run on it.
func (d *Demand) Open(cluster string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count[cluster]
}

// LastWork is when a Task was last seen on a cluster, zero for never.
func (d *Demand) LastWork(cluster string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last[cluster]
}

// Changed is closed when the next Task comes to a cluster or leaves one. Take it before asking.
func (d *Demand) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}
