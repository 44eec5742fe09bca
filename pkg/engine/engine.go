// Package engine is the port to query engines: the few things the executor and the profiler ask of any of them.
//
// Each engine has an adapter in a folder of its own, which imports this package and its driver and nothing else of
// pointsman's adapters; all adapters pass the one suite in enginetest. What to do about an error is not decided here:
// an adapter names the engine's native code, pkg/failure gives it a class.
package engine

import (
	"context"
	"errors"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Query is one attempt as an engine sees it.
type Query struct {
	// ID is the attempt id. The adapter carries it so that Find can see the run from another process.
	ID       string
	SQL      string
	Database string
	// MaxExecution and MaxMemoryBytes are limits the engine enforces; zero sets none of our own.
	MaxExecution   time.Duration
	MaxMemoryBytes int64
	// Settings are engine settings of the resource profile.
	Settings map[string]string
	// ReadOnly means that the statement is taken for a read. An engine that can makes sure of it, so that what was taken for a
	// read by mistake fails and does nothing.
	ReadOnly bool
	// SubmitBefore is the moment past which the submission must not leave any more (the guard of the claim, on the
	// monotonic clock). Zero means no bound. An adapter checks it as the last thing before it sends.
	SubmitBefore time.Time
}

// Rows is a running or finished query's result, read once, front to back. Close ends the query when it still runs.
type Rows interface {
	Columns() []event.Column
	// Next moves to the next row; false means the end or an error, see Err.
	Next() bool
	// Values are the current row's values: nil, bool, string, int64, uint64, float64, json.Number (decimals and wide
	// integers, exact), time.Time (instants, and dates as their midnight, in UTC), []any, or map[string]any. A date and time
	// without a zone is no instant: an engine that has such a type gives it as a string, 2026-11-30T09:15:00.25. Bytes that are
	// no text are a string of hexadecimal digits behind 0x.
	Values() ([]any, error)
	Err() error
	Close() error
	// Stats is what the engine said of the run so far; unknown fields are nil. Complete after Next returned false.
	Stats() event.Stats
}

// Lender is a Rows that need not make each value anew: it can lend what lies where its driver puts it, which saves large results an
// allocation for each value.
type Lender interface {
	// Lent are the current row's values as Values gives them, or pointers to them: *string, *int64, *uint64, *float64 or *time.Time,
	// none of which is nil. They and their slice are good until the next call of Next.
	Lent() ([]any, error)
}

// RunState is what an engine says of an attempt id.
type RunState string

// The answers to Find.
const (
	// RunUnknown means the engine keeps no trace of the id: it never came, or it is over.
	RunUnknown RunState = "unknown"
	// RunActive means queued or running now.
	RunActive RunState = "active"
	// RunFinished and RunFailed are known ends.
	RunFinished RunState = "finished"
	RunFailed   RunState = "failed"
	// RunCancelled is the end of a run that a client stopped, such as an earlier owner of the attempt, for engines that keep
	// a history: nothing is wrong with the query. Engines without one know nothing of it any more.
	RunCancelled RunState = "cancelled"
)

// Run is what an engine knows of an attempt.
type Run struct {
	State RunState
	Stats event.Stats
	// Waiting means that an active run stands in the engine's own queue and has not begun.
	Waiting bool
	// Elapsed is how long it has run, without what it waited; zero when the engine does not say.
	Elapsed time.Duration
	// Progress is the share of its work that is done, 0 to 1, by the engine's own reckoning; nil when it does not say.
	Progress *float64
	// Failure is what a failed run failed of, nil when the engine does not say.
	Failure *Error
}

// Engine is one cluster of one kind.
type Engine interface {
	// Submit starts the query and returns once the engine has it and its first answer is there. An error is an *Error.
	Submit(ctx context.Context, q Query) (Rows, error)
	// Find looks an attempt id up, from any process.
	Find(ctx context.Context, id string) (Run, error)
	// Kill ends the attempt on the engine and returns when it is gone, or false when the engine has no such run.
	Kill(ctx context.Context, id string) (bool, error)
	// Canary touches the engine's storage: it proves that a query can run, not only that a port answers.
	Canary(ctx context.Context) error
	// Observe reports the engine's own view of its load. Facts it can't tell are absent.
	Observe(ctx context.Context) (signal.Observation, error)
	Close() error
}

// Plan is what an engine expects of a statement before it runs. What it does not say is nil.
type Plan struct {
	// ResultRows and ReadRows are the engine's own estimates of the rows that come out and that are read.
	ResultRows *float64
	ReadRows   *float64
	// Cost is in the engine's own unit, and can be compared with others of the same engine only.
	Cost *float64
	// Text is the plan as the engine writes it.
	Text string
}

// Explainer is an Engine that can explain. Nothing of the statement runs.
type Explainer interface {
	// Explain gives the plan of a statement; the query needs no ID. An error is an *Error.
	Explain(ctx context.Context, q Query) (Plan, error)
}

// Phase says how far a submission had come when it failed: it bounds what may have happened at the engine.
type Phase string

// The phases.
const (
	// NotSent means that nothing reached the engine: trying again is safe.
	NotSent Phase = "not_sent"
	// SentUnknown means that the engine may or may not run it: look it up before anything else.
	SentUnknown Phase = "sent_unknown"
	// Answered means that the engine itself said no, or failed while it ran.
	Answered Phase = "answered"
)

// Error is an engine's error with its native code.
type Error struct {
	Engine string // kind, e.g. clickhouse
	Code   string // native code, e.g. 241; empty when the error is not the engine's
	Name   string
	Type   string // native type of errors, for engines that give each code one, e.g. USER_ERROR
	Phase  Phase
	Err    error
}

// Error gives the message of the engine.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the driver's error.
func (e *Error) Unwrap() error { return e.Err }

// MostColumns is far more than a result has, and little enough to make room for. An adapter does not believe a server that announces more.
const MostColumns = 1 << 17

// ErrColumns is the cause when a server announces more than MostColumns.
var ErrColumns = errors.New("the server announces more columns than a result can have")

// ErrDone is in the error of a query that its caller has stopped when it was over already: what it was to do is done.
var ErrDone = errors.New("the statement was done before it could be stopped")

// ErrGuardExpired is the cause when SubmitBefore had passed before anything was sent.
var ErrGuardExpired = errors.New("the submit guard of the claim has run out")
