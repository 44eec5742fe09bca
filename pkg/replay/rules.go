package replay

import (
	"slices"
	"strings"

	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/route"
)

// sayRules says why another rule decides: what became of each of the two under the other policy.
func sayRules(say func(string, ...any), c Case) {
	before, after := c.Before.Rule, c.After.Rule
	switch {
	case before == "":
		say("Rule %q decides now; before, none did.", after)
	case after == "":
		say("Rule %q decided; now none does.", before)
	default:
		say("Rule %q decided; now it is rule %q.", before, after)
	}
	if after != "" && c.BeforePolicy != nil && before != "" {
		in := c.Input
		in.Policy = c.BeforePolicy
		sayRule(say, in, after, "Before, ", "is new")
	}
	if before != "" && c.AfterPolicy != nil && after != "" {
		in := c.Prepared
		in.Policy = c.AfterPolicy
		sayRule(say, in, before, "Now ", "is gone")
	}
}

// sayRule says why a rule does not decide an input by the input's policy.
func sayRule(say func(string, ...any), in route.Input, rule, when, absent string) {
	traces := route.Trace(in)
	i := slices.IndexFunc(traces, func(t policy.RuleTrace) bool { return t.Rule == rule })
	if i < 0 {
		say("Rule %q %s.", rule, absent)
		return
	}
	switch t := traces[i]; t.Result {
	case policy.RuleNotReached:
		j := slices.IndexFunc(traces, func(t policy.RuleTrace) bool { return t.Result == policy.RuleDecided })
		say("%srule %q stands behind %q, which matches first.", when, rule, traces[j].Rule)
	case policy.RuleFailed, policy.RuleUnknown:
		texts := make([]string, len(t.Because))
		for k, b := range t.Because {
			texts[k] = b.String()
		}
		say("%srule %q does not match: %s.", when, rule, strings.Join(texts, "; "))
	case policy.RuleDecided, policy.RulePassed:
		// A decision that ended before the rules were asked says so itself.
	}
}
