package replay

import (
	"slices"

	"github.com/pointsman/pointsman/pkg/policy"
)

// sayRules says why another rule decides.
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
	if after != "" && c.BeforePolicy != nil {
		if _, ok := ruleOf(c.BeforePolicy, after); !ok {
			say("Rule %q is new.", after)
		}
	}
	if before != "" && c.AfterPolicy != nil {
		if _, ok := ruleOf(c.AfterPolicy, before); !ok {
			say("Rule %q is gone.", before)
		}
	}
}

func ruleOf(p *policy.Policy, name string) (policy.Rule, bool) {
	i := slices.IndexFunc(p.Rules, func(r policy.Rule) bool { return r.Name == name })
	if i < 0 {
		return policy.Rule{}, false
	}
	return p.Rules[i], true
}
