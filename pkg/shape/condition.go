package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// conditions notes those of a boolean expression that compare one column with constants and must hold. from and to bound
// the sources they may be applied to; to is zero where all may.
func (p *parser) conditions(n *Query, lo, hi, from, to int) {
	if n == nil {
		return
	}
	p.conjuncts(n, lo, hi, bounds{from, to}, false, 0)
}

type bounds struct{ from, to int }

// of is a condition within the bounds.
func (b bounds) of(c Column, t Test) Condition {
	return Condition{Column: c, Test: t, From: b.from, To: b.to}
}

// conjuncts splits at AND. Where OR stands at the same depth nothing must hold. Brackets are stepped over, so that the
// whole walk is linear; not says that the expression is negated.
func (p *parser) conjuncts(n *Query, lo, hi int, b bounds, not bool, level int) {
	lo, hi = p.unwrap(lo, hi)
	if lo >= hi || level > maxNesting || len(n.Conds) >= maxFound {
		return
	}
	if not {
		// NOT (a OR b) is NOT a AND NOT b; a negated AND is none of it.
		if p.splits(lo, hi, lex.KwAnd) {
			return
		}
		p.split(n, lo, hi, b, true, level, lex.KwOr)
		return
	}
	if p.splits(lo, hi, lex.KwOr) {
		p.oneOf(n, lo, hi, b)
		return
	}
	p.split(n, lo, hi, b, false, level, lex.KwAnd)
}

// oneOf notes a = 1 OR a = 2 OR a IN (3, 4) as one list: all branches must compare the same column.
func (p *parser) oneOf(n *Query, lo, hi int, b bounds) {
	branches := &Query{}
	count, start := 0, lo
	branch := func(end int) {
		count++
		from, to := p.unwrap(start, end)
		p.compare(branches, from, to, bounds{}, false, maxNesting)
		start = end + 1
	}
	p.each(lo, hi, func(i int) bool {
		if p.connective(i) == lex.KwOr {
			branch(i)
		}
		return len(branches.Conds) == count && count < maxFound
	})
	if branch(hi); len(branches.Conds) != count {
		return
	}
	all := branches.Conds[0]
	all.Op, all.Slots, all.From, all.To = In, nil, b.from, b.to
	for _, c := range branches.Conds {
		if c.Op != Eq && c.Op != In || !c.Column.Equal(all.Column) {
			return
		}
		all.Slots, all.Made = append(all.Slots, c.Slots...), max(all.Made, c.Made)
	}
	n.Where(all, false)
}

// unwrap takes off brackets around the whole.
func (p *parser) unwrap(lo, hi int) (int, int) {
	for lo < hi && p.punct(lo) == '(' && int(p.match[lo]) == hi-1 {
		lo, hi = lo+1, hi-1
	}
	return lo, hi
}

// splits says whether a connective stands at the expression's own depth. XOR counts as both.
func (p *parser) splits(lo, hi int, w lex.Word) bool {
	found := false
	p.each(lo, hi, func(i int) bool {
		at := p.connective(i)
		found = at == w || at == lex.KwXor
		return !found
	})
	return found
}

// connective is AND, OR or XOR at i, by whichever spelling.
func (p *parser) connective(i int) lex.Word {
	switch w := p.word(i); w {
	case lex.KwAnd, lex.KwOr, lex.KwXor:
		return w
	}
	switch p.op(i) {
	case "||":
		if p.d.PipesOr() {
			return lex.KwOr
		}
	case "&&":
		return lex.KwAnd
	}
	return lex.NoWord
}

// each visits the tokens at an expression's own depth that may be connectives: not those in brackets, in CASE, nor the AND
// of BETWEEN.
func (p *parser) each(lo, hi int, visit func(int) bool) {
	cases, between := 0, 0
	for i := lo; i < hi; i++ {
		switch p.punct(i) {
		case '(', '[', '{':
			i = min(int(p.match[i]), hi)
			continue
		}
		switch p.word(i) {
		case lex.KwCase:
			cases++
		case lex.KwEnd:
			cases = max(cases-1, 0)
		case lex.KwBetween:
			if cases == 0 {
				between++
			}
		case lex.KwAnd:
			if between > 0 && cases == 0 {
				between--
				continue
			}
		}
		if cases == 0 && !visit(i) {
			return
		}
	}
}

func (p *parser) split(n *Query, lo, hi int, b bounds, not bool, level int, at lex.Word) {
	start := lo
	p.each(lo, hi, func(i int) bool {
		if p.connective(i) == at {
			p.single(n, start, i, b, not, level)
			start = i + 1
		}
		return true
	})
	if start == lo {
		p.compare(n, lo, hi, b, not, level)
		return
	}
	p.single(n, start, hi, b, not, level)
}

