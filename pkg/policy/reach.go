package policy

import (
	"fmt"
	"hash/fnv"
	"slices"
)

// formula is a rule's condition as "and" and "or" over literals: negations are pushed down to them, and what a missing fact
// means is settled. It is exact: it holds if and only if the rule matches.
type formula struct {
	// lit is set for a leaf. Else the formula holds if all of its parts do, or, with either, if one does.
	lit    *literal
	either bool
	parts  []formula
}

// literal is one fact with the values that will do, or one expression.
type literal struct {
	fact    int
	accepts set
	expr    string
	// negated and missing are for expressions: whether it must be false, and whether it may be unknown.
	negated, missing bool
}

// formulaOf settles missing facts as the rule says: what is unknown counts as matching or not, and since negations are pushed
// down first, that may be said of each literal alone.
func (v *vocabulary) formulaOf(c *Condition, negated, missingMatches bool) formula {
	out := formula{either: negated}
	for i := range c.Tests {
		out.parts = append(out.parts, formula{lit: v.literalOf(&c.Tests[i], negated, missingMatches)})
	}
	for i := range c.AllOf {
		out.parts = append(out.parts, v.formulaOf(&c.AllOf[i], negated, missingMatches))
	}
	for i := range c.None {
		out.parts = append(out.parts, v.formulaOf(&c.None[i], !negated, missingMatches))
	}
	if len(c.AnyOf) > 0 {
		anyOf := formula{either: !negated}
		for i := range c.AnyOf {
			anyOf.parts = append(anyOf.parts, v.formulaOf(&c.AnyOf[i], negated, missingMatches))
		}
		out.parts = append(out.parts, anyOf)
	}
	return out.flat()
}

