package query

import (
	"encoding/json"
	"unicode/utf8"
)

// scanner walks over JSON text. Every method is false when the text is not what was expected there, or not JSON.
type scanner struct {
	data []byte
	i    int
	// short are strings that were read before: states, units and names come again and again within one event.
	short [64]string
}

func (s *scanner) space() {
	for s.i < len(s.data) {
		switch s.data[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// peek is the next byte that is no space, or 0.
func (s *scanner) peek() byte {
	s.space()
	if s.i < len(s.data) {
		return s.data[s.i]
	}
	return 0
}

// take moves over one byte.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.i++
	return true
}

// more moves over what stands between two elements, or over the end. first says that there was no element yet.
func (s *scanner) more(first bool, end byte) (more, ok bool) {
	switch c := s.peek(); {
	case c == end:
		s.i++
		return false, true
	case first:
		return true, true
	case c == ',':
		s.i++
		return true, s.peek() != end
	default:
		return false, false
	}
}

// text moves over a string and gives what stands between its quotes. simple says that it means itself.
func (s *scanner) text() (raw []byte, simple, ok bool) {
	if !s.take('"') {
		return nil, false, false
	}
	simple, ascii := true, true
	start := s.i
	for s.i < len(s.data) {
		switch c := s.data[s.i]; {
		case c == '"':
			raw = s.data[start:s.i]
			s.i++
			return raw, simple && (ascii || utf8.Valid(raw)), true
		case c == '\\':
			simple = false
			if !s.escape() {
				return nil, false, false
			}
		case c < ' ':
			return nil, false, false
		default:
			ascii = ascii && c < utf8.RuneSelf
			s.i++
		}
	}
	return nil, false, false
}

// escape moves over a backslash and what belongs to it.
func (s *scanner) escape() bool {
	if s.i+1 >= len(s.data) {
		return false
	}
	s.i += 2
	switch s.data[s.i-1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if s.i >= len(s.data) || !isHex(s.data[s.i]) {
				return false
			}
			s.i++
		}
		return true
	default:
		return false
	}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// str reads a string.
func (s *scanner) str() (string, bool) {
	raw, simple, ok := s.text()
	if !ok || simple {
		return s.own(raw), ok
	}
	if text, ok := unescape(raw); ok {
		return text, true
	}
	var text string
	err := json.Unmarshal(s.data[s.i-len(raw)-2:s.i], &text)
	return text, err == nil
}

// own makes a string of bytes of the text.
func (s *scanner) own(raw []byte) string {
	n := len(raw)
	if n == 0 || n > 24 {
		return string(raw)
	}
	have := &s.short[(int(raw[0])*31+int(raw[n-1])*7+n)%len(s.short)]
	if *have != string(raw) {
		*have = string(raw)
	}
	return *have
}

// unescape does the short escapes, which are nearly all there are.
func unescape(raw []byte) (string, bool) {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' {
			out = append(out, c)
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			return "", false
		default:
			out = append(out, raw[i])
		}
	}
	return string(out), utf8.Valid(out)
}

// number moves over a number and gives its text.
func (s *scanner) number() (raw []byte, ok bool) {
	s.space()
	start := s.i
	if s.at('-') {
		s.i++
	}
	switch {
	case s.at('0'):
		s.i++
	case !s.digits():
		return nil, false
	}
	if s.at('.') {
		s.i++
		if !s.digits() {
			return nil, false
		}
	}
	if s.at('e') || s.at('E') {
		s.i++
		if s.at('+') || s.at('-') {
			s.i++
		}
		if !s.digits() {
			return nil, false
		}
	}
	return s.data[start:s.i], true
}

func (s *scanner) at(c byte) bool { return s.i < len(s.data) && s.data[s.i] == c }

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.data) && s.data[s.i] >= '0' && s.data[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

// word moves over true, false or null.
func (s *scanner) word(w string) bool {
	s.space()
	if len(s.data)-s.i < len(w) || string(s.data[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

// deepest is how deep values may lie in one another here.
const deepest = 500

// skip moves over a value of any kind.
func (s *scanner) skip(depth int) bool {
	switch s.peek() {
	case '"':
		_, _, ok := s.text()
		return ok
	case '{':
		return s.skipAll(depth, '}', true)
	case '[':
		return s.skipAll(depth, ']', false)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		_, ok := s.number()
		return ok
	}
}

func (s *scanner) skipAll(depth int, end byte, keys bool) bool {
	s.i++
	for first := true; ; first = false {
		more, ok := s.more(first, end)
		if !ok || !more {
			return ok
		}
		if keys {
			if _, _, ok := s.text(); !ok || !s.take(':') {
				return false
			}
		}
		if depth >= deepest || !s.skip(depth+1) {
			return false
		}
	}
}
