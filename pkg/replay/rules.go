package replay

import (
	"fmt"
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
	if before == "" || after == "" || c.BeforePolicy == nil || c.AfterPolicy == nil {
		return
	}
	in, prepared := c.Input, c.Prepared
	in.Policy, prepared.Policy = c.BeforePolicy, c.AfterPolicy
	why := append(ruleWhy(in, after, "In the old policy ", "is new"), ruleWhy(prepared, before, "In the new policy ", "is gone")...)
	if len(why) == 0 {
		say("Both match, and the one that stands further up decides.")
	}
	for _, w := range why {
		say("%s", w)
	}
}

// ruleWhy says why a rule does not match an input by the input's policy; nothing when it would.
func ruleWhy(in route.Input, rule, where, absent string) []string {
	traces := route.Trace(in)
	i := slices.IndexFunc(traces, func(t policy.RuleTrace) bool { return t.Rule == rule })
	if i < 0 {
		return []string{fmt.Sprintf("Rule %q %s.", rule, absent)}
	}
	t := traces[i]
	if t.Result != policy.RuleFailed && t.Result != policy.RuleUnknown {
		return nil
	}
	texts := make([]string, len(t.Because))
	for k, b := range t.Because {
		texts[k] = b.String()
	}
	return []string{fmt.Sprintf("%srule %q does not match: %s.", where, rule, strings.Join(texts, "; "))}
}
