// Package attempt holds the life of one attempt as one literal table: state and event give the next state and what has to be
// done, as data.
//
// It is core: Apply changes nothing and does nothing. The executor turns what happens into events and carries the effects
// out; which class a failure has and what follows it is pkg/failure's, who may claim is pkg/ledger's.
package attempt

import (
	"fmt"
	"slices"
)

// State is where an attempt is. The empty State is unknown.
type State string

// The states. Each is also the suffix of the CloudEvents type under which its change is published.
const (
	// AwaitingSlot means that it stands in the cluster's queue here, or has a slot and is being claimed. Every attempt
	// starts in it.
	AwaitingSlot State = "awaiting_slot"
	// AwaitingCapacity means that its pool sleeps, and somebody has to wake it.
	AwaitingCapacity State = "awaiting_capacity"
	// Claimed means that its claim stands in the ledger.
	Claimed State = "claimed"
	// Submitting means that the submission has left, or is about to.
	Submitting State = "submitting"
	// SubmitUnknown means that the engine may or may not have it; it is looked up.
	SubmitUnknown State = "submit_unknown"
	// Queued means that the engine has it in a queue of its own.
	Queued State = "queued"
	// Running means that the engine works on it.
	Running State = "running"
	// Delivering means that rows come out and are stored.
	Delivering State = "delivering"

	// Succeeded means that its whole result is stored.
	Succeeded State = "succeeded"
	// Failed means that it ended with a failure.
	Failed State = "failed"
	// TimedOut means that the Task's deadline passed first.
	TimedOut State = "timed_out"
	// Overrun means that it was stopped because it took far more than was estimated, or could not meet its SLA any more.
	Overrun State = "overrun"
	// Cancelled means that the user took the Task back.
	Cancelled State = "cancelled"
	// Lost means that nobody knows how it ended, and that it is not running any more.
	Lost State = "lost"
)

// Start is the state in which every attempt begins.
const Start = AwaitingSlot

var states = []State{
	AwaitingSlot, AwaitingCapacity, Claimed, Submitting, SubmitUnknown, Queued, Running, Delivering,
	Succeeded, Failed, TimedOut, Overrun, Cancelled, Lost,
}

// States returns all states, in the order of a life.
func States() []State { return slices.Clone(states) }

// Terminal reports whether an attempt in this state has ended.
func (s State) Terminal() bool {
	switch s {
	case Succeeded, Failed, TimedOut, Overrun, Cancelled, Lost:
		return true
	default:
		return false
	}
}

// AtEngine reports whether the engine may have something of an attempt in this state.
func (s State) AtEngine() bool {
	switch s {
	case Submitting, SubmitUnknown, Queued, Running, Delivering:
		return true
	default:
		return false
	}
}

// NoTransitionError says that the table has no answer to an event: it is a fault of the program, never of a Task.
type NoTransitionError struct {
	State State
	Event Event
}

// Error names the pair that is missing.
func (e *NoTransitionError) Error() string {
	return fmt.Sprintf("an attempt that is %s can't take the event %s", e.State, e.Event)
}

// Apply says where an event leads and what has to be done, in order. A pair that the table lacks is a *NoTransitionError.
func Apply(s State, e Event) (Transition, error) {
	t, ok := table[s][e]
	if !ok {
		return Transition{}, &NoTransitionError{State: s, Event: e}
	}
	t.Do = slices.Clone(t.Do)
	return t, nil
}
