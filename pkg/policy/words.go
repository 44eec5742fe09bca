package policy

import (
	"strconv"
	"strings"
)

var opWords = map[Op]string{
	Less: "below", LessEqual: "at most", Greater: "above", GreaterEqual: "at least", Equal: "equal to",
}

// String says the condition in words.
func (c *Condition) String() string {
	var parts []string
	for i := range c.Tests {
		parts = append(parts, c.Tests[i].String())
	}
	for i := range c.AllOf {
		parts = append(parts, c.AllOf[i].inner())
	}
	for i := range c.None {
		parts = append(parts, "not ("+c.None[i].String()+")")
	}
	if len(c.AnyOf) > 0 {
		branches := make([]string, len(c.AnyOf))
		for i := range c.AnyOf {
			branches[i] = c.AnyOf[i].inner()
		}
		text := strings.Join(branches, " or ")
		if len(branches) > 1 && len(parts) > 0 {
			text = "(" + text + ")"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "always"
	}
	return strings.Join(parts, " and ")
}

// inner is the condition as a part of another.
func (c *Condition) inner() string {
	if len(c.Tests)+len(c.AllOf)+len(c.None)+len(c.AnyOf) > 1 {
		return "(" + c.String() + ")"
	}
	return c.String()
}

// String says the test in words.
func (t *Test) String() string {
	text := t.words()
	switch t.OnMissing {
	case MissingMatches:
		return text + " (or unknown)"
	default:
		return text
	}
}

func (t *Test) words() string {
	switch t.Op {
	case IsTrue:
		if t.expr == nil {
			return "an expression"
		}
		return "`" + t.expr.text + "`"
	case IsKnown:
		if t.Number == 1 {
			return t.Fact + " is known"
		}
		return t.Fact + " is unknown"
	case In:
		if len(t.Words) == 1 {
			return t.Fact + " is " + t.Words[0]
		}
		return t.Fact + " is one of " + strings.Join(t.Words, ", ")
	case Equal:
		if t.bool {
			return t.Fact + " is " + strconv.FormatBool(t.Number == 1)
		}
		return t.Fact + " is " + t.amount()
	default:
		return t.Fact + " is " + opWords[t.Op] + " " + t.amount()
	}
}

func (t *Test) amount() string {
	text := formatUnit(t.Number, t.unit)
	if t.Threshold != "" {
		text += " ($" + t.Threshold + ")"
	}
	return text
}

func formatUnit(n float64, unit string) string {
	switch unit {
	case "bytes":
		return formatSize(n)
	case "":
		return formatNumber(n)
	default:
		return formatNumber(n) + " " + unit
	}
}

// format writes a fact for people.
func (s *FactSpec) format(f Fact) string {
	switch {
	case !f.Known:
		return "unknown"
	case s.Kind == BoolKind:
		return strconv.FormatBool(f.Number != 0)
	case s.Kind == NumberKind:
		return formatUnit(f.Number, s.Unit)
	case f.Word != "":
		return f.Word
	case len(f.Words) > 0:
		return strings.Join(f.Words, ", ")
	default:
		return "none"
	}
}

// does says in words what a rule does when it matches.
func (r *Rule) does() string {
	var text string
	switch r.Action {
	case ToPool:
		text = "goes to " + r.Pool
		switch {
		case r.Strict:
			text += " and nowhere else"
		case len(r.Fallback) > 0:
			text += ", or else to " + strings.Join(r.Fallback, " or ")
		}
	case ToReject:
		text = "is rejected"
	case ToRanking:
		text = "goes where the ranking sends it"
	case GoOn:
		text = "goes on to the next rule"
	default:
		text = string(r.Action)
	}
	if len(r.Tags) > 0 {
		text += ", tagged " + strings.Join(r.Tags, ", ")
	}
	if r.Notify {
		text += "; the client is told"
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}
