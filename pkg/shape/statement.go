package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// text reads the statements of a text. The first decides the class; the others add what they read and write.
func (p *parser) text() {
	b := p.build
	first := true
	var class Statement
	var command string
	var outer *Query
	for i := 0; i < len(p.toks); {
		end := p.statement(i)
		if first {
			class, command, outer, first = b.Shape.Statement, b.Shape.Command, b.Outer, false
		} else if b.Shape.Statement != class && !reading(b.Shape.Statement) {
			b.Wrote = b.Wrote || b.Shape.Statement != Set
		}
		if end <= i {
			end = i + 1
		}
		i = end
		for i < len(p.toks) && p.punct(i) != ';' {
			i = max(p.expr(i, nil, inAny), i+1) // what no rule read
		}
		i++
	}
	b.Shape.Statement, b.Shape.Command, b.Outer = class, command, outer
}

func reading(s Statement) bool { return s == Select || s == Show || s == Explain || s == Set }

// statement reads one statement and returns the index behind it.
func (p *parser) statement(i int) int {
	b := p.build
	s := &b.Shape
	scope := len(p.ctes)
	for p.punct(i) == '{' && p.skip(i) < len(p.toks) {
		i = p.skip(i) // {{ config(..) }} and {% set .. %} of a template
	}
	lead := i
	for p.punct(lead) == '(' {
		lead++
	}
	if p.word(i) == lex.KwWith {
		i = p.with(i)
		lead = i
		for p.punct(lead) == '(' {
			lead++
		}
	}
	defer p.leaveScope(scope)
	switch w := p.word(lead); w {
	case lex.KwSelect, lex.KwWith, lex.KwValues, lex.KwFrom, lex.KwTable:
		s.Statement = Select // unless the query turns out to feed an INSERT behind it
		n, end := p.query(i)
		b.Outer = n
		b.Roots = append(b.Roots, n)
		return end
	case lex.KwInsert:
		s.Statement = Insert
		return p.insert(lead)
	case lex.KwReplace:
		s.Statement = Replace
		return p.insert(lead)
	case lex.KwUpdate:
		s.Statement = Update
		return p.update(lead + 1)
	case lex.KwDelete:
		if p.d.Family() == "spark" && p.resource(lead+1) {
			return p.utility(lead)
		}
		s.Statement = Delete
		return p.delete(lead + 1)
	case lex.KwMerge:
		s.Statement = Merge
		return p.merge(lead + 1)
	case lex.KwCreate:
		s.Statement = Create
		return p.create(lead + 1)
	}
	return p.utility(lead)
}

// insert reads INSERT and REPLACE.
func (p *parser) insert(i int) int {
	b := p.build
	b.Wrote = true
	overwrite := false
	i++
	for {
		switch p.word(i) {
		case lex.KwInto, lex.KwIgnore, lex.KwLowPriority, lex.KwDelayed, lex.KwHighPriority, lex.KwOr, lex.KwReplace:
		case lex.KwOverwrite:
			overwrite = true
		case lex.KwTable:
		default:
			if p.word(i-1) == lex.KwOr { // INSERT OR IGNORE
				i++
				continue
			}
			goto target
		}
		i++
	}
target:
	if p.word(i) == lex.KwFunction || p.spells(i, "directory") || p.word(i) == lex.KwLocal {
		i++
		for i < len(p.toks) && !p.headsStatement(i) {
			i++
		}
		if p.punct(i) == '(' {
			i = p.skip(i)
		}
	} else if parts, next := p.path(i); len(parts) > 0 {
		if i = next; p.punct(i) == '(' && p.tok(i+1).Kind == lex.Literal {
			i = p.skip(i) // FILES('path' = ..) is a function
		} else {
			b.Writes(TableOf(parts))
		}
	}
	if overwrite && b.depth == 0 {
		b.Shape.Effect = Repeatable
	}
	if p.word(i) == lex.KwAs && p.isName(i+1) {
		i += 2
	}
	return p.insertBody(i)
}

// insertBody reads the columns, then rows, a query or assignments.
func (p *parser) insertBody(i int) int {
	for i < len(p.toks) {
		start := i
		switch w := p.word(i); {
		case w == lex.KwFrom && p.spells(i+1, "infile"):
			i += 2
		case w == lex.KwSelect, w == lex.KwWith, w == lex.KwFrom, w == lex.KwTable && p.isName(i+1), p.punct(i) == '(' && p.opens[i]:
			n, end := p.query(i)
			p.build.Outer = n
			p.build.Roots = append(p.build.Roots, n)
			i = end
		case p.punct(i) == '(':
			i = p.skip(i)
		case w == lex.KwValues || w == lex.KwValue || w == lex.KwSet:
			i = p.expr(i+1, nil, inValues)
		case w == lex.KwPartition && p.punct(i+1) == '(':
			i = p.skip(i + 1)
		case p.punct(i) == ';' || p.punct(i) == ')':
			return i
		case w == lex.KwInsert:
			return i // the next target of a multi-insert
		default:
			i = p.expr(i, nil, inValues)
			if i == start {
				i++
			}
		}
	}
	return i
}

