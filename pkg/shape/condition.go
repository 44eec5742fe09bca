package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// conditions notes those of a boolean expression that compare one column with constants and must hold. from and to bound
// the sources they may be applied to; to is zero where all may.
func (p *parser) conditions(n *node, lo, hi, from, to int) {
	if n == nil {
		return
	}
	p.conjuncts(n, lo, hi, bounds{from, to}, false, 0)
}

type bounds struct{ from, to int }

// conjuncts splits at AND. Where OR stands at the same depth nothing must hold. Brackets are stepped over, so that the
// whole walk is linear; not says that the expression is negated.
func (p *parser) conjuncts(n *node, lo, hi int, b bounds, not bool, level int) {
	lo, hi = p.unwrap(lo, hi)
	if lo >= hi || level > maxNesting || len(n.conds) >= maxFound {
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
		return
	}
	p.split(n, lo, hi, b, false, level, lex.KwAnd)
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

func (p *parser) split(n *node, lo, hi int, b bounds, not bool, level int, at lex.Word) {
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
func (p *parser) single(n *node, lo, hi int, b bounds, not bool, level int) {
	if in, out := p.unwrap(lo, hi); in != lo {
		p.conjuncts(n, in, out, b, not, level+1)
		return
	}
	p.compare(n, lo, hi, b, not, level)
}

// compare reads one comparison.
func (p *parser) compare(n *node, lo, hi int, b bounds, not bool, level int) {
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
	c, i, ok := p.constant(lo, hi)
	if !ok {
		return
	}
	op, ok := comparison(p.op(i))
	if !ok {
		return
	}
	if col, end, ok := p.column(i+1, hi); ok && end == hi {
		n.add(cond{col: col, predTemplate: predTemplate{op: op.mirror(), dated: c.dated, slots: c.slots()}}, b, not)
	}
}

// columnFirst reads what follows a column.
func (p *parser) columnFirst(n *node, col colRef, i, hi int, b bounds, not bool) {
	if op, ok := comparison(p.op(i)); ok {
		if c, end, ok := p.constant(i+1, hi); ok && end == hi {
			n.add(cond{col: col, predTemplate: predTemplate{op: op, dated: c.dated, slots: c.slots()}}, b, not)
		} else if !not && (op == Ge || op == Gt) {
			p.since(n, col, i+1, hi)
		}
		return
	}
	if p.word(i) == lex.KwIs {
		i++
		if p.word(i) == lex.KwNot {
			not = !not
			i++
		}
		if p.word(i) == lex.KwNull && i+1 == hi {
			n.add(cond{col: col, predTemplate: predTemplate{op: IsNull}}, b, not)
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
			n.add(cond{col: col, predTemplate: predTemplate{op: Ge, dated: low.dated, slots: low.slots()}}, b, false)
			n.add(cond{col: col, predTemplate: predTemplate{op: Le, dated: high.dated, slots: high.slots()}}, b, false)
		}
	case lex.KwIn:
		if c, end, ok := p.constants(i+1, hi); ok && end == hi {
			n.add(cond{col: col, predTemplate: predTemplate{op: In, dated: c.dated, slots: c.list}}, b, not)
		}
	case lex.KwLike:
		c, end, ok := p.constant(i+1, hi)
		if !ok || not {
			return
		}
		t := predTemplate{op: like, slots: c.slots()}
		if p.word(end) == lex.KwEscape {
			t.hasEscape, t.escape = true, p.slot(end+1)
			end += 2
		}
		if end == hi {
			n.add(cond{col: col, predTemplate: t}, b, false)
		}
	}
}

// add notes a condition, negated if need be.
func (n *node) add(c cond, b bounds, not bool) {
	if not {
		if c.op = c.op.negate(); c.op == "" {
			return
		}
	}
	c.from, c.to = b.from, b.to
	c.anyNull = c.op == IsNull
	if len(n.conds) < maxFound {
		n.conds = append(n.conds, c)
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

// column reads a plain column.
func (p *parser) column(lo, hi int) (colRef, int, bool) {
	parts, i := p.path(lo)
	if len(parts) == 0 || i > hi || p.punct(i) == '(' || p.punct(i) == '[' || p.tok(i).Kind == lex.Literal {
		return colRef{}, lo, false
	}
	k := len(parts) - 1
	return colRef{parts[:k:k], parts[k]}, i, true
}

// constant is one value of the text, or several where a list was folded.
type constant struct {
	slot  uint32
	list  []uint32
	dated bool
}

func (c constant) slots() []uint32 { return []uint32{c.slot} }

// constant reads a literal: plain, typed, or cast to a date or time.
func (p *parser) constant(lo, hi int) (constant, int, bool) {
	i := lo
	var c constant
	switch p.word(i) {
	case lex.KwDate, lex.KwTime, lex.KwTimestamp:
		c.dated = true
		i++
		if p.punct(i) == '(' {
			return p.converted(c, i, hi)
		}
	case lex.KwCast, lex.KwTryCast:
		if p.punct(i+1) == '(' && p.tok(i+2).Kind == lex.Literal && p.word(i+3) == lex.KwAs && p.dateType(i+4) && p.punct(i+5) == ')' {
			return constant{slot: p.tok(i + 2).Slot, dated: true}, i + 6, i+6 <= hi
		}
		return c, lo, false
	}
	if t := p.tok(i); t.Kind == lex.Bare && t.Word == lex.NoWord && p.punct(i+1) == '(' && converts(p.raw(i)) {
		c.dated = true
		return p.converted(c, i+1, hi)
	}
	if p.tok(i).Kind != lex.Literal || i >= hi {
		return c, lo, false
	}
	c.slot = p.tok(i).Slot
	i++
	for p.op(i) == "::" {
		if !p.dateType(i + 1) {
			return c, lo, false
		}
		c.dated = true
		i += 2
	}
	return c, i, i <= hi
}

// converted reads ( literal ) behind the name of a type or function.
func (p *parser) converted(c constant, i, hi int) (constant, int, bool) {
	if p.tok(i+1).Kind != lex.Literal || p.punct(i+2) != ')' || i+3 > hi {
		return c, i, false
	}
	c.slot = p.tok(i + 1).Slot
	return c, i + 3, true
}

func (p *parser) dateType(i int) bool {
	switch p.word(i) {
	case lex.KwDate, lex.KwTimestamp:
		return true
	}
	return p.spells(i, "datetime") || p.spells(i, "timestamptz")
}

// converts names functions that make a date or time of a text and lose nothing of it.
func converts(name string) bool {
	switch lower(name) {
	case "todate", "todatetime", "to_date", "to_timestamp":
		return true
	}
	return false
}

// constants reads ( constant, .. ).
func (p *parser) constants(i, hi int) (constant, int, bool) {
	var c constant
	if p.punct(i) != '(' || int(p.match[i]) >= hi {
		return c, i, false
	}
	end := int(p.match[i])
	for i++; i < end; i++ {
		one, next, ok := p.constant(i, end)
		if !ok || next < end && p.punct(next) != ',' || len(c.list) >= maxFound {
			return c, i, false
		}
		c.list = append(c.list, one.slot)
		c.dated = c.dated || one.dated
		i = next
	}
	return c, end + 1, len(c.list) > 0
}

// since notes col >= now() - INTERVAL n unit, in the spellings of the dialects, for the parameter bucket.
func (p *parser) since(n *node, col colRef, lo, hi int) {
	for i := lo; i < hi && i < lo+16; i++ {
		if p.word(i) == lex.KwInterval && p.tok(i+1).Kind == lex.Literal {
			unit := ""
			if t := p.tok(i + 2); t.Kind == lex.Bare {
				unit = lower(p.raw(i + 2))
			}
			p.build.ranges = append(p.build.ranges, rangeTemplate{interval: p.slot(i + 1), unit: unit})
			return
		}
	}
}
