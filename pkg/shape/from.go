package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// from reads the items of FROM with their joins, and returns the index behind them.
func (p *parser) from(n *Query, i int) int {
	first := len(n.Items)
	if !p.joinAhead(i) {
		i = p.factor(n, i)
	}
	for i < len(p.toks) {
		if p.punct(i) == ',' {
			p.build.Shape.Joins.Cross++
			first = len(n.Items) // a join binds closer than a comma
			i = p.factor(n, i+1)
			continue
		}
		j, ok := p.join(i)
		if !ok {
			return i
		}
		i = p.joined(n, j, first)
	}
	return i
}

func mark(sources []*Item) {
	for _, s := range sources {
		s.Nullable = true
	}
}

// markAll marks all items from lo to hi. In a chain of joins, what the last one marked is not gone over again.
func (n *Query) markAll(lo, hi int) {
	from := lo
	if lo >= n.markedFrom && lo <= n.markedTo {
		lo, from = n.markedFrom, min(n.markedTo, hi)
	}
	mark(n.Items[from:hi])
	n.markedFrom, n.markedTo = lo, max(hi, from)
}

// unfold reads LATERAL VIEW f(x) t AS a, b and ARRAY JOIN a AS b. Their columns are not those of a table.
func (p *parser) unfold(n *Query, i int, view bool) int {
	src := &Item{Fixed: true, Alias: "\x00"}
	n.Items = append(n.Items, src)
	if view {
		end := p.expr(i, n, inOn)
		if p.word(end) != lex.KwAs {
			return end
		}
		i, src.Closed = end, true
		for i == end || p.punct(i) == ',' && p.isName(i+1) {
			if !p.isName(i + 1) {
				break
			}
			src.Columns = append(src.Columns, p.name(i+1))
			i += 2
		}
		return i
	}
	for i < len(p.toks) {
		end := p.expr(i, n, inOn)
		if p.word(end) == lex.KwAs && p.isName(end+1) {
			end += 2
		}
		if end == i || p.punct(end) != ',' {
			return end
		}
		i = end + 1
	}
	return i
}

// factor reads one item of FROM with its alias.
func (p *parser) factor(n *Query, i int) int {
	for p.word(i) == lex.KwOnly || p.word(i) == lex.KwLateral && p.word(i+1) != lex.KwView {
		i++
	}
	if p.punct(i) == '[' && p.d.MySQLLike() && p.isName(i+1) {
		i = p.skip(i) // JOIN [BROADCAST] t
	}
	if p.punct(i) == '{' && p.spells(i+1, "oj") {
		if p.depth >= maxNesting {
			return p.flat(i)
		}
		p.depth++
		end := p.from(n, i+2) // ODBC's { OJ a LEFT JOIN b ON .. }
		p.depth--
		return max(end+1, p.skip(i))
	}
	if p.punct(i) == '(' {
		return p.bracketed(n, i)
	}
	if p.word(i+1) == lex.KwTable && p.punct(i+2) == '(' && (p.word(i) == lex.KwFinal || p.spells(i, "old") || p.spells(i, "new")) {
		if p.depth >= maxNesting {
			return p.flat(i)
		}
		p.depth++
		defer func() { p.depth-- }()
		src := &Item{Fixed: true} // the rows that a change in brackets has changed
		n.Items = append(n.Items, src)
		s := &p.build.Shape
		class, command := s.Statement, s.Command
		p.statement(i + 3)
		s.Statement, s.Command = class, command
		return p.alias(src, p.skip(i+2))
	}
	if p.spells(i, "rows") && p.word(i+1) == lex.KwFrom && p.punct(i+2) == '(' {
		src := &Item{Fixed: true} // PostgreSQL's ROWS FROM (f(1), g(2))
		n.Items = append(n.Items, src)
		return p.alias(src, p.skip(i+2))
	}
	if w := p.word(i); (w == lex.KwUnnest || w == lex.KwTable && p.punct(i+1) == '(' || w == lex.KwValues) && p.tok(i).Kind == lex.Bare {
		src := &Item{Fixed: true}
		n.Items = append(n.Items, src)
		if w == lex.KwValues {
			i = p.expr(i+1, nil, inValues)
		} else {
			if w == lex.KwTable {
				p.tableArguments(i + 1)
			}
			i = p.expr(i, nil, inOn)
		}
		return p.alias(src, i)
	}
	if p.tok(i).Kind == lex.Literal {
		src := &Item{Fixed: true}
		n.Items = append(n.Items, src)
		return p.alias(src, i+1)
	}
	parts, next := p.path(i)
	if len(parts) == 0 {
		return i
	}
	if p.punct(next) == '(' && p.word(next+1) != lex.KwSelect {
		// a table function
		src := &Item{Fixed: true}
		n.Items = append(n.Items, src)
		p.tableArguments(next)
		p.expr(next+1, nil, inAny)
		return p.alias(src, p.skip(next))
	}
	src := &Item{}
	n.Items = append(n.Items, src)
	if len(parts) == 1 && parts[0] == "dual" && p.tok(i).Kind == lex.Bare && p.d.HasDual() {
		src.Fixed = true
		return next
	}
	if c := p.cteNamed(parts); c != nil {
		c.Uses++
		src.Named, src.Query, src.Alias = c, c.Query, c.Name
		if c.Query == nil {
			src.Fixed = true
		}
	} else {
		src.Parts = parts
		src.Table = p.build.Reads(parts)
		p.build.Shape.JoinTables++
	}
	return p.alias(src, p.suffix(src, next))
}

