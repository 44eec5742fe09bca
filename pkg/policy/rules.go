package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Action is what a rule does.
type Action string

// The actions of a rule.
const (
	// ToPool routes to the rule's pool.
	ToPool Action = "pool"
	// ToReject rejects.
	ToReject Action = "reject"
	// ToRanking lets the ranking choose among all pools that pass the filters.
	ToRanking Action = "auto"
	// GoOn only tags or notifies: the rules behind it are tried too.
	GoOn Action = "go_on"
)

// Rule is one ordered rule. The first that matches decides, but for rules that only tag or notify.
type Rule struct {
	Name   string
	Line   int
	When   Condition
	Action Action
	Pool   string
	Reason string
	Notify bool
	// Strict forbids every other pool, also as a fallback.
	Strict bool
	// Fallback are the only other pools that may be used when the rule's pool can't be; empty means any.
	Fallback []string
	// Tags are added to the decision, and to the fact rule_tags for the rules behind this one.
	Tags []string
	// OnMissing says what it means that the condition hangs on a fact that is missing: MissingMatches or "does not match".
	OnMissing OnMissing

	column int
	// conditioned says that it has a `when`, faulty or not.
	conditioned bool
}

// ruleText is a rule as it stands in the text.
type ruleText struct {
	Rule
	when, route *field
}

// holds reports whether the rule matches.
func (r *Rule) holds(f *Facts, t *Thresholds) bool {
	switch r.When.eval(f, t) {
	case yes:
		return true
	case unknown:
		return r.OnMissing == MissingMatches
	default:
		return false
	}
}

// Allows reports whether the rule lets a pool take a request, at least when its own pool can't.
func (r *Rule) Allows(pool string) bool {
	switch {
	case r.Action != ToPool || pool == r.Pool:
		return true
	case r.Strict:
		return false
	default:
		return len(r.Fallback) == 0 || slices.Contains(r.Fallback, pool)
	}
}

func (r *Rule) decides() bool { return r.Action != GoOn }

var ruleOptions = []option[ruleText]{
	textOption("name", "What the rule is called in decisions; no two may have the same.", func(r *ruleText) *string { return &r.Name }).must(),
	{
		key: "when", about: "The tests that must all hold; a rule without it matches everything.",
		form: form{name: "a condition", schema: map[string]any{"$ref": "#/$defs/condition"}},
		read: func(_ *reader, f field, into *ruleText) { into.when, into.conditioned = &f, true },
	},
	{
		key: "route", about: "A pool's name; `auto` for the ranking's choice; `reject`. A rule without it only tags or notifies, and the next rule is tried.",
		form: form{name: "a pool's name, auto or reject", schema: map[string]any{"type": "string", "pattern": poolPattern}},
		read: func(r *reader, f field, into *ruleText) {
			into.route = &f
			into.Action, into.Pool = r.route(f)
		},
	},
	textOption("reason", "Why, in words: for the decision's reasons, and for the client.", func(r *ruleText) *string { return &r.Reason }),
	truthOption("notify_client", "Tell the client that this rule applied.", func(r *ruleText) *bool { return &r.Notify }).withDefault("false"),
	truthOption("strict", "Only this rule's pool will do, whatever becomes of it; otherwise others may step in when it can't take the request.", func(r *ruleText) *bool { return &r.Strict }).withDefault("false"),
	{
		key: "fallback", about: "The only pools that may step in for the rule's pool; any may when it is left out.",
		form: form{name: "a pool's name or a list of them", schema: wordsSchema()},
		read: func(r *reader, f field, into *ruleText) { into.Fallback = r.poolNames(f) },
	},
	wordsOption("tags", "Words to add to the decision; rules further down can test them as `rule_tags`.", func(r *ruleText) *[]string { return &r.Tags }),
	choiceOption("on_missing", "What it means when the condition hangs on a fact that is missing.", []OnMissing{MissingMatches, MissingFails},
		func(r *ruleText) *OnMissing { return &r.OnMissing }).withDefault("no_match"),
}

