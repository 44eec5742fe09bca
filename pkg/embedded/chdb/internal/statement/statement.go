package statement

import (
	"errors"
	"strings"
)

// Errors of Parse that the engine's own parser is not asked about.
var (
	ErrEmpty       = errors.New("empty query")
	ErrMulti       = errors.New("multi-statements are not allowed")
	ErrIntoOutfile = errors.New("INTO OUTFILE is not allowed")
	ErrFromInfile  = errors.New("FROM INFILE is not allowed")
)

// Statement is a statement whose tokens have been read.
type Statement struct {
	text   string // without the semicolon at its end
	tokens []token
	insert *Insert
}

// Parse reads the tokens of one statement. Of an INSERT that carries data it reads only the head.
// An unterminated string is left to the engine to complain about, unless more text may follow:
// then Parse fails with ErrUnterminated.
func Parse(text string, complete bool) (Statement, error) {
	s := Statement{text: text}
	lex := lexer{text: text}
	ended := false
	var insert insertReader
	for {
		t, ok, err := lex.next()
		if err != nil {
			if complete {
				break
			}
			return s, err
		}
		if !ok {
			break
		}
		if t.kind == tokenSemicolon {
			if !ended {
				s.text = text[:t.start]
			}
			ended = true
			continue
		}
		if ended {
			return s, ErrMulti
		}
		s.tokens = append(s.tokens, t)
		if s.insert = insert.read(text, t); s.insert != nil {
			return s, nil
		}
		if n := len(s.tokens); n >= 2 && s.is(n-2, "INTO") && s.is(n-1, "OUTFILE") {
			return s, ErrIntoOutfile
		}
		if n := len(s.tokens); n >= 2 && s.is(n-2, "FROM") && s.is(n-1, "INFILE") {
			return s, ErrFromInfile
		}
	}
	if len(s.tokens) == 0 {
		return s, ErrEmpty
	}
	return s, nil
}

// Text is the statement without the semicolon at its end.
func (s Statement) Text() string { return s.text }

// First is the first word, in upper case; empty when the statement begins with something else.
func (s Statement) First() string {
	if len(s.tokens) == 0 || s.tokens[0].kind != tokenWord {
		return ""
	}
	return strings.ToUpper(s.value(0))
}

// Insert is the INSERT that takes data from behind its text, or nil.
func (s Statement) Insert() *Insert { return s.insert }

// ReadsNothing says that the statement names no table: a greeting or a ping, which costs nothing.
func (s Statement) ReadsNothing() bool {
	if s.First() != "SELECT" {
		return false
	}
	for i := range s.tokens {
		if s.is(i, "FROM") || s.is(i, "INTO") {
			return false
		}
	}
	return true
}

// Literals gives the values of the string literals in the statement.
func (s Statement) Literals() []string {
	var out []string
	for i, t := range s.tokens {
		if t.kind == tokenString && s.text[t.start] == '\'' {
			out = append(out, unquote(s.value(i)))
		}
	}
	return out
}

func (s Statement) value(i int) string { return s.text[s.tokens[i].start:s.tokens[i].end] }

// is says whether token i is the given word, written without quotes.
func (s Statement) is(i int, word string) bool {
	return i >= 0 && i < len(s.tokens) && s.tokens[i].kind == tokenWord && strings.EqualFold(s.value(i), word)
}

// isName says whether token i is the given name, quoted or not.
func (s Statement) isName(i int, name string) bool {
	if i < 0 || i >= len(s.tokens) {
		return false
	}
	switch s.tokens[i].kind {
	case tokenWord:
		return s.value(i) == name
	case tokenQuoted:
		return unquote(s.value(i)) == name
	}
	return false
}

// Quote writes a string literal.
func Quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\x00", `\0`).Replace(s) + "'"
}

// QuoteName writes a quoted name.
func QuoteName(s string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(s) + "`"
}

func unquote(s string) string {
	quote := s[0]
	body := s[1 : len(s)-1]
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case c == '\\' && i+1 < len(body):
			i++
			c = body[i]
			if r, ok := escapes[c]; ok {
				c = r
			}
		case c == quote && i+1 < len(body) && body[i+1] == quote:
			i++
		}
		b.WriteByte(c)
	}
	return b.String()
}

var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '0': 0, 'b': '\b', 'f': '\f'}
