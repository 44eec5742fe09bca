package route

import (
	"strconv"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
)

// filter is one hard constraint. It returns nil to let the candidate pass.
type filter struct {
	// Why the filter stands where it stands: cheapest first, and what can never change before what may.
	why   string
	check func(s *scene, c *candidate) *event.Filtered
	// queues says that the cluster itself makes a query wait until this no longer stands in the way.
	queues bool
}

// filters are tried in order, the first that fails names the reason. A missing signal about load or health never removes a
// candidate, it only makes it no good choice: what is unknown is said in the decision. A missing sign of freshness does remove a
// replica from a Task that asks for fresh data, because a wrong answer is worse than none.
var filters = []filter{
	{"a place where this Task failed before is out, whatever else holds", failedBefore, false},
	{"permission is fixed and free to check", permitted, false},
	{"so is that on the queue", laneOpen, false},
	{"so is what the pool can read", reachable, false},
	{"and what it can understand", speaks, false},
	{"and which functions and features it has", hasFunctions, false},
	{"and whether it takes writes", writable, false},
	{"history: what did not fit will not fit", memoryFits, false},
	{"the estimate against the pool's own limit", scanFits, false},
	{"how far a copy lags changes by the second", freshEnough, false},
	{"so do health and readiness", usable, true},
	{"and whether it has been sound for long enough", outOfQuarantine, true},
	{"what the tenant has running there changes with every query", tenantFits, false},
	{"the queue comes last: its reason should only be given when nothing else stands in the way", queueFits, true},
}

// filter puts every candidate through the filters.
func (s *scene) filter() {
	for i := range s.cands {
		c := &s.cands[i]
		for j := range filters {
			removed := filters[j].check(s, c)
			if removed == nil {
				continue
			}
			if c.Filtered == nil {
				c.Filtered, c.mayWait = removed, true
			}
			if c.mayWait = c.mayWait && filters[j].queues && removed.WaitHelps; !c.mayWait {
				break // whether it may wait for the rest is no question any more
			}
		}
	}
}

// applyRule keeps the rule's pool alone if any of its lanes passed the filters. If none did, the ranking gets what the rule allows:
// nothing if it is strict, its fallbacks if it names any, else all the rest.
func (s *scene) applyRule(rule *policy.Rule) {
	if rule.Action != policy.ToPool {
		return
	}
	usable := false
	for i := range s.cands {
		usable = usable || s.cands[i].Cluster == rule.Pool && s.cands[i].Filtered == nil
	}
	var out *event.Filtered // one for all
	for i := range s.cands {
		c := &s.cands[i]
		if c.Cluster == rule.Pool || !usable && rule.Allows(c.Cluster) {
			continue
		}
		if c.mayWait = false; c.Filtered == nil {
			if out == nil {
				out = removed(NotTheRulesPool, "rule", rule.Name, "cluster", rule.Pool)
			}
			c.Filtered = out
		}
	}
}

func removed(code Code, args ...string) *event.Filtered {
	return &event.Filtered{Reason: NewReason(code, args...)}
}

// later is a removal that waiting helps against, and more capacity too if scaling does.
func later(scaling bool, code Code, args ...string) *event.Filtered {
	f := removed(code, args...)
	f.WaitHelps, f.ScaleHelps = true, scaling
	return f
}

func ms(v float64) string { return strconv.FormatInt(int64(v+0.5), 10) }

func integer(n int64) string { return strconv.FormatInt(n, 10) }
