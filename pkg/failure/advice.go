package failure

import (
	"slices"
	"strings"

	"github.com/pointsman/pointsman/pkg/event"
)

// Situation is all that counts for what follows a failure.
type Situation struct {
	Class Class
	// ReadOnly means that running the statement twice does no harm.
	ReadOnly bool
	// Reach says whether the engine can have done anything.
	Reach Reach
	// Delivered means that rows have reached a reader. They can't be taken back, and another run may give others.
	Delivered bool
}

// Advice is what should follow: the remedies in order of preference, none of which is to fail. Without a remedy the Task fails.
type Advice struct {
	Remedies []event.Remedy
	Why      string
}

// remedies keeps the table's lines readable.
type remedies = []event.Remedy

const (
	retry    = event.RemedyRetry
	enlarge  = event.RemedyEnlarge
	failover = event.RemedyFailover
	reroute  = event.RemedyReroute
)

// row is the advice of one class. A write that reached the engine has a column of its own: it is run again only where the
// engine is known to have refused it at its door. Failover of a write that was not sent is left to the router: fallbacks were
// approved for reads.
type row struct {
	read, unsentWrite, sentWrite remedies
	why                          string
}

var advice = map[Class]row{
	Semantic:   {nil, nil, nil, "the same text fails everywhere"},
	Permission: {nil, nil, nil, "asking twice gives no rights"},
	EngineStart: {
		remedies{failover, reroute},
		remedies{reroute},
		nil,
		"nothing was sent, and waiting longer was tried",
	},
	SubmitUnknown: {
		remedies{retry, failover, reroute},
		remedies{retry, reroute},
		nil,
		"a read may run again once it is known to be gone; a write of unknown fate is never run again",
	},
	Resources: {
		remedies{failover, reroute},
		remedies{reroute},
		nil,
		"another pool may have what this one lacks; a write may have been done in part",
	},
	MemoryLimit: {
		remedies{enlarge, failover, reroute},
		remedies{enlarge, reroute},
		nil,
		"a larger resource profile or the next pool has more memory, or spills; a write may have been done in part",
	},
	QueueFull: {
		remedies{failover, retry, reroute},
		remedies{retry, reroute},
		remedies{retry, reroute},
		"the engine refused it before it started",
	},
	ClusterDown: {
		remedies{failover, reroute},
		remedies{reroute},
		nil,
		"the cluster can't be reached; a write may have been done in part",
	},
	Timeout: {
		remedies{failover, reroute},
		remedies{reroute},
		nil,
		"another pool may allow more time; the Task's own deadline is checked before anything starts",
	},
	SLAOverrun: {
		remedies{reroute},
		remedies{reroute},
		nil,
		"where it ran was too slow for it, which the router did not know",
	},
	EstimateOverrun: {
		remedies{reroute},
		remedies{reroute},
		nil,
		"the estimate was wrong; the query's intent is unchanged",
	},
	CancelledByUser:  {nil, nil, nil, "the user wants no result any more"},
	KilledByOperator: {nil, nil, nil, "running it again would defy whoever stopped it"},
	ResultTooLarge:   {nil, nil, nil, "the result is as large everywhere"},
	Internal: {
		remedies{failover, reroute},
		remedies{reroute},
		nil,
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
	a := Advice{Remedies: r.read, Why: r.why}
	switch {
	case s.Delivered:
		a.Remedies = nil
		if len(r.read) > 0 {
			a.Why = "rows of it have been delivered, and another run may give others"
		}
	case s.ReadOnly:
	case s.Reach == NotSent:
		a.Remedies = r.unsentWrite
	default:
		a.Remedies = r.sentWrite
	}
	a.Remedies = slices.Clone(a.Remedies)
	return a
}

// Left is what a Task may still do.
type Left struct {
	// Attempts counts further attempts of any kind; Retries those of them that may stay on the same target.
	Attempts int
	Retries  int
	// RetryBudget means that the cluster may take a retry at all: when much fails there, retries would only add to its load.
	RetryBudget bool
	// Larger means that the cluster has a larger resource profile than the one that it failed with.
	Larger bool
	// Fallbacks counts the pre-approved targets that have not failed.
	Fallbacks int
}

// Choose takes the first remedy that is left, and says why, also why it is not an earlier one. Nothing follows when the attempts
// are used up.
func Choose(a Advice, left Left) (remedy event.Remedy, why string) {
	if len(a.Remedies) == 0 {
		return event.RemedyFail, a.Why
	}
	if left.Attempts <= 0 {
		return event.RemedyFail, "the Task has used up its attempts"
	}
	reasons := []string{a.Why}
	for _, r := range a.Remedies {
		lack := left.lacks(r)
		if lack == "" {
			return r, strings.Join(reasons, "; ")
		}
		reasons = append(reasons, lack)
	}
	return event.RemedyFail, strings.Join(reasons, "; ")
}

// lacks says what a remedy lacks, or "".
func (l Left) lacks(r event.Remedy) string {
	switch {
	case r == retry && l.Retries <= 0:
		return "its retries here are used up"
	case r == retry && !l.RetryBudget:
		return "the cluster's budget of retries is spent"
	case r == enlarge && !l.Larger:
		return "no larger resource profile is there"
	case r == failover && l.Fallbacks <= 0:
		return "no fallback is left"
	default:
		return ""
	}
}
