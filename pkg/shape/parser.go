package shape

import (
	"strings"
	"sync"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

const (
	// maxTokens bounds what the extractor looks at; a longer text has a partial shape.
	maxTokens = 1 << 18
	// maxNesting bounds recursion into queries and brackets of FROM; deeper ones are searched for tables only.
	maxNesting = 128
	// maxParts bounds a qualified name; what is longer names nothing.
	maxParts = 16
)

// parser walks over the tokens of one text.
type parser struct {
	s     string
	d     lex.Dialect
	toks  []lex.Token
	match []int32 // index of the bracket that closes the one here, or the number of tokens
	opens []bool  // the bracket here holds a query, perhaps in further brackets
	// windows are the named ones and where their definitions stand; nil until one is asked for.
	windows map[string]*namedWindow
	build   *Builder
	ctes    []*Named
	cteAt   map[string][]*Named // those of each name
	depth   int
	// inTables counts the tables behind IN that were looked for.
	inTables int
	// endless says that the body of a routine had no end.
	endless bool
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

// Extract reads a template from the tokens of a text, and collects its literals.
func Extract(sql string, d lex.Dialect, spans *lex.Spans) (*Template, lex.Result) {
	p := parsers.Get().(*parser)
	defer parsers.Put(p)
	var r lex.Result
	p.toks, r = lex.Tokens(p.toks[:0], sql, d, spans, maxTokens)
	p.s, p.d, p.ctes, p.depth, p.inTables = sql, d, p.ctes[:0], 0, 0
	p.windows, p.endless = nil, false
	p.build = NewBuilder(d)
	p.pair()
	p.text()
	if len(p.toks) >= maxTokens {
		// What was not looked at may write or lock: the pass over the bytes has seen whether there is more than one statement.
		p.build.Wrote = p.build.Wrote || r.Flags&lex.HasMany != 0
		p.build.Locked = p.build.Locked || r.Flags&lex.HasLock != 0
	}
	t := p.build.Template()
	if len(p.toks) == 0 {
		t.shape.Source = FromNone
	} else {
		t.shape.Source = FromTokens
	}
	if len(p.toks) >= maxTokens {
		t.shape.Partial = true
	}
	p.s, p.build = "", nil
	clear(p.ctes)
	if len(p.cteAt) > 64 {
		p.cteAt = nil // clearing it would cost every later text
	}
	clear(p.cteAt)
	return t, r
}

// pair finds for each opening bracket the one that closes it.
func (p *parser) pair() {
	n := len(p.toks)
	if cap(p.match) < n {
		p.match = make([]int32, n)
	}
	p.match = p.match[:n]
	top := int32(-1) // an open bracket holds the index of the one around it until it is closed
	for i := range p.toks {
		p.match[i] = int32(n)
		switch p.punct(i) {
		case '(', '[', '{':
			p.match[i] = top
			top = int32(i)
		case ')', ']', '}':
			if top >= 0 {
				up := p.match[top]
				p.match[top] = int32(i)
				top = up
			}
		}
	}
	for top >= 0 {
		up := p.match[top]
		p.match[top] = int32(n)
		top = up
		p.build.Partial = true
	}
	if cap(p.opens) < n {
		p.opens = make([]bool, n)
	}
	p.opens = p.opens[:n]
	for i := n - 1; i >= 0; i-- {
		p.opens[i] = p.punct(i) == '(' && p.headsQuery(i+1)
	}
}

func (p *parser) tok(i int) lex.Token {
	if i >= 0 && i < len(p.toks) {
		return p.toks[i]
	}
	return lex.Token{}
}

// word is the keyword at i, if there is one.
func (p *parser) word(i int) lex.Word { return p.tok(i).Word }

// punct is the mark at i, or zero.
func (p *parser) punct(i int) byte {
	if i >= 0 && i < len(p.toks) && p.toks[i].Kind == lex.Punct {
		return p.s[p.toks[i].Off]
	}
	return 0
}

// op is the operator at i, or nothing.
func (p *parser) op(i int) string {
	if t := p.tok(i); t.Kind == lex.Operator {
		return p.s[t.Off:t.End]
	}
	return ""
}

func (p *parser) raw(i int) string {
	t := p.tok(i)
	return p.s[t.Off:t.End]
}

// spells says that the token at i is this bare word, given in lower case.
func (p *parser) spells(i int, word string) bool {
	return p.tok(i).Kind == lex.Bare && strings.EqualFold(p.raw(i), word)
}

// skip is the index behind the bracket group that opens at i.
func (p *parser) skip(i int) int { return min(int(p.match[i])+1, len(p.toks)) }

// isName says that the token at i can name something.
func (p *parser) isName(i int) bool {
	switch t := p.tok(i); t.Kind {
	case lex.Quoted:
		return true
	case lex.Bare:
		return t.Word == lex.NoWord || !reserved[t.Word]
	}
	return false
}

// name is the name at i, folded as the dialect folds names.
func (p *parser) name(i int) string {
	t := p.tok(i)
	return lex.Name(p.s[t.Off:t.End], t.Kind == lex.Quoted, p.d)
}

// path reads a name with its qualifiers, and returns the index behind it.
func (p *parser) path(i int) ([]string, int) {
	if !p.isName(i) {
		return nil, i
	}
	end, n := i+1, 1
	for p.punct(end) == '.' && (p.tok(end+1).Kind == lex.Bare || p.tok(end+1).Kind == lex.Quoted) {
		end += 2
		n++
	}
	if n > maxParts {
		return nil, i
	}
	parts := make([]string, 0, n)
	for ; i < end; i += 2 {
		parts = append(parts, p.name(i))
	}
	return parts, end
}

// endsOperand says that the token at i may end an expression, so that what follows it is no operand.
func (p *parser) endsOperand(i int) bool {
	t := p.tok(i)
	switch t.Kind {
	case lex.Literal, lex.Ordinal, lex.Quoted:
		return true
	case lex.Bare:
		return t.Word == lex.NoWord || !t.Word.ExpectsOperand()
	case lex.Operator:
		return p.op(i) == "*" && (p.punct(i-1) == '.' || p.punct(i-1) == '(' || p.punct(i-1) == ',' || p.word(i-1) == lex.KwSelect || p.word(i-1) == lex.KwDistinct)
	case lex.Punct:
		switch p.punct(i) {
		case ')', ']', '}':
			return true
		}
	}
	return false
}

// reserved words never name a table, a column or an alias.
var reserved = func() map[lex.Word]bool {
	m := map[lex.Word]bool{}
	for _, w := range []lex.Word{
		lex.KwSelect, lex.KwFrom, lex.KwWhere, lex.KwAnd, lex.KwOr, lex.KwNot, lex.KwIn, lex.KwLike, lex.KwBetween, lex.KwIs,
		lex.KwCase, lex.KwWhen, lex.KwThen, lex.KwElse, lex.KwNull, lex.KwTrue, lex.KwFalse, lex.KwAs, lex.KwOn, lex.KwUsing,
		lex.KwJoin, lex.KwInner, lex.KwCross, lex.KwNatural, lex.KwOrder, lex.KwGroup, lex.KwHaving, lex.KwUnion, lex.KwIntersect,
		lex.KwExcept, lex.KwBy, lex.KwInto, lex.KwExists, lex.KwDistinct, lex.KwWith, lex.KwReturning, lex.KwQualify, lex.KwPrewhere,
		lex.KwXor, lex.KwStraightJoin, lex.KwValues,
	} {
		m[w] = true
	}
	return m
}()
