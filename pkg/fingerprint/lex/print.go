package lex

import "unicode/utf8"

// gap writes the blank in front of a token, where one is wanted. It looks only at what a second reading of the printed
// text would see as well, so that printing is idempotent.
func (o *output) gap(_ *pass, k Kind, code prev) {
	last, lastP := o.last, o.lastP
	o.last, o.lastP = k, code
	switch {
	case last == None:
		return
	case lastP == pOpen || lastP == pDot:
		return
	case (lastP == pCast || lastP == pAt) && (k == Bare || k == Quoted):
		return
	case code == pCast && endsOperand[lastP]:
		return
	}
	o.canon = append(o.canon, ' ')
}

// digitName writes the blank that keeps a name which starts with a digit from reading as a fraction.
func (o *output) digitName(c byte) {
	if o.lastP == pDot && o.loneDot && class[c] == cDigit {
		o.canon = append(o.canon, ' ')
	}
}

// single writes one of the single marks.
func (o *output) single(_ *pass, c byte, code prev) {
	last, lastP := o.last, o.lastP
	o.last, o.lastP = Punct, code
	// Digits right behind this dot would read as a fraction.
	o.loneDot = code == pDot && (lastP == pLiteral || !endsOperand[lastP] && lastP != pDot)
	switch {
	case last == None || lastP == pOpen || lastP == pDot:
	case code == pComma || code == pClose || code == pSemi:
	case code == pDot && lastP != pLiteral && lastP != pOrdinal && lastP != pOp && lastP != pAt && lastP != pCast:
	case c == '(' && calls(lastP):
	case c == '[' && endsOperand[lastP]:
	default:
		o.canon = append(o.canon, ' ')
	}
	o.canon = append(o.canon, c)
}

// calls says that a round bracket behind this token is printed as a call's: behind a name, or a keyword that is no
// connective.
func calls(last prev) bool {
	if last < firstWord {
		return last == pName
	}
	w := Word(last - firstWord)
	switch w {
	case KwOver, KwUsing, KwFilter, KwGroup, KwPartition, KwLateral, KwMaterialized, KwKey, KwIndex, KwTable, KwView:
		return false
	}
	return words[w].flags&(expects|clause) == 0
}

// appendName writes a name's bytes: ASCII folded if wanted, what is not UTF-8 replaced.
func appendName(dst []byte, s string, fold bool) []byte {
	ascii := true
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf {
			ascii = false
			break
		}
		if fold && c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	if ascii {
		return dst
	}
	dst = dst[:len(dst)-asciiPrefix(s)]
	for _, r := range s {
		if fold && r >= 'A' && r <= 'Z' {
			r |= 0x20
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

func asciiPrefix(s string) int {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return i
		}
	}
	return len(s)
}
