package board

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/event"
)

// States of a Task on top of those of its attempts (awaiting_slot, running, …) and of its end (succeeded, failed, …).
const (
	StateAccepted  = "accepted"  // written, not decided yet
	StateRouted    = "routed"    // decided, no attempt yet
	StateRetrying  = "retrying"  // an attempt has failed, the same target is tried again
	StateRerouting = "rerouting" // an attempt has failed, another target is tried
	StateEnding    = "ending"    // the last attempt has ended or the Task was rejected; its outcome is on its way
)

// States are all that a Task can be in, as far as this version knows.
func States() []string {
	states := []string{StateAccepted, StateRouted}
	for _, s := range attempt.States() {
		if !s.Terminal() {
			states = append(states, string(s))
		}
	}
	states = append(states, StateRetrying, StateRerouting, StateEnding)
	for _, s := range []event.Status{event.Succeeded, event.Failed, event.Rejected, event.Cancelled, event.Expired} {
		states = append(states, string(s))
	}
	return states
}

// Topic is where an event was read.
type Topic int

// The topics that the board is folded from.
const (
	Requests Topic = iota
	Decisions
	Attempts
	Outcomes
	topics
)

// Cursor says how many events of a Task have been seen, per topic. Within a topic the events of a Task have one order,
// whichever instance reads them; between topics they have not, so one number would not do.
type Cursor [topics]int

// String is the form that travels as an SSE id.
func (c Cursor) String() string {
	parts := make([]string, len(c))
	for i, n := range c {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ".")
}

var errCursor = errors.New("an event id looks like 1.2.5.0")

// ParseCursor reads what String wrote.
func ParseCursor(s string) (Cursor, error) {
	var c Cursor
	parts := strings.Split(s, ".")
	if len(parts) != len(c) {
		return c, errCursor
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return c, errCursor
		}
		c[i] = n
	}
	return c, nil
}

// Event is one thing that happened to a Task.
type Event struct {
	Topic Topic
	// Index counts the events of this Task in this topic, from 1.
	Index  int
	Name   string
	Data   json.RawMessage
	SeenAt time.Time

	rank int
}

// View is what is known of a Task at a moment. Its slices must not be changed.
type View struct {
	TaskID       string
	Tenant, User string
	State        string
	Digest       string
	// Logged is true once the Task was read back from the log.
	Logged bool
	// Key is the record key of the Task on the requests topic, "" while neither request nor decision was seen.
	Key         string
	SubmittedAt *time.Time
	Cancelled   bool
	Task        json.RawMessage
	Events      []Event
	// Outcome is nil while the Task goes on. It has no inline rows; the event has.
	Outcome *event.Outcome
	// Changed is closed when there is more to know.
	Changed <-chan struct{}

	attemptEnded bool
}

func (e *entry) view() View {
	return View{
		TaskID: e.id, Tenant: e.tenant, User: e.user, State: e.state(), Digest: e.digest, Logged: e.logged, Cancelled: e.cancelled,
		Key: e.key, SubmittedAt: e.submittedAt, Task: e.taskRaw, Events: slices.Clip(e.events), Outcome: e.outcome,
		Changed: e.changed, attemptEnded: e.last != nil && attempt.State(e.last.State).Terminal(),
	}
}

// Since returns the events that a reader who has seen the cursor has not, causes before their effects.
func (v View) Since(c Cursor) []Event {
	var out []Event
	for _, ev := range v.Events {
		if ev.Index > c[ev.Topic] {
			out = append(out, ev)
		}
	}
	slices.SortStableFunc(out, func(a, b Event) int { return cmp.Compare(a.rank, b.rank) })
	return out
}

// Settled reports whether the Task has ended and the end of its last attempt has been read too: the topics are read side
// by side, so the outcome may be here first.
func (v View) Settled() bool { return v.Outcome != nil && (v.Outcome.Attempts == 0 || v.attemptEnded) }

// Of returns the events of a topic, in the order of the log.
func (v View) Of(t Topic) []Event {
	var out []Event
	for _, ev := range v.Events {
		if ev.Topic == t {
			out = append(out, ev)
		}
	}
	return out
}

func attemptKey(a event.Attempt) string { return fmt.Sprintf("%s#%d", a.AttemptID, a.Seq) }
