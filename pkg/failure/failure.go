// Package failure gives every error of an engine one class of a closed list, and says what follows from a class.
//
// It is core: an engine's adapter names the native code and how far the submission had come, this package holds the tables.
// Codes are matched exactly, never by a part of a message; a message is looked at only where one code has several meanings.
// Running the remedy, counting tries and knowing which fallbacks are left is the executor's; Choose only says what they allow.
package failure

import (
	"slices"

	"github.com/pointsman/pointsman/pkg/event"
)

// Class is what kind of failure an attempt had. Metric labels come from it, so the list is closed.
type Class string

// The classes. The empty Class is unknown: the attempt has not failed, or a newer version wrote it.
const (
	// Semantic means that the statement itself is wrong; no engine of this kind will ever run it.
	Semantic Class = "semantic"
	// Permission means that the credential may not do this.
	Permission Class = "permission"
	// EngineStart means that the pool did not become ready in time; nothing was sent.
	EngineStart Class = "engine_start"
	// SubmitUnknown means that the engine may or may not have run the statement.
	SubmitUnknown Class = "submit_unknown"
	// Resources means that the cluster lacks something other than memory: disk, threads, parts, or a guard on rows read.
	Resources Class = "resources"
	// MemoryLimit means that the query needed more memory than the pool gives it.
	MemoryLimit Class = "memory_limit"
	// QueueFull means that the engine refused the query at its door.
	QueueFull Class = "queue_full"
	// ClusterDown means that the cluster, or something right behind it, can't be reached.
	ClusterDown Class = "cluster_down"
	// Timeout means that a time limit of the engine or the Task's deadline passed.
	Timeout Class = "timeout"
	// SLAOverrun means that it was stopped because its SLA could not be met any more where it ran.
	SLAOverrun Class = "sla_overrun"
	// EstimateOverrun means that it was stopped because it took far more than was estimated.
	EstimateOverrun Class = "estimate_overrun"
	// CancelledByUser means that the user took the Task back.
	CancelledByUser Class = "cancelled_by_user"
	// KilledByOperator means that somebody stopped it at the engine.
	KilledByOperator Class = "killed_by_operator"
	// ResultTooLarge means that the result is over a limit on its size.
	ResultTooLarge Class = "result_too_large"
	// Internal is everything else: a fault of the engine or of pointsman.
	Internal Class = "internal"
)

var classes = []Class{
	Semantic, Permission, EngineStart, SubmitUnknown, Resources, MemoryLimit, QueueFull, ClusterDown, Timeout, SLAOverrun,
	EstimateOverrun, CancelledByUser, KilledByOperator, ResultTooLarge, Internal,
}

// Classes returns the closed list.
func Classes() []Class { return slices.Clone(classes) }

// Known reports whether a class is one of the list.
func (c Class) Known() bool { return slices.Contains(classes, c) }

// StoppedForTime says that a run was stopped because it took too long: left alone, it would have taken at least as long as it had.
func (c Class) StoppedForTime() bool { return c == Timeout || c == SLAOverrun || c == EstimateOverrun }

// Reach says how far a submission had come when it failed. The texts are those of the engine port's Phase.
type Reach string

// The reaches.
const (
	// NotSent means that nothing reached the engine.
	NotSent Reach = "not_sent"
	// SentUnknown means that the engine may or may not have it.
	SentUnknown Reach = "sent_unknown"
	// Answered means that the engine itself reported the failure.
	Answered Reach = "answered"
)

// Report is an error in its engine's own terms.
type Report struct {
	Engine  string // kind, e.g. clickhouse
	Code    string // native code; empty when the error is not the engine's
	Name    string // native name of the code, when the engine gave one
	Type    string // native type of the error, for engines that give each code one; a code in the table does not need it
	Message string
	Reach   Reach
}

// Classify gives an error its class and a hint that a person can act on.
func Classify(r Report) event.Failure {
	e, known := lookUp(r.Engine, r.Code, r.Message)
	name := r.Name
	if name == "" {
		name = e.name
	}
	class, hint := e.class, e.hint
	switch {
	case known && !e.network:
	case r.Reach == NotSent:
		class, hint = ClusterDown, ""
	case r.Reach == SentUnknown:
		class, hint = SubmitUnknown, ""
	case known:
		class = ClusterDown // the engine reports that something behind it can't be reached
	case r.Code != "" && types[r.Engine][r.Type].Known():
		class = types[r.Engine][r.Type]
	case r.Code != "":
		class, hint = Internal, "The engine's error code "+r.Code+" is not in pointsman's table; the engine's own message says more."
	default:
		class = Internal
	}
	if hint == "" {
		hint = Hint(class)
	}
	return event.Failure{Class: string(class), Code: r.Code, Name: name, Message: r.Message, Hint: hint}
}

// Of makes a failure that no engine reported.
func Of(c Class, message string) event.Failure {
	return event.Failure{Class: string(c), Message: message, Hint: Hint(c)}
}

// ownCredential is the hint of codes by which an engine refuses the executor itself, and not its user.
const ownCredential = "The cluster refuses the executor's own credential. The platform team has to correct it."

// Hint says in one or two sentences what the reader of a failure of this class can do.
func Hint(c Class) string { return hints[c] }

var hints = map[Class]string{
	Semantic:         "The statement itself is wrong, so it was not tried again. Correct the SQL as the message says and submit it anew.",
	Permission:       "The statement was refused for lack of rights. Ask the owner of the data or of the cluster for access.",
	EngineStart:      "The pool that was chosen did not become ready in time. Nothing was run there.",
	SubmitUnknown:    "The connection broke before the engine's answer came. Look for the attempt id at the engine before you run the statement again.",
	Resources:        "The cluster ran out of something other than memory. Read less at once, or use a larger pool.",
	MemoryLimit:      "The query needs more memory than the pool gives one query. Filter earlier, select fewer columns, or let it run on a pool that spills to disk.",
	QueueFull:        "The engine had no place for another query. Try again later, or let it run elsewhere.",
	ClusterDown:      "The cluster could not be reached. Nothing has to be changed in the query.",
	Timeout:          "The time limit passed first. Give the Task a longer timeout, or make the query smaller.",
	SLAOverrun:       "It was stopped because it could no longer meet its SLA where it ran.",
	EstimateOverrun:  "It was stopped because it took far more than was estimated. Narrow the query, or hint at a heavier pool.",
	CancelledByUser:  "The Task was cancelled on request.",
	KilledByOperator: "Somebody stopped the query at the engine, so it was not tried again. Ask the cluster's operators before you resubmit it.",
	ResultTooLarge:   "The result is over the size limit. Aggregate or limit it, or write it to a table.",
	Internal:         "This is a fault of the engine or of pointsman, not of the query. The platform team can find it by the attempt id.",
}