// tableArguments reads the tables that a table function in the brackets at i is given: TABLE(f(input => TABLE(t))). Queries
// among its arguments are left to expr.
func (p *parser) tableArguments(i int) {
	for k, end := i+1, p.skip(i)-1; k < end; k++ {
		if p.punct(k) == '(' && p.opens[k] {
			k = p.skip(k) - 1
			continue
		}
		if p.word(k) != lex.KwTable || p.punct(k+1) != '(' || p.punct(k-1) != '(' && p.punct(k-1) != ',' && p.op(k-1) != "=>" {
			continue
		}
		parts, next := p.path(k + 2)
		if len(parts) == 0 || p.punct(next) != ')' {
			continue
		}
		if c := p.cteNamed(parts); c != nil {
			c.Uses += 2 // conditions on the function's rows say nothing of its argument's
			continue
		}
		p.build.Reads(parts)
		p.build.Shape.JoinTables++
	}
}

// bracketed reads ( query ) or ( joined tables ).
func (p *parser) bracketed(n *Query, i int) int {
	if p.depth >= maxNesting {
		return p.flat(i)
	}
	end := p.skip(i)
	if p.opens[i] && !p.joinInside(i) {
		src := &Item{}
		n.Items = append(n.Items, src)
		node, next := p.subquery(i + 1)
		if next < end-1 {
			end = max(p.expr(next, nil, inAny), end)
		}
		src.Query = node
		return p.alias(src, p.suffix(src, end))
	}
	p.depth++
	next := p.from(n, i+1)
	p.depth--
	if p.punct(next) != ')' {
		return max(next, i+1)
	}
	if k, ok := p.aliasAt(next + 1); ok {
		return k
	}
	return next + 1
}

// joinInside says that the bracket at i holds a bracketed query that is joined with more: ((SELECT ..) a JOIN b).
func (p *parser) joinInside(i int) bool {
	for p.punct(i+1) == '(' {
		k := p.skip(i + 1)
		if k >= len(p.toks) || p.punct(k) == ')' {
			i++
			continue
		}
		switch p.word(k) {
		case lex.KwUnion, lex.KwIntersect, lex.KwExcept, lex.KwOrder, lex.KwLimit, lex.KwMinus, lex.KwOffset:
			return false
		}
		return true
	}
	return false
}
