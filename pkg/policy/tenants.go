package policy

import "fmt"

// tenantText is what a tenant has of its own.
type tenantText struct {
	thresholds, defaults, rules *field
}

var tenantOptions = []option[tenantText]{
	{
		key: "thresholds", about: "Other numbers for thresholds, within their ranges.",
		form: form{name: "thresholds", schema: map[string]any{"$ref": "#/$defs/overrides"}},
		read: func(_ *reader, f field, into *tenantText) { into.thresholds = &f },
	},
	{
		key: "defaults", about: "Other defaults.",
		form: form{name: "defaults", schema: map[string]any{"$ref": "#/$defs/defaults"}},
		read: func(_ *reader, f field, into *tenantText) { into.defaults = &f },
	},
	{
		key: "rules", about: "Rules that are tried before the policy's own.",
		form: form{name: "a list of rules", schema: map[string]any{"$ref": "#/$defs/rules"}},
		read: func(_ *reader, f field, into *tenantText) { into.rules = &f },
	},
}

// tenantPolicies makes the policy of each tenant that has something of its own: the whole policy, with its numbers and its rules.
func (r *reader) tenantPolicies(section field, p *Policy) map[string]*Policy {
	out := map[string]*Policy{}
	for _, f := range r.mapping(section.path, section.value) {
		var t tenantText
		readOptions(r, f, "a tenant", tenantOptions, &t)
		if t == (tenantText{}) {
			r.fault(f.keyNode, f.path, "the tenant has nothing of its own")
			continue
		}
		view := *p
		view.Thresholds.Named = p.Thresholds.Named
		if t.thresholds != nil {
			r.override(*t.thresholds, &view.Thresholds)
		}
		if t.defaults != nil {
			readOptions(r, *t.defaults, "the defaults", defaultOptions, &view.Defaults)
		}
		var own []Rule
		if t.rules != nil {
			r.numbers = &view.Thresholds
			own = r.rules(*t.rules)
			r.numbers = &p.Thresholds
			r.uniqueNames(t.rules.path, own, p.Rules)
			r.reachable(p, t.rules.path, own)
		}
		view.Rules = own
		for _, rule := range p.Rules {
			view.Rules = append(view.Rules, rule.rebind(&view.Thresholds))
		}
		out[f.key] = &view
	}
	return out
}

// uniqueNames finds rules whose name stands above already, or in the policy's own rules.
func (r *reader) uniqueNames(section string, rules, others []Rule) {
	seen := map[string]int{}
	for _, rule := range others {
		seen[rule.Name] = rule.Line
	}
	for i, rule := range rules {
		if line, ok := seen[rule.Name]; ok && rule.Name != "" {
			r.faultAt(place{rule.Line, rule.column}, fmt.Sprintf("%s[%d]", section, i),
				fmt.Sprintf("the name %q is used by the rule in line %d already", rule.Name, line))
			continue
		}
		seen[rule.Name] = rule.Line
	}
}
