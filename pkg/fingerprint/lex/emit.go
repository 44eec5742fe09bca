package lex

import (
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// Tags keep tokens of different kinds apart in the hash. They are spread over the word, odd and unrelated.
const (
	tagWord    = 0xa0761d6478bd642f
	tagMore    = 0xe7037ed1a0b428db
	tagQuoted  = 0x8ebc6af09c88c6e3
	tagLiteral = 0x589965cc75374cc3
	tagOrdinal = 0x1d8e4e27c47d124f
	tagOp      = 0xeb44accab455d165
	tagControl = 0x9c6e6877736c46e3
	tagElement = 0x2127599bf4325c37
	tagEnd     = 0x880355f21e6d1965

	laneA = 0x9fb21c651e98df25
	laneB = 0xd6e8feb86659fd93
)

// mix adds one word to both lanes.
func (p *pass) mix(x, tag uint64) {
	h, l := bits.Mul64(p.a^(x+tag), laneA)
	p.a = h ^ l ^ tag
	h, l = bits.Mul64(p.b+(x^tag), laneB)
	p.b = h ^ l ^ x
}

// settle acts on what was left open when the next token is known to be neither a comma nor a literal nor a sign,
// unless its flags say otherwise.
func (p *pass) settle(comma, sign bool) {
	if p.pend&pendRow != 0 && !comma {
		p.pend &^= pendRow
		p.closeList()
	}
	if p.pend&pendSemi != 0 {
		p.pend &^= pendSemi
		p.emitSemi()
	}
	if !sign {
		p.pend &^= pendSign
	}
}

func (p *pass) emitSemi() {
	p.res.Flags |= HasMany
	p.mix(';', tagOp)
	p.tokens++
	if p.out != nil {
		p.out.punct(p, ';', p.semiAt)
	}
	p.prev = pSemi
}

// literal emits a value. A sign in front of it that has no left operand is part of it.
func (p *pass) literal(off, end int, c Class) {
	if p.pend != 0 {
		p.settle(false, true)
		if p.pend&pendSign != 0 {
			p.pend &^= pendSign
			p.back(&p.signAt)
			off = p.signStart
		}
	}
	p.mix(0, tagLiteral)
	p.tokens++
	if o := p.out; o != nil {
		o.literal(p, off, end, c)
	}
	p.slot++
	p.prev = pLiteral
}

func (o *output) literal(p *pass, off, end int, c Class) {
	if o.spans != nil {
		p.span(o.spans, Span{Off: uint32(off), End: uint32(end), Slot: p.slot, Class: c})
	}
	if o.doToken {
		o.token(Token{Off: uint32(off), End: uint32(end), Slot: p.slot, Kind: Literal})
	}
	if o.doCanon {
		o.gap(p, Literal, pLiteral)
		if p.rules&ruleNumbered != 0 {
			o.canon = append(o.canon, '$')
			o.canon = strconv.AppendUint(o.canon, uint64(p.slot)+1, 10)
		} else {
			o.canon = append(o.canon, '?')
		}
	}
}

func (p *pass) span(s *Spans, v Span) {
	if len(s.List) >= MaxSpans {
		s.Cut = true
		return
	}
	if p.lists > 0 {
		if f := &p.frames[p.lists-1]; len(s.List)-int(f.firstSpan) >= MaxListSpans {
			s.Cut = true
			return
		}
	}
	s.List = append(s.List, v)
}

// ordinal emits an integer that stays.
func (p *pass) ordinal(off, end int) {
	if p.pend != 0 {
		p.settle(false, false)
	}
	p.mix(load8(p.s, off, end-off), tagOrdinal)
	p.tokens++
	if o := p.out; o != nil {
		if o.doToken {
			o.token(Token{Off: uint32(off), End: uint32(end), Kind: Ordinal})
		}
		if o.doCanon {
			o.gap(p, Ordinal, pOrdinal)
			o.canon = append(o.canon, p.s[off:end]...)
		}
	}
	p.prev = pOrdinal
}

// op emits an operator of at most four bytes.
func (p *pass) op(off, end int, code prev) {
	if p.pend != 0 {
		p.settle(false, false)
	}
	p.mix(load8(p.s, off, end-off), tagOp)
	p.tokens++
	if o := p.out; o != nil {
		if o.doToken {
			o.token(Token{Off: uint32(off), End: uint32(end), Kind: Operator})
		}
		if o.doCanon {
			o.gap(p, Operator, code)
			o.canon = append(o.canon, p.s[off:end]...)
		}
	}
	p.prev = code
}

// sign emits a plus or minus that may turn out to belong to the literal behind it.
func (p *pass) sign(off int) {
	if p.pend != 0 {
		p.settle(false, true)
	}
	if p.pend&pendSign == 0 {
		if endsOperand[p.prev] {
			p.op(off, off+1, pOp)
			return
		}
		p.mark(&p.signAt)
		p.signStart = off
		p.pend |= pendSign
	}
	keep := p.pend
	p.pend = 0
	p.op(off, off+1, pOp)
	p.pend = keep
}

// control emits a control byte, which is read again as a name once it is printed.
func (p *pass) control(off int) {
	if p.pend != 0 {
		p.settle(false, false)
	}
	if p.verbState == 0 {
		p.verbState = 2
	}
	p.typeNext = p.isType(0)
	p.mix(uint64(p.s[off]), tagControl)
	p.tokens++
	if o := p.out; o != nil {
		if o.doToken {
			o.token(Token{Off: uint32(off), End: uint32(off) + 1, Kind: Control})
		}
		if o.doCanon {
			o.gap(p, Bare, pName)
			o.canon = append(o.canon, string(utf8.RuneError)...)
		}
	}
	p.prev = pName
}

// punct prints one of the single marks.
func (o *output) punct(p *pass, c byte, off int) {
	if o.doToken {
		o.token(Token{Off: uint32(off), End: uint32(off) + 1, Kind: Punct})
	}
	if o.doCanon {
		code := pOpen
		switch c {
		case ')', ']', '}':
			code = pClose
		case ',':
			code = pComma
		case '.':
			code = pDot
		case ';':
			code = pSemi
		}
		o.single(p, c, code)
	}
}

func (o *output) token(t Token) {
	if len(o.tokens) < o.limit {
		o.tokens = append(o.tokens, t)
	}
}