// update reads UPDATE .. SET .. [FROM ..] [WHERE ..].
func (p *parser) update(i int) int {
	for p.priority(i) || p.word(i) == lex.KwOr || p.word(i) == lex.KwReplace {
		i++
	}
	n := &Query{}
	b := p.build
	b.Wrote = true
	joins := b.Shape.JoinTables
	i = p.from(n, i)
	if len(n.Items) == 1 {
		b.Target(n.Items[0])
		b.Shape.JoinTables = joins // UPDATE t is no reference behind FROM
	}
	set, end := i, i
	if p.word(i) == lex.KwSet {
		end = p.expr(i+1, n, inWhere)
	}
	b.Roots = append(b.Roots, n)
	items := len(n.Items)
	i = p.clauses(n, end)
	if items == 1 && len(n.Items) > 1 {
		b.aliased(n)
	}
	if end > set {
		p.targets(n, set+1, end)
	}
	return p.rest(n, i)
}

// priority says that the word at i is one of MySQL's modifiers and no name.
func (p *parser) priority(i int) bool {
	switch p.word(i) {
	case lex.KwLowPriority, lex.KwHighPriority, lex.KwDelayed, lex.KwIgnore:
		return true
	}
	return false
}

// targets finds the tables that assignments write.
func (p *parser) targets(n *Query, lo, hi int) {
	var qualifiers [][]string
	for i := lo; i < hi; i++ {
		switch p.punct(i) {
		case '(', '[', '{':
			i = min(int(p.match[i]), hi)
			continue
		}
		if i != lo && p.punct(i-1) != ',' {
			continue
		}
		parts, _ := p.path(i)
		if len(parts) > 1 {
			qualifiers = append(qualifiers, parts[:len(parts)-1])
		}
	}
	p.build.Assigns(n, qualifiers)
}

// delete reads DELETE in its three forms: FROM t, a, b FROM .., FROM a USING ...
func (p *parser) delete(i int) int {
	for p.priority(i) || p.spells(i, "quick") {
		i++
	}
	b := p.build
	b.Wrote = true
	n := &Query{}
	b.Roots = append(b.Roots, n)
	var named [][]string
	if p.word(i) != lex.KwFrom {
		for {
			parts, next := p.path(i)
			if len(parts) == 0 {
				break
			}
			named = append(named, parts)
			if i = next; p.punct(i) == '.' { // t.*
				i += 2
			}
			if p.punct(i) != ',' {
				break
			}
			i++
		}
	}
	if p.word(i) == lex.KwFrom {
		i++
	}
	if named == nil {
		var next int
		if named, next = p.usingTargets(i); named != nil {
			i = next
		}
	}
	first := len(n.Items)
	i = p.from(n, i)
	if named == nil && len(n.Items) == 1 {
		b.Target(n.Items[0])
	}
	if p.word(i) == lex.KwUsing {
		i = p.from(n, i+1)
	}
	p.deleted(n, named, first)
	i = p.clauses(n, i)
	return p.rest(n, i)
}

// usingTargets reads the targets of MySQL's DELETE FROM a, b USING .., where they are names of sources and not sources.
func (p *parser) usingTargets(i int) ([][]string, int) {
	if !p.d.MySQLLike() {
		return nil, i
	}
	var named [][]string
	for {
		parts, next := p.path(i)
		if len(parts) == 0 {
			return nil, i
		}
		named = append(named, parts)
		if p.punct(next) == '.' {
			next += 2
		}
		if p.word(next) == lex.KwUsing {
			return named, next + 1
		}
		if p.punct(next) != ',' {
			return nil, i
		}
		i = next + 1
	}
}

func (p *parser) deleted(n *Query, named [][]string, first int) {
	if named == nil {
		if first < len(n.Items) && n.Items[first].Parts != nil {
			p.build.Writes(n.Items[first].Table)
		}
		return
	}
	p.build.Deletes(n, named)
}

// merge reads MERGE INTO t USING s ON .. WHEN ...
func (p *parser) merge(i int) int {
	if p.word(i) == lex.KwInto {
		i++
	}
	b := p.build
	b.Wrote = true
	n := &Query{}
	b.Roots = append(b.Roots, n)
	joins := b.Shape.JoinTables
	i = p.factor(n, i)
	if len(n.Items) == 1 {
		b.Target(n.Items[0])
	}
	b.Shape.JoinTables = joins
	if len(n.Items) > 0 && n.Items[0].Parts != nil {
		b.Writes(n.Items[0].Table)
	}
	if p.word(i) == lex.KwUsing {
		i = p.factor(n, i+1)
	}
	if p.word(i) == lex.KwOn {
		end := p.expr(i+1, n, inOn)
		if !p.bySource(end) {
			p.conditions(n, i+1, end, 0, 1) // a row of the source that matches nothing is inserted
		}
		i = end
	}
	return p.rest(n, i)
}

// bySource says that MERGE also changes rows that match nothing: WHEN NOT MATCHED BY SOURCE.
func (p *parser) bySource(i int) bool {
	for ; i < len(p.toks) && p.punct(i) != ';'; i++ {
		if p.word(i) == lex.KwMatched && p.word(i+1) == lex.KwBy && p.spells(i+2, "source") {
			return true
		}
	}
	return false
}

// rest walks over what is left of a statement.
func (p *parser) rest(n *Query, i int) int {
	for i < len(p.toks) && p.punct(i) != ';' && p.punct(i) != ')' {
		next := p.expr(i, n, inAny)
		if next == i {
			return i
		}
		i = next
	}
	return i
}
