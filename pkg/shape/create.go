package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// create reads CREATE of anything; tables and views are told with what they are made of.
func (p *parser) create(i int) int {
	b := p.build
	s := &b.Shape
	b.Wrote = true
	orReplace, temporary := false, false
	for {
		switch p.word(i) {
		case lex.KwOr, lex.KwExternal, lex.KwGlobal, lex.KwLocal, lex.KwMaterialized, lex.KwRecursive:
		case lex.KwReplace:
			orReplace = true
		case lex.KwTemporary, lex.KwTemp:
			temporary = true
		default:
			if p.spells(i, "algorithm") || p.spells(i, "definer") || p.spells(i, "sql") {
				i = p.definedObject(i) // how MySQL runs the view or procedure
				goto object
			}
			if !p.spells(i, "unlogged") && !p.spells(i, "transient") && !p.spells(i, "live") && !p.spells(i, "async") && !p.spells(i, "unique") && !p.spells(i, "bitmap") && !p.spells(i, "fulltext") {
				goto object
			}
		}
		i++
	}
object:
	object := p.word(i)
	materialized := p.word(i-1) == lex.KwMaterialized
	ifNot := p.word(i+1) == lex.KwIf
	if orReplace || ifNot {
		s.Effect = Repeatable
	}
	switch object {
	case lex.KwTable, lex.KwView:
	case lex.NoWord:
		if !p.dataset(i) {
			s.Command = p.command(i-1, 2)
			return p.end(i)
		}
	case lex.KwIndex, lex.KwTrigger, lex.KwPolicy:
		for ; i < len(p.toks) && p.punct(i) != ';'; i++ {
			if p.word(i) == lex.KwOn {
				if parts, next := p.path(i + 1); len(parts) > 0 {
					b.Writes(TableOf(parts))
					return p.routine(next)
				}
			}
		}
		return i
	default:
		s.Command = p.command(i-1, 2)
		return p.routine(i)
	}
	i = p.ifExists(i + 1)
	parts, next := p.path(i)
	if len(parts) == 0 {
		return p.end(i)
	}
	b.Writes(TableOf(parts))
	if temporary {
		b.Wrote = false
		s.Effect = SessionEffect
	}
	return p.definition(next, object == lex.KwTable && !materialized)
}

// routine is where the statement ends that creates something with a body: the semicolons between BEGIN and the END that
// belongs to it are the body's. What the body does is done when it runs, and not by this statement.
func (p *parser) routine(i int) int {
	first := p.end(i)
	depth := 0
	for k := i; k < len(p.toks) && !p.endless; k++ {
		switch p.word(k) {
		case lex.KwBegin:
			if p.d != lex.Postgres || p.spells(k+1, "atomic") {
				depth++
			}
		case lex.KwCase:
			if depth > 0 && p.word(k-1) != lex.KwEnd {
				depth++
			}
		case lex.KwEnd:
			if depth > 0 && p.word(k+1) != lex.KwIf && p.word(k+1) != lex.KwFor && !p.spells(k+1, "loop") && !p.spells(k+1, "while") && !p.spells(k+1, "repeat") {
				depth--
			}
		}
		if depth == 0 && p.punct(k) == ';' {
			return k
		}
	}
	if depth > 0 {
		p.endless = true // a body without an end: none is looked for again
	}
	if p.endless {
		return first
	}
	return len(p.toks)
}

// definedObject is where the word is that says what is created, behind ALGORITHM, DEFINER and SQL SECURITY.
func (p *parser) definedObject(i int) int {
	for k := i; k < len(p.toks) && k < i+24; k++ {
		switch p.word(k) {
		case lex.KwView, lex.KwProcedure, lex.KwFunction, lex.KwTrigger, lex.KwEvent:
			return k
		}
	}
	return i
}

// definition reads columns and properties up to the query that fills what is created.
func (p *parser) definition(i int, table bool) int {
	b := p.build
	for i < len(p.toks) && p.punct(i) != ';' {
		switch w := p.word(i); {
		case p.headsQuery(i) && !(w == lex.KwWith && p.punct(i+1) == '(') && (w != lex.KwValues || p.word(i-1) == lex.KwAs) && w != lex.KwFrom:
			if table {
				b.Shape.Statement = CreateTableAs
			}
			n, end := p.query(i)
			b.Outer = n
			b.Roots = append(b.Roots, n)
			i = end
		case p.punct(i) == '(' || p.punct(i) == '[' || p.punct(i) == '{':
			p.likenedIn(i)
			i = p.skip(i)
		case p.spells(i, "inherits") && p.punct(i+1) == '(':
			for k := i + 2; k < p.skip(i+1)-1; k++ {
				k = max(p.likened(k), k)
			}
			i = p.skip(i + 1)
		case w == lex.KwPartition && p.word(i+1) == lex.KwOf:
			i = p.likened(i + 2) // PostgreSQL's partition of another table
		case w == lex.KwAs && p.fromFirstAhead(i+1):
			if table {
				b.Shape.Statement = CreateTableAs
			}
			n, end := p.query(i + 1)
			b.Outer = n
			b.Roots = append(b.Roots, n)
			i = end
		case w == lex.KwLike || p.spells(i, "clone"):
			i = p.likened(i + 1)
		case p.spells(i, "to") && p.isName(i+1) && !table:
			parts, next := p.path(i + 1)
			b.Writes(TableOf(parts))
			i = next
		case w == lex.KwAs && p.isName(i+1) && p.punct(i+2) != '(' && table && !p.headsQuery(i+1) && !p.spells(i-1, "stored"):
			i = p.likened(i + 1) // ClickHouse copies a definition
		default:
			i++
		}
	}
	return i
}

// likened reads the table that a definition is copied from.
func (p *parser) likened(i int) int {
	if p.word(i) == lex.KwTable {
		i++
	}
	parts, next := p.path(i)
	if len(parts) == 0 {
		return i
	}
	p.build.Reads(parts)
	return next
}

// likenedIn finds LIKE among the columns in the brackets at i.
func (p *parser) likenedIn(i int) {
	for k, end := i+1, p.skip(i)-1; k < end; k++ {
		switch p.punct(k) {
		case '(', '[', '{':
			k = p.skip(k) - 1
			continue
		}
		if p.word(k) == lex.KwLike && (k == i+1 || p.punct(k-1) == ',') {
			p.likened(k + 1)
		}
	}
}

// ifExists skips IF [NOT] EXISTS.
func (p *parser) ifExists(i int) int {
	if p.word(i) == lex.KwIf {
		i++
		for p.word(i) == lex.KwNot || p.word(i) == lex.KwExists {
			i++
		}
	}
	return i
}
