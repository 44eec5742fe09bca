package lex

import "strings"

// Split finds the first delimiter of a text that stands outside of quotes and comments; \G and its like end a statement as
// well. It returns where the statement ends and where the next one begins; without a delimiter ok is false and both are the text's length, with open saying
// that the text ends inside of quotes or a comment.
func Split(s string, d Dialect, delimiter string) (end, next int, ok, open bool) {
	p := splitter{s: s, rules: d.info().rules}
	first := delimiter[0]
	for i := 0; i < len(s); {
		c := s[i]
		if c == first && strings.HasPrefix(s[i:], delimiter) {
			return i, i + len(delimiter), true, false
		}
		if !splitStops[c] {
			i++
			continue
		}
		if c == '\\' {
			if next := goEnd(s, i); next > 0 {
				return i, next, true, false
			}
		}
		if i = p.step(i); i > len(s) {
			return len(s), len(s), false, true
		}
	}
	return len(s), len(s), false, false
}

// goEnd is the end of a client's command that sends the statement before it, if one stands at the backslash at i: \g and \G
// anywhere, \gx and its like with what they take from the line. Outside of quotes no dialect has a backslash of its own.
func goEnd(s string, i int) int {
	j := i + 1
	for j < len(s) && s[j]|0x20 >= 'a' && s[j]|0x20 <= 'z' {
		j++
	}
	switch s[i+1 : j] {
	case "g", "G":
		return j
	case "gx", "gset", "gexec", "gdesc":
		return lineEnd(s, j)
	}
	return 0
}

// Lead is where the first token of a text begins, behind blanks and comments.
func Lead(s string, d Dialect) int {
	p := splitter{s: s, rules: d.info().rules}
	i := 0
	if strings.HasPrefix(s, "\xef\xbb\xbf") {
		i = 3 // a byte order mark
	}
	for i < len(s) {
		next := i
		switch c := s[i]; {
		case class[c] == cSpace:
			next = i + 1
		case c == '/' && i+2 < len(s) && s[i+1] == '*' && s[i+2] != '+' && (s[i+2] != '!' || p.rules&ruleVersioned == 0),
			c == '-' && i+1 < len(s) && s[i+1] == '-', c == '#':
			if end := p.step(i); end > i+1 {
				next = end
			}
		}
		if next == i {
			return i
		}
		i = next
	}
	return len(s)
}

// splitStops are the bytes that may begin something in which a delimiter does not count.
var splitStops = func() (t [256]bool) {
	for _, c := range "'\"`-#/$\\" {
		t[c] = true
	}
	return t
}()

type splitter struct {
	s        string
	rules    rule
	qMissing [2]uint64
}

// oracle is the end of q'[x]' whose quote is at i, or zero.
func (p *splitter) oracle(i int) int {
	s := p.s
	if p.rules&ruleQQuote == 0 || i == 0 || s[i] != '\'' || s[i-1]|0x20 != 'q' {
		return 0
	}
	if k := i - 2; k >= 0 && inName[s[k]] && (s[k]|0x20 != 'n' || k > 0 && inName[s[k-1]]) {
		return 0
	}
	return qEnd(s, i, &p.qMissing)
}

// step returns the index behind the quotes or comment at i, behind i if nothing of that kind begins there, and an index
// beyond the text if it never ends.
func (p *splitter) step(i int) int {
	s := p.s
	switch s[i] {
	case '\'', '"':
		if s[i] == '"' && p.rules&(ruleDoubleString|ruleGuess) == 0 {
			return p.quotes(i, false)
		}
		if end := p.oracle(i); end > 0 {
			return end
		}
		backslash := p.rules&ruleBackslash != 0 || i > 0 && s[i-1]|0x20 == 'e' && s[i] == '\'' && p.rules&ruleNumbered != 0
		return p.quotes(i, backslash)
	case '`':
		return p.quotes(i, false)
	case '-':
		if i+1 < len(s) && s[i+1] == '-' && (p.rules&ruleDashBlank == 0 || i+2 >= len(s) || s[i+2] <= ' ') {
			return lineEnd(s, i+2)
		}
	case '#':
		if hashComment(s, p.rules, i) {
			return lineEnd(s, i+1)
		}
	case '/':
		if i+1 < len(s) && s[i+1] == '*' {
			return p.comment(i)
		}
	case '$':
		return p.dollar(i)
	}
	return i + 1
}

func (p *splitter) quotes(i int, backslash bool) int {
	s := p.s
	quote := s[i]
	esc := quote
	if backslash {
		esc = '\\'
	}
	for j := i + 1; ; {
		j = find(s, j, quote, esc)
		if j >= len(s) {
			return len(s) + 1
		}
		if s[j] == quote {
			return j + 1 // a doubled quote opens again at once
		}
		if p.rules&ruleGuess != 0 && p.closes(j+1, quote) {
			return j + 2
		}
		j += 2
	}
}

// closes says whether, in a text of unknown dialect, the quote behind a backslash rather ends the string than is escaped:
// what follows it could not go on a text.
func (p *splitter) closes(i int, quote byte) bool {
	s := p.s
	if i >= len(s) || s[i] != quote {
		return false
	}
	if i+1 >= len(s) {
		return true
	}
	switch s[i+1] {
	case ',', ')', ';', '\n', '\r':
		return true
	}
	return false
}

// comment ends a block comment. One that should nest and then never ends is ended at its first end, as Run does.
func (p *splitter) comment(i int) int {
	q := pass{s: p.s, flat: p.rules&ruleNested == 0}
	end := q.skipComment(i)
	if q.res.Flags&OpenComment != 0 {
		return len(p.s) + 1
	}
	return end
}

func (p *splitter) dollar(i int) int {
	s := p.s
	if p.rules&ruleDollar == 0 || i > 0 && inName[s[i-1]] {
		return i + 1
	}
	j := i + 1
	for j < len(s) && (class[s[j]] == cWord || class[s[j]] == cDigit) {
		j++
	}
	if j >= len(s) || s[j] != '$' || class[s[i+1]] == cDigit {
		return i + 1
	}
	tag := s[i : j+1]
	k := strings.Index(s[j+1:], tag)
	if k < 0 {
		return len(s) + 1
	}
	return j + 1 + k + len(tag)
}
