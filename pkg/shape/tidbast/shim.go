package tidbast

import (
	"strconv"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

const (
	// slotBase is added to a slot's number where a number stands for a literal, so that no number of the text is taken for
	// one.
	slotBase = 1_000_000_000
	// slotMark begins the string that stands for a literal.
	slotMark = "\x02"
	// joint joins the parts of a name that MySQL has no place for.
	joint = "\x01"
)

// shim prints tokens in MySQL's spelling.
type shim struct {
	s       string
	d       lex.Dialect
	toks    []lex.Token
	out     []byte
	rewrote bool
	refused bool
	// escapes are the slots of ESCAPE clauses by the slot of their patterns.
	escapes map[uint32]uint32
	// from says for each depth of brackets whether a comma separates tables.
	from []bool
	// casts are the depths of brackets whose AS precedes a type.
	casts []bool
	joins int
	// rows says that rows of VALUES stand here.
	rows bool
}

// render prints the text for the parser, and notes whether more than literals, quotes and layout was changed. It refuses
// what the parser would reject or read differently. What it prints must follow from the canonical text alone, since the tree
// serves all texts that share it.
func (p *shim) render() bool {
	p.from, p.casts, p.joins = append(p.from[:0], false), append(p.casts[:0], false), 0
	p.rows = false
	for i := 0; i < len(p.toks) && !p.refused; {
		i = p.token(i)
	}
	return !p.refused
}

func (p *shim) tok(i int) lex.Token {
	if i >= 0 && i < len(p.toks) {
		return p.toks[i]
	}
	return lex.Token{}
}

func (p *shim) raw(i int) string { t := p.tok(i); return p.s[t.Off:t.End] }

func (p *shim) punct(i int) byte {
	if t := p.tok(i); t.Kind == lex.Punct {
		return p.s[t.Off]
	}
	return 0
}

func (p *shim) write(s string) {
	p.out = append(p.out, s...)
	p.out = append(p.out, ' ')
}

// token prints what stands at i and returns the index behind it.
func (p *shim) token(i int) int {
	t := p.toks[i]
	switch t.Kind {
	case lex.Literal:
		p.literal(i)
	case lex.Quoted:
		return p.name(i)
	case lex.Bare:
		if t.Word == lex.NoWord || p.punct(i-1) == '.' || p.punct(i+1) == '.' {
			return p.name(i)
		}
		return p.keyword(i)
	case lex.Ordinal:
		p.write(p.raw(i))
	case lex.Operator:
		p.operator(i)
	case lex.Punct:
		p.mark(i)
	default:
		p.refused = true
	}
	return i + 1
}

func (p *shim) literal(i int) {
	t := p.toks[i]
	if p.tok(i-1).Kind == lex.Literal {
		p.refused = true // the parser copies all it has joined for each that follows
		return
	}
	if p.tok(i-1).Word == lex.KwEscape {
		p.escapes[p.tok(i-2).Slot] = t.Slot
		p.write("'!'")
		return
	}
	if p.wantsText(i) {
		p.write("'" + slotMark + strconv.FormatUint(uint64(t.Slot), 10) + "'")
		return
	}
	p.write(strconv.FormatUint(slotBase+uint64(t.Slot), 10))
}

// wantsText says that the grammar has a string where the literal at i stands, and no number. What the literal is does not
// matter: the tree serves all texts that differ in it.
func (p *shim) wantsText(i int) bool {
	switch t := p.tok(i - 1); t.Kind {
	case lex.Quoted:
		return true // an alias
	case lex.Bare:
		switch t.Word {
		case lex.NoWord, lex.KwAs, lex.KwDate, lex.KwTime, lex.KwTimestamp, lex.KwSeparator, lex.KwCollate, lex.KwOutfile, lex.KwDumpfile:
			return true
		case lex.KwBy:
			return p.tok(i-2).Word == lex.NoWord // FIELDS TERMINATED BY ','
		}
	case lex.Punct:
		return p.punct(i-1) == ')'
	case lex.Operator:
		return p.raw(i-1) == "->" || p.raw(i-1) == "->>"
	}
	return false
}

func (p *shim) operator(i int) {
	switch op := p.raw(i); op {
	case "::", "=>", "@>", "<@", "#>", "#>>", "~*", "!~", "!~*", "?", "?|", "?&", "#", "@?", ":", "\\":
		p.refused = true
	case "==":
		p.rewrote = true
		p.write("=")
	case "~":
		p.refused = p.refused || !p.d.MySQLLike()
		p.write(op)
	case "->", "->>":
		// a lambda elsewhere
		if p.tok(i+1).Kind != lex.Literal {
			p.refused = true
		}
		p.write(op)
	case "@", "@@":
		p.out = append(p.out, op...) // the name follows without a blank
	default:
		p.write(op)
	}
}

func (p *shim) mark(i int) {
	c := p.punct(i)
	switch c {
	case '(':
		if p.rows && len(p.from) == 1 && p.punct(i-1) == ')' {
			p.out = append(p.out, ", "...) // ClickHouse needs none
		}
		before := p.tok(i - 1).Word
		p.from = append(p.from, p.inFrom() && (before == lex.KwFrom || before == lex.KwJoin || p.punct(i-1) == ',' || p.punct(i-1) == '('))
		p.casts = append(p.casts, before == lex.KwCast || before == lex.KwTryCast)
	case ')':
		if len(p.from) > 1 {
			p.from, p.casts = p.from[:len(p.from)-1], p.casts[:len(p.casts)-1]
		}
	case '[', ']', '{', '}':
		p.refused = true
	case ';':
		p.refused = true // one statement at a time
	}
	// MySQL wants no blank between the name of some functions and their bracket.
	if n := len(p.out); c == '(' && n > 0 && p.out[n-1] == ' ' && p.tok(i-1).Kind == lex.Bare {
		p.out = p.out[:n-1]
	}
	if c == '.' {
		if n := len(p.out); n > 0 && p.out[n-1] == ' ' {
			p.out = p.out[:n-1]
		}
		p.out = append(p.out, '.')
		return
	}
	p.out = append(p.out, c, ' ')
}

func (p *shim) inFrom() bool { return p.from[len(p.from)-1] }

func (p *shim) setFrom(in bool) { p.from[len(p.from)-1] = in }
