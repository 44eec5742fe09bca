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

// constant is one value of the text, or several of a list.
type constant struct {
	slot uint32
	list []uint32
	made Conversion
}

// test compares with the constant.
func (c constant) test(op Op) Test {
	if c.list != nil {
		return Test{Op: op, Slots: c.list, Made: c.made}
	}
	return Test{Op: op, Slots: []uint32{c.slot}, Made: c.made}
}

// constant reads a literal: plain, typed, or made a date or time.
func (p *parser) constant(lo, hi int) (constant, int, bool) {
	i := lo
	var c constant
	switch p.word(i) {
	case lex.KwDate, lex.KwTime, lex.KwTimestamp:
		i++
		if p.punct(i) == '(' {
			// TIME(..) takes a part of a date and time
			made, _ := p.dateType(lo)
			return p.converted(made, i, hi, p.word(lo) != lex.KwTime)
		}
		if p.word(lo) == lex.KwDate {
			c.made = ToDate
		}
	case lex.KwCast, lex.KwTryCast:
		if p.punct(i+1) == '(' && p.tok(i+2).Kind == lex.Literal && p.word(i+3) == lex.KwAs && p.punct(i+5) == ')' {
			made, ok := p.dateType(i + 4)
			return constant{slot: p.tok(i + 2).Slot, made: made}, i + 6, ok && i+6 <= hi
		}
		return c, lo, false
	}
	if t := p.tok(i); t.Kind == lex.Bare && t.Word == lex.NoWord && p.punct(i+1) == '(' {
		if made, ok := converts(p.raw(i)); ok {
			return p.converted(made, i+1, hi, true)
		}
	}
	if p.tok(i).Kind != lex.Literal || i >= hi {
		return c, lo, false
	}
	c.slot = p.tok(i).Slot
	i++
	for p.op(i) == "::" {
		made, ok := p.dateType(i + 1)
		if !ok {
			return c, lo, false
		}
		c.made = max(c.made, made)
		i += 2
	}
	return c, i, i <= hi
}

// converted reads ( literal ) behind the name of a type or function.
func (p *parser) converted(made Conversion, i, hi int, known bool) (constant, int, bool) {
	if !known || p.tok(i+1).Kind != lex.Literal || p.punct(i+2) != ')' || i+3 > hi {
		return constant{}, i, false
	}
	return constant{slot: p.tok(i + 1).Slot, made: made}, i + 3, true
}

// dateType says what the type at i makes of a text, if it is that of a date or a date and time.
func (p *parser) dateType(i int) (Conversion, bool) {
	switch p.word(i) {
	case lex.KwDate:
		return ToDate, true
	case lex.KwTimestamp:
		return ToTime, true
	}
	return ToTime, p.spells(i, "datetime") || p.spells(i, "timestamptz")
}

// converts names functions that make a date or time of a text.
func converts(name string) (Conversion, bool) {
	switch lower(name) {
	case "todate", "to_date":
		return ToDate, true
	case "todatetime", "to_timestamp":
		return ToTime, true
	}
	return AsWritten, false
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
		c.list, c.made = append(c.list, one.slot), max(c.made, one.made)
		i = next
	}
	return c, end + 1, len(c.list) > 0
}
