package tidbast

import (
	"sync"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // the parser's own constants

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
)

// The parser builds trees by recursion, and so do all who walk over them; it walks down all earlier joins for each further
// one. Texts beyond these bounds are left to the token extractor.
const (
	MaxTokens = 20_000
	MaxDepth  = 256
	MaxJoins  = 256
)

var parsers = sync.Pool{New: func() any {
	p := parser.New()
	p.EnableWindowFunc(true)
	return p
}}

var shims = sync.Pool{New: func() any { return &shim{escapes: map[uint32]uint32{}} }}

// Parse reads a template from the syntax tree of a text. It returns nil if the parser does not read the text, or if it is
// no statement whose tree says more than its tokens.
func Parse(sql string, d lex.Dialect) *shape.Template {
	p := shims.Get().(*shim)
	defer shims.Put(p)
	text, ok := p.text(sql, d)
	p.s = "" // what waits for the next text must not keep this one
	if !ok {
		return nil
	}
	stmt := parse(text, d)
	if stmt == nil {
		return nil
	}
	r := reader{d: d, build: shape.NewBuilder(d), escapes: p.escapes, byName: map[string][]*shape.Named{}}
	if !r.statement(stmt) {
		return nil
	}
	source := shape.FromAST
	if p.rewrote {
		source = shape.FromShim
	}
	r.build.Shape.Source = source
	return r.build.Template()
}

// text prints a text as the parser reads it.
func (p *shim) text(sql string, d lex.Dialect) (string, bool) {
	clear(p.escapes)
	var res lex.Result
	p.s, p.d, p.out, p.rewrote, p.refused = sql, d, p.out[:0], false, false
	p.toks, res = lex.Tokens(p.toks[:0], sql, d, nil, MaxTokens+1)
	if len(p.toks) > MaxTokens || res.Depth > MaxDepth || res.Flags&(lex.HasMany|lex.HasInlineData) != 0 || !treeSays(res.Verb) {
		return "", false
	}
	if !p.render() {
		return "", false
	}
	return string(p.out), true
}

// treeSays says that a statement with this verb has a tree worth reading.
func treeSays(verb lex.Word) bool {
	switch verb {
	case lex.KwSelect, lex.KwInsert, lex.KwReplace, lex.KwUpdate, lex.KwDelete:
		return true
	}
	return false
}

// parse returns nil for what the parser rejects. Should it panic on a text, that is a rejection as well.
func parse(text string, d lex.Dialect) (stmt ast.StmtNode) {
	p := parsers.Get().(*parser.Parser)
	mode := mysql.SQLMode(0)
	if !d.PipesOr() {
		mode |= mysql.ModePipesAsConcat
	}
	p.SetSQLMode(mode)
	defer func() {
		if recover() != nil {
			stmt = nil // and the parser's state is not trusted again
			return
		}
		p.Reset()
		parsers.Put(p)
	}()
	stmt, err := p.ParseOneStmt(text, "", "")
	if err != nil {
		return nil
	}
	return stmt
}
