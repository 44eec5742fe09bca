package policy

import "strings"

// TraceResult is what became of a rule.
type TraceResult string

// The results.
const (
	// RuleDecided: it matched and decides.
	RuleDecided TraceResult = "decided"
	// RulePassed: it matched, tagged or notified, and the next was tried.
	RulePassed TraceResult = "passed"
	// RuleFailed: it did not match.
	RuleFailed TraceResult = "no_match"
	// RuleUnknown: it did not match because a fact is missing.
	RuleUnknown TraceResult = "missing"
	// RuleNotReached: a rule above it decided.
	RuleNotReached TraceResult = "not_reached"
)

// RuleTrace says what became of one rule, and why.
type RuleTrace struct {
	Rule   string      `json:"rule"`
	Line   int         `json:"line"`
	Result TraceResult `json:"result"`
	// Because are the tests that decided against the rule: the first that failed, or all branches of an any_of. Empty for a
	// rule that matched or was not reached.
	Because []TestTrace `json:"because,omitempty"`
}

// TestTrace is one test and what it met.
type TestTrace struct {
	// Test is the test in words.
	Test string `json:"test"`
	// Fact is the fact's name, empty for an expression, and Value what it was, "unknown" when it is missing.
	Fact  string `json:"fact,omitempty"`
	Value string `json:"value,omitempty"`
	// Missing says that the test could not be settled, for want of a fact: "unknown" may be a word like others.
	Missing bool `json:"missing,omitempty"`
}

// String says the trace in words.
func (t TestTrace) String() string {
	switch {
	case t.Missing && t.Fact == "":
		return "wants " + t.Test + ", which can't be told"
	case t.Missing:
		return "wants " + t.Test + ", which is not known"
	case t.Fact == "":
		return "wants " + t.Test + ", which is not so"
	default:
		return "wants " + t.Test + ", but it is " + t.Value
	}
}

// String says the trace in words.
func (t RuleTrace) String() string {
	switch t.Result {
	case RuleDecided:
		return t.Rule + " matched"
	case RulePassed:
		return t.Rule + " matched, and only tags or notifies"
	case RuleNotReached:
		return t.Rule + " was not reached"
	default:
		parts := make([]string, len(t.Because))
		for i, b := range t.Because {
			parts[i] = b.String()
		}
		return t.Rule + " did not match: " + strings.Join(parts, "; ")
	}
}

// Trace says of every rule what became of it with these facts, and why. It is slower than Match, and for explanations.
func (p *Policy) Trace(f *Facts) []RuleTrace {
	out := make([]RuleTrace, len(p.Rules))
	decided := false
	var tags []string
	f.Set(RuleTags, WordsFact())
	for i := range p.Rules {
		r := &p.Rules[i]
		t := RuleTrace{Rule: r.Name, Line: r.Line}
		switch {
		case decided:
			t.Result = RuleNotReached
		case r.holds(f, &p.Thresholds):
			t.Result = RuleDecided
			if decided = r.decides(); !decided {
				t.Result = RulePassed
				tags = append(tags, r.Tags...)
				f.Set(RuleTags, WordsFact(tags...))
			}
		default:
			result := r.When.eval(f, &p.Thresholds)
			t.Result = RuleFailed
			if result == unknown {
				t.Result = RuleUnknown
			}
			t.Because = r.When.because(f, &p.Thresholds, result)
		}
		out[i] = t
	}
	return out
}

// because finds the tests that made the condition no more than result.
func (c *Condition) because(f *Facts, th *Thresholds, result truth) []TestTrace {
	for i := range c.Tests {
		if t := &c.Tests[i]; t.eval(f, th) == result {
			return []TestTrace{t.trace(f, t.String(), result)}
		}
	}
	for i := range c.AllOf {
		if c.AllOf[i].eval(f, th) == result {
			return c.AllOf[i].because(f, th, result)
		}
	}
	for i := range c.None {
		if yes-c.None[i].eval(f, th) == result {
			return c.None[i].despite(f, th, yes-result)
		}
	}
	var out []TestTrace
	for i := range c.AnyOf {
		out = append(out, c.AnyOf[i].because(f, th, c.AnyOf[i].eval(f, th))...)
	}
	return out
}

// despite finds the tests that made a condition hold, or left it unknown, that was not to hold.
func (c *Condition) despite(f *Facts, th *Thresholds, result truth) []TestTrace {
	out := []TestTrace{}
	c.each(func(t *Test) {
		if len(out) == 0 && t.eval(f, th) == result {
			out = append(out, t.trace(f, "not ("+c.String()+")", result))
		}
	})
	if len(out) == 0 {
		out = append(out, TestTrace{Test: "not (" + c.String() + ")", Missing: result == unknown})
	}
	return out
}

func (t *Test) trace(f *Facts, text string, result truth) TestTrace {
	if t.Op == IsTrue {
		return TestTrace{Test: text, Missing: result == unknown}
	}
	spec := &f.words.specs[f.words.byName[t.Fact]]
	return TestTrace{Test: text, Fact: t.Fact, Value: spec.format(f.values[t.slot]), Missing: result == unknown}
}
