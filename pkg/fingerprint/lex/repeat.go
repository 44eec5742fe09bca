package lex

// repeated reads on in a list whose elements are plain literals: such an element repeats the one before and needs no hash.
// i is behind a comma; so is what it returns, or it is i. Whatever is not as plain as that is left to scan.
func (p *pass) repeated(i int) int {
	f := &p.frames[p.lists-1]
	if f.rows || !f.has || p.pend != 0 || int(f.depth) != p.depth || !p.literalOnly(f) {
		return i
	}
	s := p.s
	for {
		start := skipBlanks(s, i)
		if start >= len(s) {
			return i
		}
		end, c := start, Number
		switch class[s[start]] {
		case cDigit:
			end = plainNumber(s, start)
		case cQuote:
			c = String
			end = p.plainString(start)
		}
		if end == start {
			return i
		}
		next := skipBlanks(s, end)
		if next >= len(s) || s[next] != ',' {
			return i
		}
		f.n++
		if o := p.out; o != nil && o.spans != nil {
			p.span(o.spans, Span{Off: uint32(start), End: uint32(end), Slot: f.keptSlot, Class: c})
			o.marks[p.lists-1].spans = len(o.spans.List)
		}
		i = next + 1
	}
}

// literalOnly says that the element kept last is one literal and nothing else.
func (p *pass) literalOnly(f *frame) bool {
	a, b := p.a, p.b
	p.mix(0, tagLiteral)
	same := p.a == f.keptA && p.b == f.keptB
	p.a, p.b = a, b
	return same
}

func skipBlanks(s string, i int) int {
	for i < len(s) && class[s[i]] == cSpace {
		i++
	}
	return i
}

// plainNumber is the end of digits with at most one point among them, or i if they are part of something else.
func plainNumber(s string, i int) int {
	j := i
	for j < len(s) && class[s[j]] == cDigit {
		j++
	}
	if j < len(s) && s[j] == '.' {
		for j++; j < len(s) && class[s[j]] == cDigit; j++ {
		}
	}
	if j < len(s) && (inName[s[j]] || s[j] == '.') {
		return i
	}
	return j
}

// plainString is the end of a string without escapes and doubled quotes, or i.
func (p *pass) plainString(i int) int {
	s := p.s
	esc := byte('\'')
	if p.rules&ruleBackslash != 0 {
		esc = '\\'
	}
	j := find(s, i+1, '\'', esc)
	if j >= len(s) || s[j] != '\'' || j+1 < len(s) && s[j+1] == '\'' {
		return i
	}
	return j + 1
}
