package budget

import (
	"time"

	"github.com/pointsman/pointsman/pkg/event"
)

// Book is the account of all sessions. The zero Book is not usable; see NewBook.
type Book struct {
	sessions map[SessionKey]*bookAccount
	// owner finds the session of an open Task, since an Outcome is keyed by Task.
	owner map[string]SessionKey
	// early are Outcomes that were read before the decision of their Task: the two come from topics that are read side by side.
	early map[string]event.Outcome
}

type bookAccount struct {
	entries map[string]*bookEntry // by Task id
	usage   Usage
	lastAt  time.Time
}

type bookEntry struct {
	bytes   int64
	known   bool
	settled bool
	refused bool // the first decision of the Task was a rejection: it costs nothing, whatever is decided later
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{sessions: map[SessionKey]*bookAccount{}, owner: map[string]SessionKey{}, early: map[string]event.Outcome{}}
}

// Usage returns what the session has used so far.
func (b *Book) Usage(k SessionKey) Usage {
	if a, ok := b.sessions[k]; ok {
		return a.usage
	}
	return Usage{}
}

// Admitted reports whether the Task has been admitted before: a repeat must not be charged again, nor rejected.
func (b *Book) Admitted(taskID string) bool {
	k, ok := b.owner[taskID]
	return ok && !b.sessions[k].entries[taskID].refused
}

// Refuse notes that the first decision of a Task was a rejection. The executor holds to the first in the log, so a later
// decision to route the same Task costs the session nothing.
func (b *Book) Refuse(k SessionKey, taskID string, at time.Time) {
	if _, ok := b.owner[taskID]; ok {
		return
	}
	b.enter(k, taskID, &bookEntry{settled: true, refused: true}, at)
}

// enter puts a Task on its session's account.
func (b *Book) enter(k SessionKey, taskID string, e *bookEntry, at time.Time) *bookAccount {
	a := b.sessions[k]
	if a == nil {
		a = &bookAccount{entries: map[string]*bookEntry{}}
		b.sessions[k] = a
	}
	a.entries[taskID] = e
	b.owner[taskID] = k
	if at.After(a.lastAt) {
		a.lastAt = at
	}
	return a
}

// Reserve charges an admitted Task. A second call for the same Task changes nothing.
func (b *Book) Reserve(k SessionKey, taskID string, estimatedBytes *int64, at time.Time) {
	if _, ok := b.owner[taskID]; ok {
		return
	}
	e := &bookEntry{}
	if estimatedBytes != nil {
		e.bytes, e.known = *estimatedBytes, true
	}
	a := b.enter(k, taskID, e, at)
	a.usage.Queries++
	a.usage.Bytes += e.bytes
	if !e.known {
		a.usage.UnknownBytes++
	}
	if o, ok := b.early[taskID]; ok {
		delete(b.early, taskID)
		b.Settle(o)
	}
}

// Settle replaces a Task's reservation by what it took. An Outcome that comes before its Task's decision waits for it; one of a
// Task without a session changes nothing.
func (b *Book) Settle(o event.Outcome) {
	k, ok := b.owner[o.TaskID]
	if !ok {
		if o.SessionID != "" {
			o.Result = nil
			b.early[o.TaskID] = o
		}
		return
	}
	a := b.sessions[k]
	e := a.entries[o.TaskID]
	if e.settled {
		return
	}
	e.settled = true
	if o.Stats.ReadBytes != nil {
		a.usage.Bytes += *o.Stats.ReadBytes - e.bytes
		if !e.known {
			a.usage.UnknownBytes--
		}
		e.bytes, e.known = *o.Stats.ReadBytes, true
	}
	if o.Stats.ExecMs != nil {
		a.usage.WallMs += *o.Stats.ExecMs
	}
	if o.FinishedAt.After(a.lastAt) {
		a.lastAt = o.FinishedAt
	}
}

// Forget drops the sessions that nothing was heard of since before.
func (b *Book) Forget(before time.Time) {
	for k, a := range b.sessions {
		if a.lastAt.Before(before) {
			for id := range a.entries {
				delete(b.owner, id)
			}
			delete(b.sessions, k)
		}
	}
	for id, o := range b.early {
		if o.FinishedAt.Before(before) {
			delete(b.early, id)
		}
	}
}
