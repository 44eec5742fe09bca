package policy

import (
	"math"
	"slices"
	"strings"
)

// set is the values of a fact that a test accepts, and whether it accepts that the fact is missing.
type set struct {
	// kind says which of the fields below counts.
	kind    Kind
	ranges  []interval // numbers and truth values, in order, apart from each other
	words   []string   // lower case, sorted
	except  bool       // the words are those not accepted
	missing bool
}

// interval is a range of numbers; open ends don't belong to it.
type interval struct {
	low, high         float64
	lowOpen, highOpen bool
}

func (i interval) empty() bool {
	return i.low > i.high || (i.low == i.high && (i.lowOpen || i.highOpen))
}

// setOf is the set of a test that is no expression.
func setOf(t *Test, kind Kind) set {
	s := set{kind: kind}
	if t.Op == IsKnown {
		if t.Number == 1 {
			return all(kind)
		}
		s.missing = true
		return s
	}
	if kind == WordKind || kind == WordsKind {
		for _, w := range t.Words {
			s.words = append(s.words, strings.ToLower(w))
		}
		slices.Sort(s.words)
		s.words = slices.Compact(s.words)
		return s
	}
	i := interval{low: math.Inf(-1), high: math.Inf(1)}
	switch t.Op {
	case Less:
		i.high, i.highOpen = t.Number, true
	case LessEqual:
		i.high = t.Number
	case Greater:
		i.low, i.lowOpen = t.Number, true
	case GreaterEqual:
		i.low = t.Number
	default:
		i.low, i.high = t.Number, t.Number
	}
	s.ranges = []interval{i}
	return s
}

// all is every value of a kind, but not that it is missing.
func all(kind Kind) set {
	switch kind {
	case WordKind, WordsKind:
		return set{kind: kind, except: true}
	case BoolKind:
		return set{kind: kind, ranges: []interval{{low: 0, high: 0}, {low: 1, high: 1}}}
	default:
		return set{kind: kind, ranges: []interval{{low: math.Inf(-1), high: math.Inf(1)}}}
	}
}

// complement is every value that is not in the set; whether it accepts a missing fact is the caller's to say.
func (s set) complement() set {
	out := set{kind: s.kind}
	if s.kind == WordKind || s.kind == WordsKind {
		out.words, out.except = s.words, !s.except
		return out
	}
	at, open := math.Inf(-1), false
	for _, i := range s.ranges {
		if gap := (interval{low: at, lowOpen: open, high: i.low, highOpen: !i.lowOpen}); !gap.empty() && !math.IsInf(i.low, -1) {
			out.ranges = append(out.ranges, gap)
		}
		at, open = i.high, !i.highOpen
	}
	if !math.IsInf(at, 1) || len(s.ranges) == 0 {
		out.ranges = append(out.ranges, interval{low: at, lowOpen: open, high: math.Inf(1)})
	}
	if s.kind == BoolKind {
		out.ranges = intersect(out.ranges, all(BoolKind).ranges)
	}
	return out
}

func intersect(a, b []interval) []interval {
	var out []interval
	for _, x := range a {
		for _, y := range b {
			i := x
			if y.low > i.low || (y.low == i.low && y.lowOpen) {
				i.low, i.lowOpen = y.low, y.lowOpen
			}
			if y.high < i.high || (y.high == i.high && y.highOpen) {
				i.high, i.highOpen = y.high, y.highOpen
			}
			if !i.empty() {
				out = append(out, i)
			}
		}
	}
	return out
}

// empty reports whether nothing is in the set, not even a missing fact.
func (s set) empty() bool {
	if s.missing {
		return false
	}
	if s.kind == WordKind || s.kind == WordsKind {
		return !s.except && len(s.words) == 0
	}
	return len(s.ranges) == 0
}

// within reports whether everything in the set is in the other too.
func (s set) within(o set) bool {
	if s.missing && !o.missing {
		return false
	}
	if s.kind != WordKind && s.kind != WordsKind {
		for _, i := range s.ranges {
			if !slices.ContainsFunc(o.ranges, i.within) {
				return false
			}
		}
		return true
	}
	switch {
	case !s.except && len(s.words) == 0, o.except && len(o.words) == 0:
		return true
	case !s.except && !o.except:
		return subset(s.words, o.words)
	case s.except && o.except:
		return subset(o.words, s.words)
	case !s.except:
		// A fact of several words may have one that is accepted and one that is not.
		return s.kind == WordKind && !slices.ContainsFunc(s.words, func(w string) bool { return slices.Contains(o.words, w) })
	default:
		return false
	}
}

func (i interval) within(j interval) bool {
	lowOK := i.low > j.low || (i.low == j.low && (i.lowOpen || !j.lowOpen))
	highOK := i.high < j.high || (i.high == j.high && (i.highOpen || !j.highOpen))
	return lowOK && highOK
}

func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(w string) bool { return !slices.Contains(b, w) })
}

// and is what both sets accept, or false where that is no set of this kind: a fact of several words may meet two lists by
// two words.
func (s set) and(o set) (set, bool) {
	out := set{kind: s.kind, missing: s.missing && o.missing}
	switch {
	case s.kind != WordKind && s.kind != WordsKind:
		out.ranges = intersect(s.ranges, o.ranges)
	case s.except && o.except:
		out.except = true
		out.words = slices.Concat(s.words, o.words)
		slices.Sort(out.words)
		out.words = slices.Compact(out.words)
	case s.kind == WordsKind && !s.except && !o.except:
		return out, false
	default:
		if s.except {
			s, o = o, s
		}
		for _, w := range s.words {
			if slices.Contains(o.words, w) != o.except {
				out.words = append(out.words, w)
			}
		}
		// For a fact of several words this is more than both accept; less is what matters to those who ask.
		if s.kind == WordsKind && len(out.words) > 0 {
			return out, false
		}
	}
	return out, true
}
