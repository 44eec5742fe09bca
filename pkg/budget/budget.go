// Package budget keeps the accounts that limits are checked against: those of sessions, strictly, and those of tenants, within a
// stated bound. It also words what a session or a tenant is told when it may not go on.
//
// It is core. Sessions is a fold over the records of a budget-state partition, under the leases of pkg/ledger: what the partition's
// owner has reserved is there for whoever owns it next. Tenants is a fold over decisions and Outcomes, idempotent by Task. Writing,
// reading back and following topics are the router's; what the limits are is the policy's.
package budget

import (
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
)

// Limits bound one session. A zero field is no limit.
type Limits struct {
	MaxQueries int64
	MaxBytes   int64
	MaxWall    time.Duration
	// MaxRepeats is how often one and the same query may run in a session, MaxGrowing how many queries in a row over the same
	// tables may each scan more than the one before.
	MaxRepeats int64
	MaxGrowing int64
}

// SessionKey names a session: ids are the producer's, so they are unique within a tenant only.
type SessionKey struct {
	Tenant  string `json:"tenant"`
	Session string `json:"session"`
}

// KeyOf is the session key of a Task, or false for a Task without a session.
func KeyOf(t query.Task) (SessionKey, bool) {
	if t.SessionID() == "" {
		return SessionKey{}, false
	}
	return SessionKey{Tenant: t.Tenant, Session: t.SessionID()}, true
}

// Usage is what a session has used: reserved for Tasks that run, and settled for Tasks that ended.
type Usage struct {
	Queries int64 `json:"queries"`
	// Bytes are the engine's read bytes of ended Tasks plus the estimates of open ones.
	Bytes int64 `json:"bytes"`
	// WallMs is the execution time of ended Tasks, and what open ones are expected to take where history says so.
	WallMs int64 `json:"wallMs"`
	// UnknownBytes counts Tasks whose bytes are not known: neither estimated nor reported.
	UnknownBytes int64 `json:"unknownBytes"`
}

// Account is what a decision may know of its Task's session.
type Account struct {
	Usage Usage `json:"usage"`
	// Admitted says that this Task was charged already: it is a repeat or a later attempt. Usage is what it was then.
	Admitted bool `json:"admitted"`
	// Refused is what this Task was told before: it is a repeat, and gets the same answer.
	Refused *event.Rejection `json:"refused,omitempty"`
	// Repeats counts earlier runs of the very same query among the session's recent ones. Growing is the length of the run of
	// queries over the same tables, this one included, each of which scans more than the one before it; 0 if that is not known.
	Repeats int64 `json:"repeats,omitempty"`
	Growing int64 `json:"growing,omitempty"`
}

// Query is a Task of a session, as its account needs to know it.
type Query struct {
	Key    SessionKey
	TaskID string
	// Deadline of the Task: nothing of it starts later.
	Deadline time.Time
	// Text tells a query from every other, Group is what queries over the same tables share; see Digest.
	Text, Group Hash
	// Bytes is the estimate of what it scans, nil when there is none.
	Bytes *int64
	// WallMs is how long it is expected to run, 0 when nothing but a guess says so.
	WallMs int64
}

// Ended is what a session's account needs to know of an Outcome.
type Ended struct {
	Key    SessionKey
	TaskID string
	// Bytes and WallMs are what it took, nil when the engine did not say.
	Bytes  *int64
	WallMs *int64
	// Void says that it never reached an engine, and so costs nothing.
	Void bool
}

// EndedBy reads what an account needs off an Outcome. ok is false for an Outcome of a Task without a session.
func EndedBy(o event.Outcome) (e Ended, ok bool) {
	if o.SessionID == "" {
		return Ended{}, false
	}
	return Ended{
		Key: SessionKey{Tenant: o.Tenant, Session: o.SessionID}, TaskID: o.TaskID,
		Bytes: o.Stats.ReadBytes, WallMs: o.Stats.ExecMs, Void: o.Attempts == 0,
	}, true
}
