package policy

import "strings"

// Condition is a compiled predicate over facts: a tree of tests. Everything in it must hold.
//
// A test of a missing fact is neither true nor false but unknown, and so is a condition that hangs on it (Kleene's logic):
// `not` of an unknown is unknown too, so that a missing number is never taken for a small one. What an unknown condition
// means is the rule's to say: by default it does not match.
type Condition struct {
	Tests []Test
	// AllOf must all hold, AnyOf at least one when there is any, None of these may hold.
	AnyOf, AllOf, None []Condition
}

// Test compares one fact.
type Test struct {
	// Fact is the fact's name; empty for an expression.
	Fact   string
	Op     Op
	Number float64
	Words  []string
	// Threshold is the named threshold that Number is the value of.
	Threshold string
	// OnMissing settles what a missing fact means for this test.
	OnMissing OnMissing

	expr *expression
	unit string
	bool bool
	slot int
	// faulty tests are kept so that one fault does not read as three.
	faulty bool
}

// OnMissing says what a missing fact means. The zero value leaves it open: the test is unknown.
type OnMissing string

// The ways to settle a missing fact.
const (
	MissingMatches OnMissing = "match"
	MissingFails   OnMissing = "no_match"
)

// Op is a comparison.
type Op string

// The comparisons.
const (
	Less         Op = "lt"
	LessEqual    Op = "lte"
	Greater      Op = "gt"
	GreaterEqual Op = "gte"
	Equal        Op = "eq"
	// In holds when the fact and the list share a word.
	In Op = "in"
	// IsKnown compares whether the fact is known, and so is never unknown itself.
	IsKnown Op = "known"
	// IsTrue holds when the expression is true.
	IsTrue Op = "expr"
)

// truth is a value of three-valued logic, in the order in which `and` takes the least and `or` the greatest.
type truth int8

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// Always reports whether the condition holds for every input: it tests nothing.
func (c *Condition) Always() bool {
	return len(c.Tests) == 0 && len(c.AnyOf) == 0 && len(c.AllOf) == 0 && len(c.None) == 0
}

func (c *Condition) eval(f *Facts, t *Thresholds) truth {
	result := yes
	for i := range c.Tests {
		if result = min(result, c.Tests[i].eval(f, t)); result == no {
			return no
		}
	}
	for i := range c.AllOf {
		if result = min(result, c.AllOf[i].eval(f, t)); result == no {
			return no
		}
	}
	for i := range c.None {
		if result = min(result, yes-c.None[i].eval(f, t)); result == no {
			return no
		}
	}
	if len(c.AnyOf) == 0 {
		return result
	}
	best := no
	for i := range c.AnyOf {
		if best = max(best, c.AnyOf[i].eval(f, t)); best == yes {
			break
		}
	}
	return min(result, best)
}

func (t *Test) eval(f *Facts, thresholds *Thresholds) truth {
	if t.Op == IsTrue {
		return t.missing(t.expr.eval(f, thresholds))
	}
	fact := &f.values[t.slot]
	if t.Op == IsKnown {
		return truthOf(fact.Known == (t.Number == 1))
	}
	if !fact.Known {
		return t.missing(unknown)
	}
	switch t.Op {
	case Less:
		return truthOf(fact.Number < t.Number)
	case LessEqual:
		return truthOf(fact.Number <= t.Number)
	case Greater:
		return truthOf(fact.Number > t.Number)
	case GreaterEqual:
		return truthOf(fact.Number >= t.Number)
	case Equal:
		return truthOf(fact.Number == t.Number)
	default:
		return truthOf(fact.has(t.Words))
	}
}

func (t *Test) missing(result truth) truth {
	switch {
	case result != unknown:
		return result
	case t.OnMissing == MissingMatches:
		return yes
	case t.OnMissing == MissingFails:
		return no
	default:
		return unknown
	}
}

// each calls do for every test of the condition, however deep.
func (c *Condition) each(do func(*Test)) {
	for i := range c.Tests {
		do(&c.Tests[i])
	}
	for _, subs := range [][]Condition{c.AllOf, c.AnyOf, c.None} {
		for i := range subs {
			subs[i].each(do)
		}
	}
}

// clone copies the condition, so that its tests can be given other numbers.
func (c *Condition) clone() Condition {
	list := func(subs []Condition) []Condition {
		if subs == nil {
			return nil
		}
		out := make([]Condition, len(subs))
		for i := range subs {
			out[i] = subs[i].clone()
		}
		return out
	}
	out := Condition{AnyOf: list(c.AnyOf), AllOf: list(c.AllOf), None: list(c.None)}
	out.Tests = append(out.Tests, c.Tests...)
	return out
}

// splitOp takes the comparison off a condition's key: estimated_bytes_lt is (estimated_bytes, lt).
func splitOp(key string) (fact string, op Op) {
	for _, op := range []Op{LessEqual, GreaterEqual, Less, Greater, IsKnown} {
		if name, ok := strings.CutSuffix(key, "_"+string(op)); ok {
			return name, op
		}
	}
	return key, Equal
}
