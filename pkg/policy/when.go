package policy

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// maxNesting bounds how deep conditions nest.
const maxNesting = 16

func (r *reader) condition(f field, depth int) Condition {
	var c Condition
	if depth > maxNesting {
		r.fault(f.value, f.path, fmt.Sprintf("conditions nest deeper than %d", maxNesting))
		return c
	}
	for _, t := range r.mapping(f.path, f.value) {
		switch t.key {
		case "any_of", "all_of":
			items := r.sequence(t)
			if len(items) == 0 && isSequence(t.value) {
				r.fault(t.keyNode, t.path, "lists nothing")
			}
			for _, item := range items {
				sub := r.condition(item, depth+1)
				if t.key == "any_of" {
					c.AnyOf = append(c.AnyOf, sub)
				} else {
					c.AllOf = append(c.AllOf, sub)
				}
			}
		case "not":
			c.None = append(c.None, r.condition(t, depth+1))
		default:
			// A faulty test is kept: without it the rule would look like a catch-all, and one fault would read as three.
			c.Tests = append(c.Tests, r.test(t))
		}
	}
	return c
}

// testOptions are the keys of a test that is written as a mapping: {value: 50 GB, on_missing: match}.
var testOptions = []option[Test]{
	{key: "value", about: "What the fact is compared with.", form: form{name: "as without the mapping"}.must(), read: func(*reader, field, *Test) {}},
	choiceOption("on_missing", "What it means when the fact is missing: the test holds (match), or it does not (no_match).",
		[]OnMissing{MissingMatches, MissingFails}, func(t *Test) *OnMissing { return &t.OnMissing }),
}

func (f form) must() form {
	f.required = true
	return f
}

func (r *reader) test(t field) Test {
	before := len(r.faults)
	out := r.cleanTest(t)
	out.faulty = len(r.faults) > before
	return out
}

func (r *reader) cleanTest(t field) Test {
	out := Test{slot: -1}
	if isMapping(t.value) {
		outer := t
		readOptions(r, outer, "a test", testOptions, &out)
		found := false
		for _, f := range r.mappingQuietly(outer) {
			if f.key == "value" {
				t.value, found = f.value, true
			}
		}
		if !found {
			r.fault(outer.value, outer.path, "`value` is missing: {value: …, on_missing: match}")
			return out
		}
	}
	if t.key == string(IsTrue) {
		out.Op = IsTrue
		out.expr = r.expression(t)
		return out
	}
	fact, op := splitOp(t.key)
	i, ok := r.names.byName[fact]
	if !ok {
		r.fault(t.keyNode, t.path, fmt.Sprintf("no such fact as %q%s", fact, suggest(fact, r.names.names())))
		out.Fact = fact
		return out
	}
	spec := r.names.specs[i]
	out.Fact, out.Op, out.unit, out.bool, out.slot = fact, op, spec.Unit, spec.Kind == BoolKind, r.names.use(i)
	switch {
	case op == IsKnown:
		out.Number = BoolFact(r.truth(t)).Number
		if out.OnMissing != "" {
			r.fault(t.value, t.path, "on_missing says nothing here: whether a fact is known is always known")
		}
	case spec.Kind != NumberKind && op != Equal:
		r.fault(t.keyNode, t.path, fmt.Sprintf("%s is %s and can't be compared with %s", fact, spec.Kind, op))
	case spec.Kind == NumberKind:
		out.Number, out.Threshold = r.amount(t)
	case spec.Kind == BoolKind:
		out.Number = BoolFact(r.truth(t)).Number
	default:
		out.Op, out.Words = In, r.words(t)
		if len(out.Words) == 0 && isSequence(t.value) {
			r.fault(t.value, t.path, "lists no word, so it can never hold")
		}
		if RuleTags == FactID(i) {
			r.tagTests = append(r.tagTests, t)
		}
	}
	return out
}

// amount reads a number, a size, or $name for a threshold.
func (r *reader) amount(f field) (n float64, threshold string) {
	s, ok := f.value.(*ast.StringNode)
	if !ok || !strings.HasPrefix(s.Value, "$") {
		return r.number(f), ""
	}
	name := s.Value[1:]
	n, ok = r.numbers.Get(name)
	if !ok {
		r.fault(f.value, f.path, fmt.Sprintf("no such threshold as %q%s", name, suggest(name, r.numbers.Names())))
	}
	r.usedThresholds[name] = true
	return n, name
}
