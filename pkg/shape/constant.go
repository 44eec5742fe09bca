package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// column reads a plain column.
func (p *parser) column(lo, hi int) (Column, int, bool) {
	parts, i := p.path(lo)
	if len(parts) == 0 || i > hi || p.punct(i) == '(' || p.punct(i) == '[' || p.tok(i).Kind == lex.Literal {
		return Column{}, lo, false
	}
	if p.d == lex.Postgres && i == lo+1 && p.word(lo) == lex.KwUser && p.tok(lo).Kind == lex.Bare {
		return Column{}, lo, false // who runs the statement
	}
	k := len(parts) - 1
	return Column{parts[:k:k], parts[k]}, i, true
}

// constant is one value of the text, or several where a list was folded.
type constant struct {
	slot uint32
	list []uint32
}

func (c constant) slots() []uint32 { return []uint32{c.slot} }

// constant reads a literal: plain, typed, or cast to a date or time.
func (p *parser) constant(lo, hi int) (constant, int, bool) {
	i := lo
	var c constant
	switch p.word(i) {
	case lex.KwDate, lex.KwTime, lex.KwTimestamp:
		i++
		if p.punct(i) == '(' {
			return p.converted(c, i, hi)
		}
	case lex.KwCast, lex.KwTryCast:
		if p.punct(i+1) == '(' && p.tok(i+2).Kind == lex.Literal && p.word(i+3) == lex.KwAs && p.dateType(i+4) && p.punct(i+5) == ')' {
			return constant{slot: p.tok(i + 2).Slot}, i + 6, i+6 <= hi
		}
		return c, lo, false
	}
	if t := p.tok(i); t.Kind == lex.Bare && t.Word == lex.NoWord && p.punct(i+1) == '(' && converts(p.raw(i)) {
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
		i = next
	}
	return c, end + 1, len(c.list) > 0
}
