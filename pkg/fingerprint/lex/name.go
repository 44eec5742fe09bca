package lex

import "strings"

// Name is a name as its dialect compares it: quotes gone, case folded where it does not matter.
func Name(text string, quoted bool, d Dialect) string {
	rules := d.info().rules
	if !quoted {
		if rules&ruleCaseBare != 0 {
			return text
		}
		return lowerASCII(text)
	}
	if len(text) < 2 {
		return text
	}
	quote := text[0]
	body := text[1 : len(text)-1]
	if strings.IndexByte(body, quote) >= 0 {
		body = strings.ReplaceAll(body, string([]byte{quote, quote}), string(quote))
	}
	if rules&ruleCaseQuoted != 0 {
		return body
	}
	return lowerASCII(body)
}

// lowerASCII folds ASCII alone: names beyond it are compared byte by byte.
func lowerASCII(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' {
			b := []byte(s)
			for k := i; k < len(b); k++ {
				if b[k] >= 'A' && b[k] <= 'Z' {
					b[k] |= 0x20
				}
			}
			return string(b)
		}
	}
	return s
}

// ExpectsOperand says that an operand comes behind the keyword.
func (w Word) ExpectsOperand() bool { return w < wordCount && words[w].flags&expects != 0 }
