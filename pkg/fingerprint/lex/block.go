package lex

import "strings"

// HasBlock says that a statement may hold others between BEGIN and END: it creates a routine, a trigger or an event.
func HasBlock(sql string) bool {
	if len(sql) < 6 || !strings.EqualFold(sql[:6], "create") {
		return false // nearly always
	}
	for i, w := range strings.Fields(sql[6:min(len(sql), 512)]) {
		switch strings.ToLower(w) {
		case "procedure", "function", "trigger", "event":
			return true
		case "table", "view", "index", "database", "schema", "materialized", "user", "role", "as", "select":
			return false // those words may be its columns
		}
		if i > 8 {
			return false
		}
	}
	return false
}

// SplitBlock is Split for a text for which HasBlock holds: a semicolon between BEGIN and the END that belongs to it ends
// nothing. If the text ends before that END does, ok is false.
func SplitBlock(s string, d Dialect) (end, next int, ok bool) {
	p := splitter{s: s, rules: d.info().rules}
	depth := 0
	var before Word
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == ';' && depth == 0:
			return i, i + 1, true
		case class[c] == cWord:
			j := nameEnd(s, i)
			w := Lookup(s[i:j])
			switch {
			case w == KwBegin && (d != Postgres || p.behind(j, "atomic")):
				depth++
			case w == KwCase && depth > 0 && before != KwEnd:
				depth++
			case w == KwEnd && depth > 0 && !p.endsLoop(j):
				depth--
			}
			before, i = w, j
		case splitStops[c]:
			if i = p.step(i); i > len(s) {
				return len(s), len(s), false
			}
		default:
			if class[c] != cSpace {
				before = NoWord
			}
			i++
		}
	}
	return len(s), len(s), false
}

// behind says that a word stands behind i, blanks between.
func (p *splitter) behind(i int, word string) bool {
	i = skipBlanks(p.s, i)
	return strings.EqualFold(p.s[i:nameEnd(p.s, i)], word)
}

// endsLoop says that the END in front of i is that of IF or a loop, whose beginnings are not counted.
func (p *splitter) endsLoop(i int) bool {
	for _, word := range []string{"if", "loop", "while", "repeat", "for"} {
		if p.behind(i, word) {
			return true
		}
	}
	return false
}
