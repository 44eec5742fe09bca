package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/shape"
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
				sub := r.part(item, depth)
				if t.key == "any_of" {
					c.AnyOf = append(c.AnyOf, sub)
				} else {
					c.AllOf = append(c.AllOf, sub)
				}
			}
		case "not":
			c.None = append(c.None, r.part(t, depth))
		default:
			// A faulty test is kept: without it the rule would look like a catch-all, and one fault would read as three.
			c.Tests = append(c.Tests, r.test(t))
		}
	}
	return c
}

// part reads a condition within another. One that tests nothing always holds, so that the whole would always hold, or never.
func (r *reader) part(f field, depth int) Condition {
	before := len(r.faults)
	c := r.condition(f, depth+1)
	if c.Always() && len(r.faults) == before {
		r.fault(f.value, f.path, "tests nothing")
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
		r.knownWords(t, FactID(i), out.Words)
		if RuleTags == FactID(i) {
			r.tagTests = append(r.tagTests, t)
		}
	}
	return out
}

// closed are the facts whose words are a closed list: another word could never be met.
var closed = map[FactID][]string{
	PrincipalClass: {string(query.Human), string(query.Batch), string(query.Agent)},
	Consistency:    {string(query.Eventual), string(query.ReadYourWrites), string(query.Strong)},
	Statement:      statements(),
}

// UnknownStatement is the word that stands for a statement whose verb is not known: that is a fact too, and must not slip through
// every rule unseen.
const UnknownStatement = "unknown"

func statements() []string {
	out := []string{UnknownStatement}
	for _, s := range shape.Statements {
		out = append(out, string(s))
	}
	return out
}

// knownWords finds words that a fact can't have.
func (r *reader) knownWords(t field, id FactID, words []string) {
	known := closed[id]
	if known == nil {
		return
	}
	for _, w := range words {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, w) }) {
			r.fault(t.value, t.path, fmt.Sprintf("%q is no %s%s", w, TaskFacts[id].Name, suggest(w, known)))
		}
	}
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
