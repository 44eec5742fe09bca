package rows

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// appendQuoted writes a text as encoding/json does without its escapes for HTML, byte for byte: < and > are as they are, since escaping
// them would make every reader undo it. Most of a result is text, so what needs no escape is found eight bytes at a time.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for {
		dst, s = appendPlain(dst, s)
		if s == "" {
			return append(dst, '"')
		}
		if s[0] < utf8.RuneSelf {
			dst = appendEscaped(dst, s[0])
			s = s[1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, `\ufffd`...)
		case r == '\u2028':
			dst = append(dst, `\u2028`...)
		case r == '\u2029':
			dst = append(dst, `\u2029`...)
		default:
			dst = append(dst, s[:size]...)
		}
		s = s[size:]
	}
}

func appendEscaped(dst []byte, b byte) []byte {
	const hex = "0123456789abcdef"
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	default:
		return append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&0xF])
	}
}

// appendPlain writes the beginning of s that stands for itself in JSON, ASCII without control characters, quotes and backslashes, and
// gives what is left.
func appendPlain(dst []byte, s string) ([]byte, string) {
	const (
		each = 0x0101010101010101
		high = 0x80 * each
	)
	for len(s) >= 8 {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56 // one load
		dst = binary.LittleEndian.AppendUint64(dst, w)
		// A byte's high bit is set if it is no ASCII, or if taking something from it borrowed: it was below ' ', or nothing but the
		// quote or the backslash. A borrow reaches only bytes behind the first one, so the first is right.
		if found := (w | (w - ' '*each) | ((w ^ '"'*each) - each) | ((w ^ '\\'*each) - each)) & high; found != 0 {
			n := bits.TrailingZeros64(found) / 8
			return dst[:len(dst)-8+n], s[n:]
		}
		s = s[8:]
	}
	n := 0
	for n < len(s) && s[n] >= ' ' && s[n] != '"' && s[n] != '\\' && s[n] < utf8.RuneSelf {
		n++
	}
	return append(dst, s[:n]...), s[n:]
}