// flat merges parts of the same kind into their parent, and formulas of one part into that.
func (f formula) flat() formula {
	var parts []formula
	for _, p := range f.parts {
		if p.lit == nil && p.either == f.either {
			parts = append(parts, p.parts...)
		} else {
			parts = append(parts, p)
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	f.parts = parts
	return f
}

func (v *vocabulary) literalOf(t *Test, negated, missingMatches bool) *literal {
	if t.faulty {
		return &literal{fact: -2}
	}
	missing := missingMatches
	switch t.OnMissing {
	case MissingMatches:
		missing = !negated
	case MissingFails:
		missing = negated
	}
	if t.Op == IsTrue {
		text := ""
		if t.expr != nil {
			text = t.expr.text
		}
		return &literal{fact: -1, expr: text, negated: negated, missing: missing}
	}
	fact := v.byName[t.Fact]
	s := setOf(t, v.specs[fact].Kind)
	if t.Op == IsKnown {
		if negated {
			known := *t
			known.Number = 1 - t.Number
			s = setOf(&known, v.specs[fact].Kind)
		}
		return &literal{fact: fact, accepts: s}
	}
	if negated {
		s = s.complement()
	}
	s.missing = missing
	return &literal{fact: fact, accepts: s}
}

// joined merges the literals of an "and" that are about one fact, as far as that can be said.
func (f formula) joined() formula {
	if f.lit != nil || f.either {
		return f
	}
	out := formula{}
next:
	for _, p := range f.parts {
		if p.lit != nil && p.lit.fact >= 0 {
			for i, have := range out.parts {
				if have.lit == nil || have.lit.fact != p.lit.fact {
					continue
				}
				if s, ok := have.lit.accepts.and(p.lit.accepts); ok {
					out.parts[i] = formula{lit: &literal{fact: p.lit.fact, accepts: s}}
					continue next
				}
			}
		}
		out.parts = append(out.parts, p)
	}
	return out
}

// never reports that the formula can't hold, as far as that can be said.
func (f formula) never() bool {
	switch {
	case f.lit != nil:
		return f.lit.fact >= 0 && f.lit.accepts.empty()
	case f.either:
		return len(f.parts) > 0 && !slices.ContainsFunc(f.parts, func(p formula) bool { return !p.never() })
	default:
		return slices.ContainsFunc(f.joined().parts, formula.never)
	}
}

// implies reports that g holds wherever f does, as far as that can be said. False may also mean that nobody knows.
func (f *formula) implies(g *formula) bool {
	switch {
	case g.lit == nil && !g.either: // all parts of g
		for i := range g.parts {
			if !f.implies(&g.parts[i]) {
				return false
			}
		}
		return true
	case f.lit == nil && f.either: // whichever part of f holds
		for i := range f.parts {
			if !f.parts[i].implies(g) {
				return false
			}
		}
		return len(f.parts) > 0
	case g.lit == nil: // one part of g
		for i := range g.parts {
			if f.implies(&g.parts[i]) {
				return true
			}
		}
		return false
	case f.lit == nil: // one part of f
		for i := range f.parts {
			if f.parts[i].implies(g) {
				return true
			}
		}
		return false
	default:
		return f.lit.implies(g.lit)
	}
}

func (l *literal) implies(o *literal) bool {
	switch {
	case l.fact != o.fact || l.fact == -2:
		return false
	case l.fact == int(RuleTags):
		return false // rules between the two may set tags
	case l.fact == -1:
		return l.expr == o.expr && l.negated == o.negated && (!l.missing || o.missing)
	default:
		return l.accepts.within(o.accepts)
	}
}

// facts is a mark for each fact of the formula, so that most pairs of rules are told apart at once: need are those without
// which it can't be implied.
func (f formula) facts(need bool) uint64 {
	if f.lit != nil {
		return 1 << (uint(f.lit.fact+2) % 64)
	}
	var out uint64
	if need && f.either {
		return 0
	}
	for _, p := range f.parts {
		out |= p.facts(need)
	}
	return out
}

// marks are one bit for each word that the formula accepts of a fact of words. Of an "and" it takes those of the first such
// fact with first, since what implies the whole implies that part; without first, all there are.
func (f *formula) marks(first bool) uint64 {
	if f.lit != nil {
		var out uint64
		if f.lit.fact >= 0 && !f.lit.accepts.except && !f.lit.accepts.missing {
			for _, w := range f.lit.accepts.words {
				h := fnv.New32a()
				_, _ = h.Write([]byte(w))
				out |= 1 << (h.Sum32() % 64)
			}
		}
		return out
	}
	if first && f.either {
		return 0
	}
	var out uint64
	for i := range f.parts {
		if out |= f.parts[i].marks(first); first && out != 0 {
			break
		}
	}
	return out
}

// reachable lists rules that can't be reached: nothing is left of what they match, or there is nothing that they match.
func (r *reader) reachable(p *Policy, section string, rules []Rule) {
	type seen struct {
		index      int
		f          formula
		need, have uint64
		key, words uint64
	}
	var above []seen
	catchAll := -1
	for i := range rules {
		rule := &rules[i]
		path, at := fmt.Sprintf("%s[%d]", section, i), place{rule.Line, rule.column}
		if catchAll >= 0 {
			r.faultAt(at, path, fmt.Sprintf("unreachable: rule %q above has no condition and takes everything", rules[catchAll].Name))
			continue
		}
		if rule.When.Always() {
			if rule.decides() && !rule.conditioned {
				catchAll = i
			}
			continue
		}
		f := r.names.formulaOf(&rule.When, false, rule.OnMissing == MissingMatches).joined()
		if f.never() {
			r.faultAt(at, path, "never matches: its tests contradict each other")
			continue
		}
		s := seen{index: i, f: f, need: f.facts(true), have: f.facts(false), key: f.marks(true), words: f.marks(false)}
		for j := range above {
			e := &above[j]
			if e.need&^s.have == 0 && (e.key == 0 || e.key&s.words != 0) && f.implies(&e.f) && r.coveredEverywhere(p, &rules[e.index], rule) {
				r.faultAt(at, path, fmt.Sprintf("unreachable: rule %q in line %d takes everything that this one matches", rules[e.index].Name, rules[e.index].Line))
				break
			}
		}
		if rule.decides() {
			above = append(above, s)
		}
	}
}

// coveredEverywhere reports whether a rule covers another with the thresholds of every tenant too.
func (r *reader) coveredEverywhere(p *Policy, above, below *Rule) bool {
	for _, view := range p.tenants {
		a, b := above.rebind(&view.Thresholds), below.rebind(&view.Thresholds)
		fa := r.names.formulaOf(&a.When, false, a.OnMissing == MissingMatches).joined()
		if fb := r.names.formulaOf(&b.When, false, b.OnMissing == MissingMatches).joined(); !fb.implies(&fa) {
			return false
		}
	}
	return true
}
