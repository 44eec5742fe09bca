package failure

import (
	"fmt"

	"github.com/pointsman/pointsman/pkg/event"
)

// Situation is all that counts for what follows a failure.
type Situation struct {
	Class Class
	// ReadOnly means that running the statement twice does no harm.
	ReadOnly bool
	// Reach says whether the engine can have done anything.
	Reach Reach
}

// Advice is what should follow.
type Advice struct {
	Remedy event.Remedy
	Why    string
}

// row is the advice of one class. A write that reached the engine has a column of its own: it is run again only where the
// engine is known to have refused it at its door.
type row struct {
	read, unsentWrite, sentWrite event.Remedy
	why                          string
}

var advice = map[Class]row{
	Semantic:   {event.RemedyFail, event.RemedyFail, event.RemedyFail, "the same text fails everywhere"},
	Permission: {event.RemedyFail, event.RemedyFail, event.RemedyFail, "asking twice gives no rights"},
	EngineStart: {
		event.RemedyReroute, event.RemedyReroute, event.RemedyFail,
		"nothing was sent, and waiting longer was tried",
	},
	SubmitUnknown: {
		event.RemedyRetry, event.RemedyRetry, event.RemedyFail,
		"a read may run again once it is known to be gone; a write of unknown fate is never run again",
	},
	Resources: {
		event.RemedyFailover, event.RemedyFailover, event.RemedyFail,
		"another pool may have what this one lacks; a write may have been done in part",
	},
	MemoryLimit: {
		event.RemedyFailover, event.RemedyFailover, event.RemedyFail,
		"the next pool has more memory or spills; a write may have been done in part",
	},
	QueueFull: {
		event.RemedyFailover, event.RemedyFailover, event.RemedyFailover,
		"the engine refused it before it started",
	},
	ClusterDown: {
		event.RemedyReroute, event.RemedyReroute, event.RemedyFail,
		"the router knows better than a list made before the cluster went down",
	},
	Timeout: {
		event.RemedyFailover, event.RemedyFailover, event.RemedyFail,
		"another pool may allow more time; the Task's own deadline is checked before anything starts",
	},
	SLAOverrun: {
		event.RemedyReroute, event.RemedyReroute, event.RemedyFail,
		"where it ran was too slow for it, which the router did not know",
	},
	EstimateOverrun: {
		event.RemedyReroute, event.RemedyReroute, event.RemedyFail,
		"the estimate was wrong; the query's intent is unchanged",
	},
	CancelledByUser:  {event.RemedyFail, event.RemedyFail, event.RemedyFail, "the user wants no result any more"},
	KilledByOperator: {event.RemedyFail, event.RemedyFail, event.RemedyFail, "running it again would defy whoever stopped it"},
	ResultTooLarge:   {event.RemedyFail, event.RemedyFail, event.RemedyFail, "the result is as large everywhere"},
	Internal: {
		event.RemedyFailover, event.RemedyFailover, event.RemedyFail,
		"a fault of one engine need not be one of the next; a write may have been done in part",
	},
}

// Advise says what should follow a failure. What may still run at the engine has been looked up before: that is the attempt
// table's. A class it does not know counts as Internal.
func Advise(s Situation) Advice {
	r, ok := advice[s.Class]
	if !ok {
		r = advice[Internal]
	}
	a := Advice{Remedy: r.read, Why: r.why}
	switch {
	case s.ReadOnly:
	case s.Reach == NotSent:
		a.Remedy = r.unsentWrite
	default:
		a.Remedy = r.sentWrite
	}
	return a
}

// Left is what a Task may still do.
type Left struct {
	// Attempts counts further attempts of any kind; Retries those of them that may stay on the same target.
	Attempts int
	Retries  int
	// Fallbacks counts the pre-approved targets that have not failed.
	Fallbacks int
}

// Choose fits the advice to what is left: a retry that is used up becomes a failover, a failover without a fallback asks
// the router, and nothing follows when the attempts are used up.
func Choose(a Advice, left Left) (remedy event.Remedy, why string) {
	remedy, why = a.Remedy, a.Why
	if remedy == event.RemedyFail {
		return remedy, why
	}
	if left.Attempts <= 0 {
		return event.RemedyFail, "the Task has used up its attempts"
	}
	if remedy == event.RemedyRetry && left.Retries <= 0 {
		remedy, why = event.RemedyFailover, fmt.Sprintf("%s; its retries here are used up", why)
	}
	if remedy == event.RemedyFailover && left.Fallbacks <= 0 {
		remedy, why = event.RemedyReroute, fmt.Sprintf("%s; no fallback is left", why)
	}
	return remedy, why
}
