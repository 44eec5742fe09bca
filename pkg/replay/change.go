package replay

import (
	"slices"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
)

// Kind is how the second decision differs from the first.
type Kind string

// The kinds, from none to grave. The last four are changes that a user would notice.
const (
	// Same is the same place for the same reasons, with the same fallbacks.
	Same Kind = "same"
	// OtherReasons is the same place by another rule or for other reasons; OtherFallbacks differs only in where it would go next.
	OtherFallbacks Kind = "fallbacks"
	OtherReasons   Kind = "reasons"
	// Moved goes elsewhere. Rejected was routed and would be rejected, Admitted the other way round; OtherRejection is rejected
	// with another code.
	Moved          Kind = "moved"
	Rejected       Kind = "rejected"
	Admitted       Kind = "admitted"
	OtherRejection Kind = "otherRejection"
)

// kinds in the order in which they are reported.
var kinds = []Kind{Moved, Rejected, Admitted, OtherRejection, OtherReasons, OtherFallbacks, Same}

// Changed says that the difference is more than an explanation.
func (k Kind) Changed() bool {
	return k == Moved || k == Rejected || k == Admitted || k == OtherRejection
}

// Case is one input that was decided twice.
type Case struct {
	Input route.Input
	// Prepared is the input as the second policy was given it: with latches of its own.
	Prepared route.Input
	// Before is the recorded decision, or that of the first of two policies.
	Before, After             event.RouteDecision
	BeforePolicy, AfterPolicy *policy.Policy
	// Reproduced says that the recorded decision's own policy gives its bytes again. If not, the program has changed since.
	Reproduced bool
	// Facts describe an input that was made up.
	Facts []string
	// Identical says that both decisions have the same bytes.
	Identical bool
}

// Kind compares the two decisions.
func (c Case) Kind() Kind {
	b, a := c.Before, c.After
	switch {
	case c.Identical:
		return Same
	case b.Kind == event.Route && a.Kind == event.Reject:
		return Rejected
	case b.Kind == event.Reject && a.Kind == event.Route:
		return Admitted
	case b.Kind == event.Reject && rejectionCode(a) != rejectionCode(b):
		return OtherRejection
	case b.Target != a.Target:
		return Moved
	case b.Rule != a.Rule || !slices.Equal(codes(b), codes(a)):
		return OtherReasons
	case !slices.Equal(b.Fallbacks, a.Fallbacks):
		return OtherFallbacks
	case c.BeforePolicy != nil && c.AfterPolicy != nil && c.BeforePolicy.Hash == c.AfterPolicy.Hash:
		return OtherReasons // the same policy, and yet other bytes: something small differs, and it must not be hidden
	default:
		return Same
	}
}

func rejectionCode(d event.RouteDecision) string {
	if d.Rejection == nil {
		return ""
	}
	return d.Rejection.Code
}

func codes(d event.RouteDecision) []string {
	out := make([]string, len(d.Reasons))
	for i, r := range d.Reasons {
		out[i] = r.Code
	}
	return out
}

// place is where a decision leads, in one word: the cluster, or "rejected".
func place(d event.RouteDecision) string {
	if d.Kind == event.Reject {
		return "rejected"
	}
	return d.Cluster
}

func decisionID(in route.Input) string { return query.AttemptID(in.Task.ID, in.Attempt) }
