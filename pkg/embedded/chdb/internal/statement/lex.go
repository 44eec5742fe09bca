package statement

import (
	"errors"
	"strings"
)

type tokenKind uint8

const (
	tokenWord   tokenKind = iota + 1
	tokenQuoted           // `name` or "name"
	tokenString
	tokenNumber
	tokenSymbol
	tokenSemicolon
)

// token is a piece of the text, with the depth of brackets around it. An opening bracket has the
// depth outside it, and so has its closing one.
type token struct {
	kind       tokenKind
	start, end int
	depth      int
}

// ErrUnterminated says that the text ends inside a string, a quoted name or a comment.
var ErrUnterminated = errors.New("the text ends inside a string, a quoted name or a comment")

// lexer yields the tokens of text one by one, so that the data behind an INSERT is never read.
type lexer struct {
	text  string
	pos   int
	depth int
}

// next gives the next token; ok is false at the end of the text.
func (l *lexer) next() (t token, ok bool, err error) {
	if err := l.skipSpace(); err != nil {
		return token{}, false, err
	}
	if l.pos >= len(l.text) {
		return token{}, false, nil
	}
	start := l.pos
	c := l.text[start]
	switch {
	case c == '\'':
		return l.quoted(tokenString)
	case c == '`' || c == '"':
		return l.quoted(tokenQuoted)
	case c == ';':
		l.pos++
		return token{tokenSemicolon, start, l.pos, l.depth}, true, nil
	case isWordStart(c):
		for l.pos < len(l.text) && isWordPart(l.text[l.pos]) {
			l.pos++
		}
		return token{tokenWord, start, l.pos, l.depth}, true, nil
	case c >= '0' && c <= '9':
		for l.pos < len(l.text) && (isWordPart(l.text[l.pos]) || l.text[l.pos] == '.') {
			l.pos++
		}
		return token{tokenNumber, start, l.pos, l.depth}, true, nil
	case c == '$':
		if end := l.heredocEnd(); end > 0 {
			l.pos = end
			return token{tokenString, start, l.pos, l.depth}, true, nil
		}
	case c == '(' || c == '[' || c == '{':
		l.pos++
		l.depth++
		return token{tokenSymbol, start, l.pos, l.depth - 1}, true, nil
	case c == ')' || c == ']' || c == '}':
		l.pos++
		if l.depth > 0 {
			l.depth--
		}
		return token{tokenSymbol, start, l.pos, l.depth}, true, nil
	}
	l.pos++
	return token{tokenSymbol, start, l.pos, l.depth}, true, nil
}

// skipSpace passes white space and comments: "-- ", "#!", "# " to the end of the line, and /* */.
func (l *lexer) skipSpace() error {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case rest[0] <= ' ':
			l.pos++
		case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "#!"), strings.HasPrefix(rest, "# "):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				l.pos = len(l.text)
				return nil
			}
			l.pos += n + 1
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return ErrUnterminated
			}
			l.pos += n + 4
		default:
			return nil
		}
	}
	return nil
}

// quoted reads a string or a quoted name; a backslash escapes, and so does doubling the quote.
func (l *lexer) quoted(kind tokenKind) (token, bool, error) {
	start, quote := l.pos, l.text[l.pos]
	for i := start + 1; i < len(l.text); i++ {
		switch l.text[i] {
		case '\\':
			i++
		case quote:
			if i+1 < len(l.text) && l.text[i+1] == quote {
				i++
				continue
			}
			l.pos = i + 1
			return token{kind, start, l.pos, l.depth}, true, nil
		}
	}
	return token{}, false, ErrUnterminated
}

// heredocEnd gives the end of the $tag$…$tag$ string at the position, or 0.
func (l *lexer) heredocEnd() int {
	rest := l.text[l.pos:]
	n := 1
	for n < len(rest) && isWordPart(rest[n]) {
		n++
	}
	if n >= len(rest) || rest[n] != '$' {
		return 0
	}
	tag := rest[:n+1]
	end := strings.Index(rest[n+1:], tag)
	if end < 0 {
		return 0
	}
	return l.pos + n + 1 + end + len(tag)
}

func isWordStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func isWordPart(c byte) bool { return isWordStart(c) || c >= '0' && c <= '9' }
