package trino

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects may be nested, as in encoding/json.
const maxDepth = 10_000

var errJSON = errors.New("it is no JSON")

// scanner walks over JSON text. Rows are most of what is read, and what each cell is to become is known beforehand:
// encoding/json would look at every byte of them three times and make values that are none yet.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) wrong() error { return fmt.Errorf("%w: %w at byte %d", errGarbage, errJSON, s.at) }

// peek gives the next byte that is no white space, and 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take moves past one byte.
func (s *scanner) take(c byte) error {
	if s.peek() != c {
		return s.wrong()
	}
	s.at++
	return nil
}

// more moves to the next element of an array or object: behind its opening at first, and then behind a comma. At its end it
// moves past that.
func (s *scanner) more(first bool, end byte) (bool, error) {
	switch c := s.peek(); {
	case c == end:
		s.at++
		return false, nil
	case first && c != ',' && c != 0:
		return true, nil
	case !first && c == ',':
		s.at++
		if next := s.peek(); next != end && next != ',' && next != 0 {
			return true, nil
		}
	}
	return false, s.wrong()
}

// null moves past a null, if there is one.
func (s *scanner) null() bool {
	if s.peek() == 'n' && bytes.HasPrefix(s.text[s.at:], []byte("null")) {
		s.at += len("null")
		return true
	}
	return false
}

// token moves past a number or a word.
func (s *scanner) token() []byte {
	s.peek()
	begin := s.at
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ',', ']', '}', ':', '"', '[', '{', ' ', '\t', '\r', '\n':
			return s.text[begin:s.at]
		}
		s.at++
	}
	return s.text[begin:]
}

// number moves past a number. It says no to what strconv would take for one besides JSON's: hexadecimal, underscores, inf.
func (s *scanner) number() ([]byte, bool) {
	text := s.token()
	digits := func(i int) int {
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		return i
	}
	i := 0
	if len(text) > 0 && text[0] == '-' {
		i = 1
	}
	whole := digits(i)
	if whole == i || (text[i] == '0' && whole > i+1) {
		return nil, false
	}
	if i = whole; i < len(text) && text[i] == '.' {
		if i = digits(whole + 1); i == whole+1 {
			return nil, false
		}
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		begin := i
		if i = digits(i); i == begin {
			return nil, false
		}
	}
	return text, i == len(text)
}

// raw moves past a string and gives it with its quotes; plain says that it has no escapes.
func (s *scanner) raw() (text []byte, plain bool, err error) {
	if err := s.take('"'); err != nil {
		return nil, false, err
	}
	begin := s.at - 1
	plain = true
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return s.text[begin:s.at], plain, nil
		case c == '\\':
			plain = false
			s.at++
		case c < ' ':
			return nil, false, s.wrong()
		}
	}
	return nil, false, s.wrong()
}

func (s *scanner) str() (string, error) {
	text, plain, err := s.raw()
	if err != nil {
		return "", err
	}
	if inner := text[1 : len(text)-1]; plain && utf8.Valid(inner) {
		return string(inner), nil
	}
	var out string
	if json.Unmarshal(text, &out) != nil {
		return "", s.wrong()
	}
	return out, nil
}

// skip moves past a value and gives its text. It looks at brackets and strings only.
func (s *scanner) skip() ([]byte, error) {
	c := s.peek()
	begin := s.at
	switch c {
	case '"':
		_, _, err := s.raw()
		return s.text[begin:s.at], err
	case '[', '{':
	default:
		if len(s.token()) == 0 {
			return nil, s.wrong()
		}
		return s.text[begin:s.at], nil
	}
	for depth := 0; s.at < len(s.text); {
		switch s.text[s.at] {
		case '"':
			if _, _, err := s.raw(); err != nil {
				return nil, err
			}
			continue
		case '[', '{':
			if depth++; depth > maxDepth {
				return nil, s.wrong()
			}
		case ']', '}':
			depth--
		}
		s.at++
		if depth == 0 {
			return s.text[begin:s.at], nil
		}
	}
	return nil, s.wrong()
}

// any reads a value of any type. Numbers keep their digits.
func (s *scanner) any() (any, error) {
	if s.peek() == '"' {
		return s.str()
	}
	text, err := s.skip()
	switch {
	case err != nil:
		return nil, err
	case string(text) == "true":
		return true, nil
	case string(text) == "false":
		return false, nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil, s.wrong()
	}
	return other(v), nil
}

// other gives integers as such. It is all that the adapter knows to do with a type it knows nothing of.
func other(v any) any {
	switch x := v.(type) {
	case []any:
		for i := range x {
			x[i] = other(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = other(x[k])
		}
	case json.Number:
		if n, err := strconv.ParseInt(x.String(), 10, 64); err == nil {
			return n
		}
	}
	return v
}