// single handles one operand of a connective, which may be a bracketed expression of its own.
func (p *parser) single(n *Query, lo, hi int, b bounds, not bool, level int) {
	if in, out := p.unwrap(lo, hi); in != lo {
		p.conjuncts(n, in, out, b, not, level+1)
		return
	}
	p.compare(n, lo, hi, b, not, level)
}

// compare reads one comparison.
func (p *parser) compare(n *Query, lo, hi int, b bounds, not bool, level int) {
	for p.word(lo) == lex.KwNot {
		not = !not
		lo++
		if in, out := p.unwrap(lo, hi); in != lo {
			p.conjuncts(n, in, out, b, not, level+1)
			return
		}
	}
	if col, i, ok := p.column(lo, hi); ok {
		p.columnFirst(n, col, i, hi, b, not)
		return
	}
	if p.startsWith(n, lo, hi, b, not) {
		return
	}
	c, i, ok := p.constant(lo, hi)
	if !ok {
		return
	}
	op, ok := comparison(p.op(i))
	if !ok {
		return
	}
	if col, end, ok := p.column(i+1, hi); ok && end == hi {
		n.Where(b.of(col, c.test(op.Mirror())), not)
	}
}

// startsWith reads starts_with(column, 'prefix').
func (p *parser) startsWith(n *Query, lo, hi int, b bounds, not bool) bool {
	if !p.spells(lo, "starts_with") && !p.spells(lo, "startswith") || p.punct(lo+1) != '(' || int(p.match[lo+1]) != hi-1 {
		return false
	}
	col, i, ok := p.column(lo+2, hi)
	if !ok || p.punct(i) != ',' || p.tok(i+1).Kind != lex.Literal || i+2 != hi-1 || not {
		return false
	}
	n.Where(b.of(col, Test{Op: StartsWith, Slots: []uint32{p.tok(i + 1).Slot}}), false)
	return true
}

// columnFirst reads what follows a column.
func (p *parser) columnFirst(n *Query, col Column, i, hi int, b bounds, not bool) {
	if p.op(i) == "<=>" {
		if c, end, ok := p.constant(i+1, hi); ok && end == hi && !not {
			n.Where(b.of(col, c.test(Eq)), false)
		}
		return
	}
	if op, ok := comparison(p.op(i)); ok {
		if c, end, ok := p.constant(i+1, hi); ok && end == hi {
			n.Where(b.of(col, c.test(op)), not)
		} else if !not && (op == Ge || op == Gt) {
			p.since(i+1, hi)
		}
		return
	}
	if p.word(i) == lex.KwIs {
		i++
		if p.word(i) == lex.KwNot {
			not = !not
			i++
		}
		if p.word(i) == lex.KwDistinct && p.word(i+1) == lex.KwFrom {
			// IS NOT DISTINCT FROM a constant is equality that knows NULL; its negation lets NULL pass.
			if c, end, ok := p.constant(i+2, hi); ok && end == hi && not {
				n.Where(b.of(col, c.test(Eq)), false)
			}
			return
		}
		if p.word(i) == lex.KwNull && i+1 == hi {
			n.Where(b.of(col, Test{Op: IsNull}), not)
		}
		return
	}
	if p.word(i) == lex.KwNot {
		not = !not
		i++
	}
	switch p.word(i) {
	case lex.KwBetween:
		low, i, ok := p.constant(i+1, hi)
		if !ok || p.word(i) != lex.KwAnd || not {
			return
		}
		high, end, ok := p.constant(i+1, hi)
		if ok && end == hi {
			n.Where(b.of(col, low.test(Ge)), false)
			n.Where(b.of(col, high.test(Le)), false)
		}
	case lex.KwIn:
		if c, end, ok := p.constants(i+1, hi); ok && end == hi {
			n.Where(b.of(col, c.test(In)), not)
		}
	case lex.KwLike:
		c, end, ok := p.constant(i+1, hi)
		if !ok || not {
			return
		}
		t := c.test(Like)
		if p.word(end) == lex.KwEscape {
			t.HasEscape, t.Escape = true, p.slot(end+1)
			end += 2
		}
		if end == hi {
			n.Where(b.of(col, t), false)
		}
	}
}

func comparison(op string) (Op, bool) {
	switch op {
	case "=", "==":
		return Eq, true
	case "<>", "!=":
		return Ne, true
	case "<", "<=", ">", ">=":
		return Op(op), true
	}
	return "", false
}

// since notes col >= now() - INTERVAL n unit, in the spellings of the dialects, for the parameter bucket.
func (p *parser) since(lo, hi int) {
	for i := lo; i < hi && i < lo+16; i++ {
		if p.word(i) == lex.KwInterval && p.tok(i+1).Kind == lex.Literal {
			unit := ""
			if t := p.tok(i + 2); t.Kind == lex.Bare {
				unit = lower(p.raw(i + 2))
			}
			p.build.Ranges = append(p.build.Ranges, Range{Interval: p.slot(i + 1), Unit: unit})
			return
		}
	}
}
