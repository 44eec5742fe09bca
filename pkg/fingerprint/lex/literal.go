package lex

// text reads a string from its opening quote at q; i is where its prefix begins.
func (p *pass) text(i, q int, quote byte, backslash bool) int {
	s := p.s
	j := q + 1
	esc := quote
	if backslash {
		esc = '\\'
	}
	for {
		j = find(s, j, quote, esc)
		if j >= len(s) {
			p.res.Flags |= OpenLiteral
			p.literal(i, len(s), String)
			return len(s)
		}
		if s[j] == quote && !(j+1 < len(s) && s[j+1] == quote) {
			j++
			break
		}
		j = min(j+2, len(s))
	}
	if j < len(s) && class[s[j]] == cWord {
		p.odd++
	}
	p.literal(i, j, String)
	return j
}

// prefixed reads a string with letters in front of its quote: E'x', X'x', N'x', _utf8'x', r"x", U&'x'. The letters are
// s[i:j] and w holds them folded.
func (p *pass) prefixed(i, j int, w uint64) (int, bool) {
	s := p.s
	quote := s[j]
	if quote == '&' {
		if w != 'u' || p.rules&ruleDoubleString != 0 || j+1 >= len(s) {
			return 0, false
		}
		switch s[j+1] {
		case '\'':
			return p.text(i, j+1, '\'', false), true
		case '"':
			return p.quoted(j+1, '"'), true
		}
		return 0, false
	}
	if quote == '"' && p.rules&ruleDoubleString == 0 {
		return 0, false
	}
	backslash := p.rules&ruleBackslash != 0
	switch {
	case w == 'e':
		backslash = true
	case w == 'x' || w == 'b' || w == 'n':
	case (w == 'q' || w == 'n'|'q'<<8) && quote == '\'' && p.rules&ruleQQuote != 0:
		end := qEnd(s, j, &p.qMissing)
		if end == 0 {
			return 0, false
		}
		p.literal(i, end, String)
		return end, true
	case w == 'r' && p.rules&ruleRawString != 0:
		return p.rawText(i, j, quote), true
	case s[i] == '_' && p.rules&ruleIntroducer != 0:
	default:
		return 0, false
	}
	return p.text(i, j, quote, backslash), true
}

// qEnd is the end of Oracle's string whose quote is at q: what opens behind the quote closes in front of one. It is zero if
// none does. missing remembers the marks that close none of the rest of the text, so that each is searched for once.
func qEnd(s string, q int, missing *[2]uint64) int {
	if q+2 >= len(s) {
		return 0
	}
	end := s[q+1]
	switch end {
	case '[':
		end = ']'
	case '{':
		end = '}'
	case '(':
		end = ')'
	case '<':
		end = '>'
	case '\'', '_':
		return 0
	}
	if end <= ' ' || end >= 0x7f || isAlnum(end) || missing[end>>6]&(1<<(end&63)) != 0 {
		return 0
	}
	for k := q + 2; ; k++ {
		if k = find(s, k, end, end); k+1 >= len(s) {
			missing[end>>6] |= 1 << (end & 63)
			return 0
		}
		if s[k+1] == '\'' {
			return k + 2
		}
	}
}

