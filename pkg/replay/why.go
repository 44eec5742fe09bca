package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/route"
)

// Why says in sentences what made the two decisions of a case differ: the rule, the filter or the factor, and what the case says
// of each. It is empty for identical decisions.
func Why(c Case) []string {
	if c.Identical {
		return nil
	}
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	b, a := c.Before, c.After
	if b.Rule != a.Rule && !unruled(b) && !unruled(a) {
		sayRules(say, c)
	}
	if b.Kind == event.Reject && rejectionCode(a) != rejectionCode(b) && b.Rejection != nil {
		say("It was rejected: %s [%s].", stop(b.Rejection.Message), b.Rejection.Code)
	}
	if a.Kind == event.Reject && rejectionCode(a) != rejectionCode(b) && a.Rejection != nil {
		say("It is rejected now: %s [%s].", stop(a.Rejection.Message), a.Rejection.Code)
	}
	if b.Kind == event.Route && b.Target != a.Target {
		sayCandidate(say, b.Target, a, "now")
	}
	if a.Kind == event.Route && b.Target != a.Target {
		sayCandidate(say, a.Target, b, "before")
	}
	if c.BeforePolicy != nil && c.AfterPolicy != nil && c.BeforePolicy.Hash == c.AfterPolicy.Hash {
		for _, d := range differences(b, a, mostDifferences) {
			say("%s.", d)
		}
	} else if b.Target == a.Target && b.Rule == a.Rule && rejectionCode(a) == rejectionCode(b) {
		sayReasons(say, b, a)
	}
	return out
}

// unruled says that a decision was made before any rule was asked: by a budget, a quota, a deadline.
func unruled(d event.RouteDecision) bool { return d.Kind == event.Reject && d.Rule == "" }

// mostDifferences bounds the differences in JSON that are told.
const mostDifferences = 5

// sayCandidate says what became of one decision's winner in the other decision.
func sayCandidate(say func(string, ...any), winner event.Target, other event.RouteDecision, when string) {
	was := map[string]string{"now": "is", "before": "was"}[when]
	i := slices.IndexFunc(other.Candidates, func(c event.Candidate) bool { return c.Target == winner })
	if i < 0 {
		if j := slices.IndexFunc(other.Candidates, func(c event.Candidate) bool { return c.Cluster == winner.Cluster }); j >= 0 {
			say("%s %s %s %s.", winner.Cluster, was, when, other.Candidates[j].Target)
			return
		}
		if len(other.Candidates) > 0 {
			say("%s %s no candidate %s.", winner.Cluster, was, when)
		}
		return
	}
	switch c := other.Candidates[i]; {
	case c.Filtered != nil:
		say("%s %s removed by a filter %s: %s [%s].", winner.Cluster, was, when, stop(c.Filtered.Text), c.Filtered.Code)
	case c.LostBy != nil:
		say("%s %s behind %s %s: %s [%s].", winner.Cluster, was, other.Cluster, when, stop(route.LossText(&other, &c)), c.LostBy.Code)
	}
}

// sayReasons says which reasons came and went where the place stays the same.
func sayReasons(say func(string, ...any), b, a event.RouteDecision) {
	gone, come := without(b.Reasons, a.Reasons), without(a.Reasons, b.Reasons)
	for _, r := range gone {
		say("No longer a reason: %s [%s].", stop(r.Text), r.Code)
	}
	for _, r := range come {
		say("A reason now: %s [%s].", stop(r.Text), r.Code)
	}
	if !slices.Equal(b.Fallbacks, a.Fallbacks) {
		say("If it fails there, it went %s and goes %s now.", list(b.Fallbacks), list(a.Fallbacks))
	}
}

func list(targets []event.Target) string {
	if len(targets) == 0 {
		return "nowhere else"
	}
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Cluster
	}
	return "to " + strings.Join(names, ", then ")
}

// without returns the reasons whose code is not among the others.
func without(reasons, others []event.Reason) []event.Reason {
	var out []event.Reason
	for _, r := range reasons {
		if !slices.ContainsFunc(others, func(o event.Reason) bool { return o.Code == r.Code }) {
			out = append(out, r)
		}
	}
	return out
}

// stop takes a full stop off the end, where a sentence goes on.
func stop(s string) string { return strings.TrimSuffix(strings.TrimSpace(s), ".") }