func (r *reader) rules(section field) []Rule {
	items := r.sequence(section)
	out := make([]Rule, 0, len(items))
	for _, item := range items {
		rule := ruleText{Rule: Rule{Line: lineOf(item.value), column: columnOf(item.value), Action: GoOn}}
		if !isMapping(item.value) {
			r.fault(item.value, item.path, "a rule must be a mapping: name, when, route, …")
			continue
		}
		readOptions(r, item, "a rule", ruleOptions, &rule)
		named := false
		for _, f := range r.mappingQuietly(item) {
			if f.key == "name" {
				named = true
				rule.Line, rule.column = lineOf(f.keyNode), columnOf(f.keyNode)
			}
		}
		if !named {
			r.fault(item.value, item.path, "`name` is missing")
		}
		if when := rule.when; when != nil {
			before := len(r.faults)
			rule.When = r.condition(*when, 0)
			if rule.When.Always() && len(r.faults) == before {
				r.fault(when.keyNode, when.path, "tests nothing; leave `when` out to match everything")
			}
		}
		r.checkRule(item, &rule)
		out = append(out, rule.Rule)
	}
	return out
}

// checkRule finds keys of a rule that don't go together.
func (r *reader) checkRule(item field, rule *ruleText) {
	fault := func(format string, args ...any) { r.fault(item.value, item.path, fmt.Sprintf(format, args...)) }
	if rule.route == nil && len(rule.Tags) == 0 && !rule.Notify {
		fault("`route` is missing: a pool's name, auto, or reject; a rule without it must set tags or notify_client")
		rule.Action = ""
	}
	if rule.Strict && len(rule.Fallback) > 0 {
		fault("`strict` allows no other pool and `fallback` names some: keep one of the two")
	}
	if rule.route != nil && rule.Action != ToPool && rule.Action != "" {
		if rule.Strict {
			fault("`strict` needs a pool to be strict about, not route: %s", rule.Action)
		}
		if len(rule.Fallback) > 0 {
			fault("`fallback` needs a pool to step in for, not route: %s", rule.Action)
		}
	}
	if rule.route == nil && (rule.Strict || len(rule.Fallback) > 0) {
		fault("`strict` and `fallback` need a `route`")
	}
	if rule.Pool != "" && slices.Contains(rule.Fallback, rule.Pool) {
		fault("%s can't step in for itself", rule.Pool)
	}
	if rule.OnMissing != "" && !rule.conditioned {
		fault("`on_missing` says nothing in a rule without `when`")
	}
}

func (r *reader) route(f field) (Action, string) {
	switch to := r.text(f); {
	case to == "reject":
		return ToReject, ""
	case to == "auto":
		return ToRanking, ""
	case slices.Contains(r.clusters, to):
		return ToPool, to
	default:
		r.fault(f.value, f.path, fmt.Sprintf("%q is no engine of this policy (%s), nor auto, nor reject", to, strings.Join(r.clusters, ", ")))
		return "", ""
	}
}

func (r *reader) poolNames(f field) []string {
	names := r.words(f)
	for _, n := range names {
		if !slices.Contains(r.clusters, n) {
			r.fault(f.value, f.path, fmt.Sprintf("%q is no engine of this policy (%s)", n, strings.Join(r.clusters, ", ")))
		}
	}
	return names
}

// rebind gives the tests of a rule that name a threshold the numbers of other thresholds, or returns it as it is.
func (r Rule) rebind(t *Thresholds) Rule {
	uses := false
	r.When.each(func(x *Test) { uses = uses || x.Threshold != "" })
	if !uses {
		return r
	}
	r.When = r.When.clone()
	r.When.each(func(x *Test) {
		if n, ok := t.Get(x.Threshold); ok && x.Threshold != "" {
			x.Number = n
		}
	})
	return r
}

// checkTags finds tests of tags that no rule sets.
func (r *reader) checkTags(p *Policy) {
	set := map[string]bool{}
	for _, view := range append(slices.Collect(maps.Values(p.tenants)), p) {
		for _, rule := range view.Rules {
			for _, tag := range rule.Tags {
				set[strings.ToLower(tag)] = true
			}
		}
	}
	for _, t := range r.tagTests {
		for _, w := range r.wordsQuietly(t) {
			if !set[strings.ToLower(w)] {
				r.fault(t.value, t.path, fmt.Sprintf("no rule sets the tag %q%s", w, suggest(w, slices.Sorted(maps.Keys(set)))))
			}
		}
	}
}
