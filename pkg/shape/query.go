package shape

import (
	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

// headsQuery says that a query begins at i, or brackets that hold one.
func (p *parser) headsQuery(i int) bool {
	switch p.word(i) {
	case lex.KwSelect, lex.KwWith:
		return true
	case lex.KwValues:
		if p.d.MySQLLike() && p.punct(i+1) == '(' && p.isName(i+2) && p.punct(i+3) == ')' {
			return false // VALUES(column) of ON DUPLICATE KEY UPDATE
		}
		return p.punct(i+1) == '(' || p.word(i+1) == lex.KwRow || p.tok(i+1).Kind == lex.Literal
	case lex.KwTable:
		return p.isName(i + 1)
	case lex.KwFrom:
		return p.isName(i+1) && p.word(i+2) == lex.KwSelect || p.punct(i-1) == '(' && p.fromFirstAhead(i) && !p.spells(i-2, "trim")
	}
	return p.punct(i) == '(' && p.opens[i]
}

// fromFirstAhead says that FROM t stands at i where a query can.
func (p *parser) fromFirstAhead(i int) bool {
	if p.word(i) != lex.KwFrom || !p.isName(i+1) {
		return false
	}
	switch p.d {
	case lex.DuckDB, lex.ClickHouse, lex.Hive, lex.Spark, lex.Auto:
		return true
	}
	return false
}

// query reads a query with its WITH, set operations, ORDER BY and LIMIT, and returns the index behind it.
func (p *parser) query(i int) (*Query, int) {
	if p.depth >= maxNesting {
		return &Query{Opaque: true}, p.flat(i)
	}
	p.depth++
	scope := len(p.ctes)
	if p.word(i) == lex.KwWith {
		i = p.with(i)
	}
	n, i := p.setOps(i)
	p.leaveScope(scope)
	p.depth--
	return n, i
}

// subquery reads a query inside of the statement's own.
func (p *parser) subquery(i int) (*Query, int) {
	p.build.Enter()
	n, i := p.query(i)
	p.build.Leave()
	return n, i
}

// setOps reads the branches of UNION and its like, then what orders and bounds them together.
func (p *parser) setOps(i int) (*Query, int) {
	n, i := p.branch(i)
	set := false
	for {
		ops := &p.build.Shape.SetOps
		all := p.word(i+1) == lex.KwAll
		switch p.word(i) {
		case lex.KwUnion:
			if all {
				ops.UnionAll++
			} else {
				ops.Union++
			}
		case lex.KwIntersect:
			ops.Intersect++
		case lex.KwExcept:
			ops.Except++
		case lex.KwMinus:
			if !p.startsQuery(i + 1) {
				return p.tail(n, i)
			}
			ops.Except++
		default:
			var end int
			if n, end = p.tail(n, i); end == i || !p.setOperator(end) {
				return n, end
			}
			i = end // an ORDER BY or LIMIT of the branch alone, without brackets
			continue
		}
		i++
		for p.word(i) == lex.KwAll || p.word(i) == lex.KwDistinct || p.word(i) == lex.KwBy || p.spells(i, "name") || p.spells(i, "distinctrow") {
			i++
		}
		if !set || n.Limited {
			n, set = &Query{Kids: []*Query{n}}, true
		}
		kid, next := p.branch(i)
		n.Kids = append(n.Kids, kid)
		if next == i {
			return n, i
		}
		i = next
	}
}

// setOperator says that a set operation goes on at i.
func (p *parser) setOperator(i int) bool {
	switch p.word(i) {
	case lex.KwUnion, lex.KwIntersect, lex.KwExcept:
		return true
	}
	return p.word(i) == lex.KwMinus && p.startsQuery(i+1)
}

func (p *parser) startsQuery(i int) bool {
	return p.headsQuery(i) || p.word(i) == lex.KwAll || p.word(i) == lex.KwDistinct
}

// branch reads one operand of a set operation.
func (p *parser) branch(i int) (*Query, int) {
	switch p.word(i) {
	case lex.KwSelect:
		return p.selectCore(i)
	case lex.KwFrom:
		return p.fromFirst(i)
	case lex.KwValues:
		return &Query{Opaque: true}, p.expr(i+1, nil, inValues)
	case lex.KwTable:
		n := &Query{Star: true, Outs: []Output{{Star: true}}}
		return n, p.factor(n, i+1)
	}
	if p.punct(i) == '(' {
		if p.depth >= maxNesting {
			return &Query{Opaque: true}, p.flat(i)
		}
		inner, next := p.query(i + 1)
		end := p.skip(i)
		if next < end-1 {
			end = max(p.expr(next, nil, inAny), end)
		}
		return &Query{Kids: []*Query{inner}}, end
	}
	return &Query{Opaque: true}, i
}

// tail reads ORDER BY, LIMIT and locks behind a query.
func (p *parser) tail(n *Query, i int) (*Query, int) {
	top := p.build.depth == 0
	for {
		start := i
		switch p.word(i) {
		case lex.KwOrder, lex.KwSort, lex.KwCluster, lex.KwDistribute:
			if p.word(i+1) != lex.KwBy {
				return n, i
			}
			if top && p.word(i) == lex.KwOrder {
				p.build.Shape.OrderBy = true
			}
			i = p.expr(i+2, n, inTail)
		case lex.KwLimit:
			i = p.limit(n, i+1)
		case lex.KwOffset:
			n.Limited = true
			n.Offset = p.slot(i + 1)
			i = p.expr(i+1, n, inTail)
			if p.word(i) == lex.KwRow || p.word(i) == lex.KwRows {
				i++
			}
		case lex.KwFetch:
			n.Limited = true
			if p.tok(i+2).Kind == lex.Literal {
				n.Limit = p.slot(i + 2)
			} else if w := p.word(i + 2); w == lex.KwRow || w == lex.KwRows {
				n.Limit = Slot{kind: oneRow}
			}
			i = p.expr(i+1, n, inTail)
		case lex.KwFor, lex.KwLock:
			if p.locks(i) {
				i = p.lock(i)
			}
		case lex.KwInto:
			i = p.into(i + 1)
		case lex.KwSettings, lex.KwFormat, lex.KwWith, lex.KwWindow:
			i = p.expr(i+1, n, inTail)
		}
		if i == start {
			return n, i
		}
	}
}

// locks says that FOR UPDATE or its like stands at i.
func (p *parser) locks(i int) bool {
	switch p.word(i + 1) {
	case lex.KwUpdate, lex.KwShare, lex.KwNo, lex.KwKey:
		return p.word(i) == lex.KwFor
	case lex.KwIn:
		return p.word(i) == lex.KwLock
	}
	return false
}

// lock reads FOR UPDATE and its like behind a query.
func (p *parser) lock(i int) int {
	p.build.Locked = true
	for i++; i < len(p.toks); i++ {
		switch {
		case p.tok(i).Kind == lex.Bare && !p.endsExpr(i, inTail) && p.word(i) != lex.KwFor, p.tok(i).Kind == lex.Quoted, p.tok(i).Kind == lex.Literal, p.punct(i) == ',', p.punct(i) == '.':
			continue
		}
		break
	}
	return i
}

// into reads what SELECT .. INTO writes: a table, a file or variables.
func (p *parser) into(i int) int {
	switch {
	case p.word(i) == lex.KwOutfile || p.word(i) == lex.KwDumpfile:
		p.build.Wrote = true
		return p.expr(i+1, nil, inTail)
	case p.op(i) == "@":
		return p.expr(i, nil, inTail)
	}
	for p.word(i) == lex.KwTemporary || p.word(i) == lex.KwTemp || p.word(i) == lex.KwTable || p.spells(i, "unlogged") {
		i++
	}
	if parts, next := p.path(i); len(parts) > 0 {
		p.build.Writes(TableOf(parts))
		return next
	}
	return i
}

// limit reads what stands behind LIMIT: n, n OFFSET m, m,n, ALL, and ClickHouse's n BY columns.
func (p *parser) limit(n *Query, i int) int {
	first, second := p.slot(i), Slot{}
	end := p.expr(i, n, inTail)
	offset := Slot{}
	if p.punct(i+1) == ',' {
		second = p.slot(i + 2)
	}
	if p.word(end) == lex.KwOffset {
		offset = p.slot(end + 1)
		end = p.expr(end+1, n, inTail)
	}
	n.Limited = true
	if p.word(end) == lex.KwBy {
		return p.expr(end+1, n, inTail)
	}
	n.Limit = first
	if second.kind != noRef {
		n.Limit, n.Offset = second, first
	}
	if offset.kind != noRef {
		n.Offset = offset
	}
	return end
}

// slot is the literal at i, if it is all that there is: 5 + 5 and 5 PERCENT are no number of rows.
func (p *parser) slot(i int) Slot {
	t, next := p.tok(i), p.tok(i+1)
	switch {
	case t.Kind == lex.Literal && next.Kind != lex.Operator && !p.spells(i+1, "percent"):
		return Slot{slotLit, t.Slot}
	case t.Word == lex.KwAll:
		return Slot{kind: allRows}
	}
	return Slot{}
}

// with reads the named queries in front of a statement.
func (p *parser) with(i int) int {
	i++
	recursive := p.word(i) == lex.KwRecursive
	if recursive {
		i++
		p.build.Shape.Recursive = true
	}
	for i < len(p.toks) {
		start := i
		i = p.named(i, recursive)
		if p.punct(i) != ',' {
			return i
		}
		i++
		if i <= start {
			return i
		}
	}
	return i
}

// named reads one named query, or ClickHouse's expression AS name.
func (p *parser) named(i int, recursive bool) int {
	k := i + 1
	if p.punct(k) == '(' {
		k = p.skip(k)
	}
	body := k + 1
	for p.word(body) == lex.KwNot || p.word(body) == lex.KwMaterialized {
		body++
	}
	if !p.isName(i) || p.word(k) != lex.KwAs || p.punct(body) != '(' {
		i = p.expr(i, nil, inList)
		if p.word(i) == lex.KwAs {
			if p.isName(i+1) && p.d.AliasesInWhere() {
				p.build.computed(p.name(i + 1))
			}
			i += 2
		}
		return i
	}
	c := &Named{Name: p.name(i), Recursive: recursive}
	p.build.Shape.CTEs++
	if recursive {
		p.enterScope(c)
	}
	p.build.Enter()
	end := p.skip(body)
	if p.opens[body] {
		var next int
		c.Query, next = p.query(body + 1)
		if next < end-1 {
			p.expr(next, nil, inAny)
		}
	} else {
		p.statement(body + 1)
		c.Query = &Query{Opaque: true}
	}
	p.build.Leave()
	if k > i+1 {
		c.Query = &Query{Opaque: true, Kids: []*Query{c.Query}, Limited: true} // columns are renamed
	}
	if !recursive {
		p.enterScope(c)
	}
	p.build.Named = append(p.build.Named, c)
	for end < len(p.toks) && p.punct(end) != ',' && !p.headsStatement(end) && p.punct(end) != ')' {
		end++ // SEARCH and CYCLE clauses
	}
	return end
}

func (p *parser) headsStatement(i int) bool {
	switch p.word(i) {
	case lex.KwSelect, lex.KwInsert, lex.KwUpdate, lex.KwDelete, lex.KwMerge, lex.KwFrom, lex.KwValues, lex.KwReplace, lex.KwTable, lex.KwWith:
		return true
	}
	return p.punct(i) == '(' || p.punct(i) == ';'
}

// cteNamed finds the named query in scope that a name means.
func (p *parser) cteNamed(parts []string) *Named {
	if len(parts) != 1 {
		return nil
	}
	if same := p.cteAt[parts[0]]; len(same) > 0 {
		return same[len(same)-1]
	}
	return nil
}

// enterScope puts a named query in scope.
func (p *parser) enterScope(c *Named) {
	if p.cteAt == nil {
		p.cteAt = map[string][]*Named{}
	}
	p.ctes = append(p.ctes, c)
	p.cteAt[c.Name] = append(p.cteAt[c.Name], c)
}

// leaveScope ends the scope of all named queries but the first n.
func (p *parser) leaveScope(n int) {
	for _, c := range p.ctes[n:] {
		same := p.cteAt[c.Name]
		p.cteAt[c.Name] = same[:len(same)-1]
	}
	p.ctes = p.ctes[:n]
}
