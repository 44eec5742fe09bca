package policy

import (
	"slices"
	"strings"
)

// Condition is a compiled predicate over facts: a tree of tests.
type Condition struct {
	// Tests must all hold.
	Tests []Test
	// AnyOf: at least one must hold, when there is any. AllOf: all must hold. None: none may hold.
	AnyOf, AllOf, None []Condition
}

// Test compares one fact.
type Test struct {
	Fact   string
	Op     Op
	Number float64
	Words  []string
	// OnMissing is the test's result when the fact is absent; the default is "does not match".
	OnMissing bool
}

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
)

// Always reports whether the condition holds for every input: it tests nothing.
func (c Condition) Always() bool {
	return len(c.Tests) == 0 && len(c.AnyOf) == 0 && len(c.AllOf) == 0 && len(c.None) == 0
}

// Holds evaluates the condition.
func (c Condition) Holds(f Facts) bool {
	for _, t := range c.Tests {
		if !t.holds(f) {
			return false
		}
	}
	for _, sub := range c.AllOf {
		if !sub.Holds(f) {
			return false
		}
	}
	for _, sub := range c.None {
		if sub.Holds(f) {
			return false
		}
	}
	if len(c.AnyOf) == 0 {
		return true
	}
	return slices.ContainsFunc(c.AnyOf, func(sub Condition) bool { return sub.Holds(f) })
}

func (t Test) holds(f Facts) bool {
	fact, ok := f[t.Fact]
	if !ok || !fact.Known {
		return t.OnMissing
	}
	switch t.Op {
	case Less:
		return fact.Number < t.Number
	case LessEqual:
		return fact.Number <= t.Number
	case Greater:
		return fact.Number > t.Number
	case GreaterEqual:
		return fact.Number >= t.Number
	case Equal:
		return fact.Number == t.Number
	case In:
		return slices.ContainsFunc(fact.Words, func(w string) bool {
			return slices.ContainsFunc(t.Words, func(want string) bool { return strings.EqualFold(w, want) })
		})
	default:
		return false
	}
}

// splitOp takes the comparison off a condition's key: estimated_bytes_lt is (estimated_bytes, lt).
func splitOp(key string) (fact string, op Op) {
	for _, op := range []Op{LessEqual, GreaterEqual, Less, Greater} {
		if name, ok := strings.CutSuffix(key, "_"+string(op)); ok {
			return name, op
		}
	}
	return key, Equal
}
