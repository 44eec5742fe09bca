// Package board holds what the topics say of each Task, so that a front door can answer for it: folded from requests,
// decisions, attempts and outcomes, first in the log wins, bounded in bytes and time.
//
// Every instance of the intake reads all partitions, so any of them can answer for any Task. Where a Task is not here the
// board says whether it was (and was let go) or was never seen. Reading the topics is left to the caller, and so is who
// may see what.
package board

import (
	"container/list"
	"encoding/json"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
)

// Options bound a board. Zero fields have defaults.
type Options struct {
	// MaxBytes bounds what is kept, counted as the JSON of the events.
	MaxBytes int64
	// KeepFor is how long a Task is kept after its last event.
	KeepFor time.Duration
	// MaxForgotten bounds how many Tasks are remembered as having been let go.
	MaxForgotten int
}

// Defaults of Options.
const (
	DefaultMaxBytes     = 256 << 20
	DefaultKeepFor      = 24 * time.Hour
	DefaultMaxForgotten = 200_000
)

// entryOverhead is what an entry takes besides its events' JSON, roughly.
const entryOverhead = 1 << 10

// Presence is what the board can say of an id.
type Presence string

// The answers.
const (
	// Unknown: never seen, in the time that the board looks back to.
	Unknown Presence = "unknown"
	Known   Presence = "known"
	// Forgotten: it was here, and was let go to keep the board within its bounds.
	Forgotten Presence = "forgotten"
)

// Stats is how full the board is and what it has seen.
type Stats struct {
	Tasks, Forgotten int
	Bytes            int64
	EvictedBySpace   int64
	EvictedByAge     int64
	// Conflicts counts requests that came under the id of another one.
	Conflicts int64
	// Repeats counts events that were there already.
	Repeats int64
}

// Board is the fold. It is safe for concurrent use.
type Board struct {
	opts Options

	mu        sync.Mutex
	tasks     map[string]*entry
	byChange  *list.List // of *entry, the one that was told of last in front
	shuffled  bool       // byChange is out of the order of time: what was read on a start came partition by partition
	forgotten *lru.Cache[string, string]
	stats     Stats
}

// New makes an empty board.
func New(opts Options) *Board {
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = DefaultMaxBytes
	}
	if opts.KeepFor <= 0 {
		opts.KeepFor = DefaultKeepFor
	}
	if opts.MaxForgotten <= 0 {
		opts.MaxForgotten = DefaultMaxForgotten
	}
	forgotten, err := lru.New[string, string](opts.MaxForgotten)
	if err != nil {
		panic(err) // only a size below one, which was ruled out above
	}
	return &Board{opts: opts, tasks: map[string]*entry{}, byChange: list.New(), forgotten: forgotten}
}

// Stats reports how full the board is.
func (b *Board) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Tasks, s.Forgotten = len(b.tasks), b.forgotten.Len()
	return s
}

// Accept puts a Task on the board that this process has had acknowledged by the broker, before it is read back.
// One that is there already stays.
func (b *Board) Accept(t query.Task, raw []byte, now time.Time) {
	b.update(t.ID, now, func(e *entry) bool { return e.takeTask(t, raw, now, false) })
}

// Request takes a Task as it was read from the log.
func (b *Board) Request(t query.Task, raw []byte, now time.Time) {
	b.update(t.ID, now, func(e *entry) bool {
		if e.hasTask && e.logged && e.digest != t.Digest() {
			b.stats.Conflicts++
			return false
		}
		return e.takeTask(t, raw, now, true)
	})
}

// Cancel takes a wish to cancel.
func (b *Board) Cancel(c event.Cancel, raw []byte, now time.Time) {
	b.update(c.TaskID, now, func(e *entry) bool {
		if e.cancelled {
			return false
		}
		e.cancelled = true
		e.add(Requests, "cancel", e.reached(), raw, now)
		return true
	})
}

// Decision takes a RouteDecision.
func (b *Board) Decision(d event.RouteDecision, raw []byte, now time.Time) {
	b.update(d.TaskID, now, func(e *entry) bool { return e.takeDecision(d, raw, now) })
}

// Attempt takes one change of an attempt.
func (b *Board) Attempt(a event.Attempt, raw []byte, now time.Time) {
	b.update(a.TaskID, now, func(e *entry) bool { return e.takeAttempt(a, raw, now) })
}

// Outcome takes the end of a Task. Inline rows are kept once, in the event.
func (b *Board) Outcome(o event.Outcome, raw []byte, now time.Time) {
	if o.Result != nil {
		lean := *o.Result
		lean.Inline = nil
		o.Result = &lean
	}
	b.update(o.TaskID, now, func(e *entry) bool {
		if e.outcome != nil {
			return false
		}
		e.outcome = &o
		e.setTenant(o.Tenant, o.User)
		e.add(Outcomes, "outcome", rankOutcome, raw, now)
		return true
	})
}

// sameMoment is how far apart changes may be that came in another order than they happened in: topics are read side by side.
const sameMoment = 5 * time.Second

// update applies a change to an entry, which is made when there is none. A Task that was let go does not come back in
// pieces.
func (b *Board) update(id string, now time.Time, change func(*entry) bool) {
	if id == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.tasks[id]
	if !ok {
		if b.forgotten.Contains(id) {
			return
		}
		e = &entry{id: id, changed: make(chan struct{}), bytes: entryOverhead}
	}
	before := e.bytes
	if !ok {
		before = 0
	}
	if !change(e) {
		b.stats.Repeats++
		return
	}
	if !ok {
		b.tasks[id] = e
		e.place = b.byChange.PushFront(e)
	} else {
		b.byChange.MoveToFront(e.place)
	}
	if e.changedAt.Before(now) {
		e.changedAt = now
	}
	if next := e.place.Next(); next != nil && next.Value.(*entry).changedAt.Sub(e.changedAt) > sameMoment {
		b.shuffled = true
	}
	b.stats.Bytes += e.bytes - before
	close(e.changed)
	e.changed = make(chan struct{})
	b.evict(now)
}

// Sweep lets go of what is too old. It is for quiet times: a change evicts too.
func (b *Board) Sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evict(now)
}

func (b *Board) evict(now time.Time) {
	for {
		oldest := b.byChange.Back()
		if oldest == nil {
			return
		}
		e := oldest.Value.(*entry)
		tooOld := now.Sub(e.changedAt) > b.opts.KeepFor
		switch {
		case tooOld:
			b.stats.EvictedByAge++
		case b.stats.Bytes > b.opts.MaxBytes && b.byChange.Len() > 1:
			b.stats.EvictedBySpace++ // the newest stays, however large: it is what somebody waits for
		default:
			return
		}
		b.byChange.Remove(oldest)
		delete(b.tasks, e.id)
		b.stats.Bytes -= e.bytes
		b.forgotten.Add(e.id, e.tenant)
		close(e.changed) // whoever waits finds it gone
	}
}

// Find returns what is known of a Task. The tenant of a forgotten one is in the View, nothing else.
func (b *Board) Find(id string) (View, Presence) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.tasks[id]; ok {
		return e.view(), Known
	}
	if tenant, ok := b.forgotten.Get(id); ok {
		return View{TaskID: id, Tenant: tenant}, Forgotten
	}
	return View{}, Unknown
}

// clone copies bytes that belong to a fetch: a slice of it would keep the whole fetch in memory.
func clone(raw []byte) json.RawMessage { return append(json.RawMessage(nil), raw...) }
