package board

import (
	"container/list"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
)

// entry is one Task. Its events are in the order in which they came here; in each topic that is the order of the log.
type entry struct {
	id           string
	tenant, user string
	// hasTask is true once the request itself is here. Before that, what a decision says of the Task stands in for it.
	hasTask     bool
	taskRaw     json.RawMessage
	digest, key string
	submittedAt *time.Time
	// logged is false while the Task is only known from this process's own acceptance.
	logged    bool
	cancelled bool
	decision  *event.RouteDecision // the newest that is no passed cancel
	decided   map[string]bool      // decision ids
	attempts  map[string]bool      // attempt id and seq
	last      *event.Attempt       // the newest change of the newest attempt
	outcome   *event.Outcome

	events    []Event
	counts    Cursor
	ranks     [topics]int
	bytes     int64
	changedAt time.Time
	changed   chan struct{}
	place     *list.Element
}

// add appends an event. Its rank puts events of several topics into the order of their causes, whatever order they were
// read in; within a topic it never falls, so that the order there stays the log's.
func (e *entry) add(topic Topic, name string, rank int, raw []byte, at time.Time) {
	e.counts[topic]++
	e.ranks[topic] = max(e.ranks[topic], rank)
	e.events = append(e.events, Event{
		Topic: topic, Index: e.counts[topic], Name: name, Data: clone(raw), SeenAt: at, rank: e.ranks[topic],
	})
	e.bytes += int64(len(raw))
}

// Ranks: the request, then for each attempt its decision and its changes, then the end.
const (
	rankRequest = 0
	rankOutcome = math.MaxInt
)

func rankDecision(attempt int) int { return 2*attempt + 1 }
func rankAttempt(number int) int   { return 2*number + 2 }

// reached is the highest rank so far: a wish to cancel has no place of its own.
func (e *entry) reached() int {
	return max(e.ranks[Requests], e.ranks[Decisions], e.ranks[Attempts])
}

func (e *entry) setTenant(tenant, user string) {
	if e.tenant == "" {
		e.tenant = tenant
	}
	if e.user == "" {
		e.user = user
	}
}

// takeTask takes the Task itself. What the log says first replaces what this process had accepted under the same id: the
// router decides on the first, too.
func (e *entry) takeTask(t query.Task, raw []byte, at time.Time, logged bool) bool {
	switch {
	case e.hasTask && (e.logged || !logged):
		return false
	case e.hasTask && e.digest == t.Digest():
		e.logged = true
		return true // its event is there already, but somebody may wait for the log to confirm it
	case e.hasTask:
		e.replaceTask(raw)
		e.tenant, e.user = "", ""
	default:
		e.add(Requests, "accepted", rankRequest, raw, at)
	}
	e.hasTask, e.logged = true, logged
	e.taskRaw, e.digest, e.key, e.submittedAt = clone(raw), t.Digest(), t.Key(), t.SubmittedAt
	e.setTenant(t.Tenant, t.User)
	return true
}

// replaceTask puts another Task in the place of the accepted one. Views share the old events, so they are copied.
func (e *entry) replaceTask(raw []byte) {
	e.events = slices.Clone(e.events)
	for i := range e.events {
		if e.events[i].Name == "accepted" {
			e.bytes += int64(len(raw) - len(e.events[i].Data))
			e.events[i].Data = clone(raw)
		}
	}
}

func (e *entry) takeDecision(d event.RouteDecision, raw []byte, at time.Time) bool {
	if e.decided[d.DecisionID] {
		return false
	}
	if e.decided == nil {
		e.decided = map[string]bool{}
	}
	e.decided[d.DecisionID] = true
	if d.Kind != event.PassCancel && (e.decision == nil || d.Attempt > e.decision.Attempt) {
		e.decision = &event.RouteDecision{DecisionID: d.DecisionID, Attempt: d.Attempt, Kind: d.Kind, Target: d.Target}
	}
	if d.Task != nil {
		e.setTenant(d.Task.Tenant, d.Task.User)
		e.standIn(*d.Task, d.TaskDigest)
	}
	rank := rankDecision(d.Attempt)
	if d.Kind == event.PassCancel {
		rank = e.reached()
	}
	e.add(Decisions, "decision", rank, raw, at)
	return true
}

// standIn makes do with the Task of a decision, which the router has stamped, while the request itself is not here: it
// may be older than what is looked back to.
func (e *entry) standIn(t query.Task, digest string) {
	if e.hasTask || e.taskRaw != nil {
		return
	}
	data, err := event.Marshal(t)
	if err != nil {
		return // it was decoded a moment ago, so it is JSON
	}
	e.taskRaw, e.digest, e.key, e.submittedAt = data, digest, t.Key(), t.SubmittedAt
	e.bytes += int64(len(data))
}

func (e *entry) takeAttempt(a event.Attempt, raw []byte, at time.Time) bool {
	key := attemptKey(a)
	if e.attempts[key] {
		return false
	}
	if e.attempts == nil {
		e.attempts = map[string]bool{}
	}
	e.attempts[key] = true
	if e.last == nil || a.Number > e.last.Number || (a.Number == e.last.Number && a.Seq > e.last.Seq) {
		e.last = &event.Attempt{AttemptID: a.AttemptID, Number: a.Number, Seq: a.Seq, State: a.State, Remedy: a.Remedy, Target: a.Target}
	}
	e.setTenant(a.Tenant, "")
	e.add(Attempts, "attempt", rankAttempt(a.Number), raw, at)
	return true
}

// state is where the Task is, in one word.
func (e *entry) state() string {
	switch {
	case e.outcome != nil:
		return string(e.outcome.Status)
	case e.last != nil && (e.decision == nil || e.decision.Attempt <= e.last.Number):
		return afterAttempt(*e.last)
	case e.decision == nil:
		return StateAccepted
	case e.decision.Kind == event.Reject:
		return StateEnding
	default:
		return StateRouted
	}
}

// afterAttempt is the state of a Task by its newest attempt. An attempt that has failed does not mean that its Task has.
func afterAttempt(a event.Attempt) string {
	if !attempt.State(a.State).Terminal() {
		return a.State
	}
	switch a.Remedy {
	case event.RemedyRetry, event.RemedyEnlarge:
		return StateRetrying
	case event.RemedyFailover, event.RemedyReroute:
		return StateRerouting
	default:
		return StateEnding
	}
}
