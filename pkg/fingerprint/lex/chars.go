package lex

import "math/bits"

// Byte classes. Every byte from 0x80 up belongs to a name.
const (
	cCtl uint8 = iota
	cSpace
	cWord
	cDigit
	cQuote  // '
	cDouble // "
	cBack   // `
	cComma
	cOpen
	cClose
	cDot
	cSemi
	cDollar
	cOp
	cBracket
)

var class = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c == ' ' || c >= '\t' && c <= '\r':
			t[c] = cSpace
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80:
			t[c] = cWord
		case c >= '0' && c <= '9':
			t[c] = cDigit
		case c > ' ' && c < 0x7f:
			t[c] = cOp
		}
	}
	for c, k := range map[byte]uint8{'\'': cQuote, '"': cDouble, '`': cBack, ',': cComma, '(': cOpen, ')': cClose, '.': cDot, ';': cSemi, '$': cDollar, '[': cBracket, ']': cBracket, '{': cBracket, '}': cBracket} {
		t[c] = k
	}
	return t
}()

// inName says which bytes continue a bare name.
var inName = func() (t [256]bool) {
	for c := range t {
		k := class[c]
		t[c] = k == cWord || k == cDigit || k == cDollar
	}
	return t
}()

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// word8 reads the eight bytes from i, little-endian. They must be there.
func word8(s string, i int) uint64 {
	t := s[i : i+8]
	return uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
		uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
}

// load8 reads up to eight bytes from i, little-endian, zero behind the n-th.
func load8(s string, i, n int) uint64 {
	if i+8 <= len(s) {
		w := word8(s, i)
		if n < 8 {
			w &= 1<<(uint(n)*8) - 1
		}
		return w
	}
	var w uint64
	for k := min(n, 8) - 1; k >= 0; k-- {
		w = w<<8 | uint64(s[i+k])
	}
	return w
}

// lower8 folds the ASCII capitals among eight bytes.
func lower8(w uint64) uint64 {
	low := w &^ highs
	up := (low + (0x80-'A')*ones) &^ (low + (0x7f-'Z')*ones) &^ w & highs
	return w | up>>2
}

// notInName8 marks with its high bit every byte that does not continue a bare name: all but letters, digits, _, $ and
// bytes from 0x80 up. It agrees with inName.
func notInName8(w uint64) uint64 {
	x := w &^ highs
	l := x | 0x20*ones
	alpha := (l + (0x80-'a')*ones) &^ (l + (0x7f-'z')*ones)
	digit := (x + (0x80-'0')*ones) &^ (x + (0x7f-'9')*ones)
	// x^c is zero, and only then does adding 0x7f leave the high bit unset
	other := ^((x ^ '_'*ones) + 0x7f*ones) | ^((x ^ '$'*ones) + 0x7f*ones)
	return ^(alpha | digit | other | w) & highs
}

// nameEnd is the end of the bare name that goes on at i.
func nameEnd(s string, i int) int {
	for i+8 <= len(s) {
		if m := notInName8(word8(s, i)); m != 0 {
			return i + firstByte(m)
		}
		i += 8
	}
	for i < len(s) && inName[s[i]] {
		i++
	}
	return i
}

// match8 marks with its high bit the first byte of w equal to c; bytes behind the first may be marked wrongly.
func match8(w uint64, c byte) uint64 {
	x := w ^ uint64(c)*ones
	return (x - ones) &^ x & highs
}

// firstByte is the index of the first marked byte.
func firstByte(mark uint64) int { return bits.TrailingZeros64(mark) >> 3 }

// find is the index of the first a or b at or behind i, or len(s).
func find(s string, i int, a, b byte) int {
	for i+8 <= len(s) {
		w := word8(s, i)
		if m := match8(w, a) | match8(w, b); m != 0 {
			return i + firstByte(m)
		}
		i += 8
	}
	for i < len(s) && s[i] != a && s[i] != b {
		i++
	}
	return i
}

var (
	wordIndex [1 << wordBits]Word
	wordKeys  [wordCount][2]uint64
)

var _ = func() bool {
	for w := NoWord + 1; w < wordCount; w++ {
		text := words[w].text
		var key [2]uint64
		key[0] = load8(text, 0, len(text))
		if len(text) > 8 {
			key[1] = load8(text, 8, len(text)-8)
		}
		wordKeys[w] = key
		wordIndex[wordSlot(key[0], key[1])] = w
	}
	return true
}()

func wordSlot(a, b uint64) uint64 { return (a ^ b*3) * wordMultiplier >> (64 - wordBits) }

// lookup finds the keyword of at most sixteen folded bytes.
func lookup(a, b uint64) Word {
	w := wordIndex[wordSlot(a, b)]
	if k := &wordKeys[w]; k[0] == a && k[1] == b {
		return w
	}
	return NoWord
}

// Lookup finds the keyword that a word spells, without regard to ASCII case.
func Lookup(s string) Word {
	if len(s) == 0 || len(s) > 16 {
		return NoWord
	}
	a := lower8(load8(s, 0, len(s)))
	var b uint64
	if len(s) > 8 {
		b = lower8(load8(s, 8, len(s)-8))
	}
	return lookup(a, b)
}

// String is the keyword in lower case.
func (w Word) String() string {
	if w >= wordCount {
		return ""
	}
	return words[w].text
}