func isAlnum(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// rawText reads r'x': no escape and no doubled quote.
func (p *pass) rawText(i, q int, quote byte) int {
	j := find(p.s, q+1, quote, quote)
	if j >= len(p.s) {
		p.res.Flags |= OpenLiteral
		p.literal(i, len(p.s), String)
		return len(p.s)
	}
	p.literal(i, j+1, String)
	return j + 1
}

// double reads what stands in double quotes: a string in some dialects, a name in others.
func (p *pass) double(i int) int {
	switch {
	case p.rules&ruleDoubleString != 0:
		return p.text(i, i, '"', p.rules&ruleBackslash != 0)
	case p.rules&ruleGuess != 0 && (p.guessDouble() == doubleString || doubtfulName(p.s, i+1)):
		return p.text(i, i, '"', p.rules&ruleBackslash != 0)
	}
	return p.quoted(i, '"')
}

// number reads a number, or a name that starts with digits.
func (p *pass) number(i int) int {
	s := p.s
	j := i
	if s[i] == '0' && i+2 < len(s) && (s[i+1]|0x20 == 'x' || s[i+1]|0x20 == 'b') && isHex(s[i+2]) && p.prev != pDot {
		j = i + 3
		for j < len(s) && (isHex(s[j]) || s[j] == '_') {
			j++
		}
		return p.numberEnd(i, j, hexadecimal)
	}
	for j < len(s) && class[s[j]] == cDigit {
		j++
	}
	form := integer
	if p.prev != pDot {
		if j < len(s) && s[j] == '.' && !(j+1 < len(s) && s[j+1] == '.') {
			form = fraction
			for j++; j < len(s) && (class[s[j]] == cDigit || s[j] == '_' && j+1 < len(s) && class[s[j+1]] == cDigit); j++ {
			}
		}
		if j < len(s) && s[j]|0x20 == 'e' {
			k := j + 1
			if k < len(s) && (s[k] == '+' || s[k] == '-') {
				k++
			}
			if k < len(s) && class[s[k]] == cDigit {
				for k < len(s) && class[s[k]] == cDigit {
					k++
				}
				end := k
				if k < len(s) && inName[s[k]] {
					end = nameEnd(s, k)
				}
				switch {
				case end == k, glued[Lookup(s[k:end])]:
					return p.numberEnd(i, k, fraction)
				case p.rules&ruleRawSet != 0 && isSuffix(s[k:end]):
					return p.numberEnd(i, end, fraction) // 1e3D
				}
			}
		}
	}
	return p.numberEnd(i, j, form)
}

func isHex(c byte) bool {
	return class[c] == cDigit || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// numberForm is how a number is written.
type numberForm uint8

const (
	integer numberForm = iota
	fraction
	hexadecimal
)

// numberEnd decides what digits that end at j are: a value, an ordinal, or the start of a name.
func (p *pass) numberEnd(i, j int, form numberForm) int {
	s := p.s
	if p.prev == pDot {
		for j < len(s) && inName[s[j]] {
			j++
		}
		p.word(i, j)
		return j
	}
	if j < len(s) && inName[s[j]] {
		k := j
		for k < len(s) && (class[s[k]] == cDigit || s[k] == '_') {
			k++
		}
		stop := k // of digits
		for k < len(s) && inName[s[k]] {
			k++
		}
		digits := k == stop
		switch {
		case !digits && s[stop-1] != '_' && glued[Lookup(s[stop:k])] && !p.wantsTable():
			if stop > j {
				j, form = stop, fraction
			}
		case digits && s[k-1] != '_' && (p.rules&ruleDigitName == 0 || p.rules&ruleGuess != 0 && !p.wantsTable()):
			j, form = k, fraction // 1_000
		case p.rules&ruleRawSet != 0 && isSuffix(s[j:k]):
			j, form = k, fraction // 10L
		case p.rules&ruleLetterName != 0:
			p.literal(i, k, Opaque) // what should have been quoted
			return k
		case form != fraction:
			p.word(i, k)
			return k
		}
	}
	if form == integer && j-i <= 5 && p.keepsInteger(j) {
		p.ordinal(i, j)
		return j
	}
	p.literal(i, j, Number)
	return j
}

// glued are the keywords that may follow a number without a blank: 1and b, 5from t. No name is made of digits and one of them.
var glued = func() (t [wordCount]bool) {
	for _, w := range []Word{
		KwAnd, KwOr, KwXor, KwNot, KwIn, KwLike, KwIlike, KwRlike, KwRegexp, KwBetween, KwIs, KwCase, KwWhen, KwThen, KwElse, KwEnd, KwSelect,
		KwFrom, KwWhere, KwAs, KwOn, KwUsing, KwJoin, KwInner, KwLeft, KwRight, KwFull, KwCross, KwNatural, KwOrder, KwGroup, KwHaving,
		KwLimit, KwOffset, KwFetch, KwUnion, KwIntersect, KwExcept, KwMinus, KwAsc, KwDesc, KwDiv, KwInto, KwFor, KwReturning, KwQualify,
	} {
		t[w] = true
	}
	return t
}()

// wantsTable says that a table's name must come next.
func (p *pass) wantsTable() bool {
	switch p.prev {
	case after(KwFrom), after(KwJoin), after(KwInto), after(KwUpdate), after(KwTable):
		return true
	}
	return false
}

func isSuffix(s string) bool {
	switch len(s) {
	case 1:
		switch s[0] | 0x20 {
		case 'l', 's', 'y', 'd', 'f':
			return true
		}
	case 2:
		return s[0]|0x20 == 'b' && s[1]|0x20 == 'd'
	}
	return false
}

// word emits s[i:j] as a bare name.
func (p *pass) word(i, j int) {
	w1 := load8(p.s, i, j-i)
	var w2 uint64
	if j-i > 8 {
		w2 = load8(p.s, i+8, j-i-8)
	}
	if p.rules&ruleCaseBare == 0 {
		w1, w2 = lower8(w1), lower8(w2)
	}
	p.name(i, j, w1, w2)
}

// keepsInteger says whether an integer that ends at j is an ordinal or a type's argument.
func (p *pass) keepsInteger(j int) bool {
	flags := p.scopeFlags()
	switch {
	case flags == 0:
		return false
	case flags&inType != 0:
		return true
	case flags&inBy == 0:
		return false
	}
	switch p.prev {
	case after(KwBy), pComma, after(KwAll), after(KwDistinct):
	case pOpen:
		if flags&inSets == 0 {
			return false
		}
	default:
		return false
	}
	k := p.peek(j)
	if k >= len(p.s) {
		return true
	}
	switch class[p.s[k]] {
	case cComma, cClose, cSemi:
		return true
	case cWord:
		end := nameEnd(p.s, k)
		return end >= len(p.s) || p.s[end] != '\'' && p.s[end] != '"' && p.s[end] != '&' // else the word may open a string
	}
	return false
}
