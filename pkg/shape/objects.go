package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

func (p *parser) drop(i int) int {
	s := &p.build.Shape
	if p.word(i) == lex.KwTemporary || p.word(i) == lex.KwTemp {
		i++
	}
	k := i + 1
	if p.word(i) == lex.KwMaterialized {
		k++
	}
	if p.word(k) == lex.KwIf {
		s.Effect = Repeatable
	}
	if p.dataset(i) {
		return p.objects(i+1, writesTable)
	}
	switch p.word(i) {
	case lex.KwTable, lex.KwView, lex.KwMaterialized, lex.KwDictionary:
		return p.objects(i, writesTable)
	case lex.KwIndex, lex.KwTrigger, lex.KwPolicy:
		for ; i < len(p.toks) && p.punct(i) != ';'; i++ {
			if p.word(i) == lex.KwOn {
				return p.objects(i+1, writesTable)
			}
		}
	}
	p.build.Wrote = true
	return p.end(i)
}

// objects reads a list of tables or views behind the words that name their kind.
func (p *parser) objects(i int, how touched) int {
	b := p.build
	if how == writesTable {
		b.Wrote = true
	}
	for {
		switch p.word(i) {
		case lex.KwTable, lex.KwTables, lex.KwView, lex.KwMaterialized, lex.KwOnly, lex.KwTemporary, lex.KwDictionary, lex.KwLocal, lex.KwIndex,
			lex.KwExtended, lex.KwVerbose, lex.KwSync, lex.KwRepair, lex.KwExternal:
			i++
			continue
		case lex.KwIf:
			i = p.ifExists(i)
			continue
		}
		if p.spells(i, "no_write_to_binlog") || p.spells(i, "full") || p.spells(i, "freeze") || p.spells(i, "dynamic") || p.spells(i, "sample") || (p.spells(i, "concurrently") || p.spells(i, "dataset")) && p.isName(i+1) {
			i++
			continue
		}
		if p.punct(i) == '(' && !p.opens[i] {
			i = p.skip(i)
			continue
		}
		break
	}
	for i < len(p.toks) {
		if p.headsQuery(i) {
			n, end := p.query(i)
			b.Roots = append(b.Roots, n)
			return p.end(end)
		}
		parts, next := p.path(i)
		if len(parts) == 0 {
			break
		}
		if how == writesTable {
			b.Writes(TableOf(parts))
		} else {
			b.Reads(parts)
		}
		i = next
		if p.punct(i) == '(' {
			i = p.skip(i)
		}
		for how == locksTable && i < len(p.toks) && p.tok(i).Kind == lex.Bare {
			i++ // LOCK TABLES a AS b READ LOCAL, c WRITE
		}
		switch {
		case p.punct(i) == ',' || p.spells(i, "to") || p.word(i) == lex.KwAnd:
			i++
			if _, behind := p.path(i); p.punct(i-1) == 0 && (p.punct(behind) == '(' || p.word(behind) == lex.KwAs) {
				return p.end(i) // BACKUP TABLE t TO Disk(..), RESTORE TABLE t TO VERSION AS OF 5
			}
			continue
		}
		break
	}
	return p.end(i)
}

// alter reads ALTER of a table or view, and the other tables that it may name.
func (p *parser) alter(i int) int {
	b := p.build
	b.Wrote = true
	switch p.word(i) {
	case lex.KwTable, lex.KwView, lex.KwMaterialized:
	default:
		if !p.dataset(i) {
			return p.end(i)
		}
		i++
	}
	for p.word(i) == lex.KwTable || p.word(i) == lex.KwView || p.word(i) == lex.KwMaterialized || p.word(i) == lex.KwOnly {
		i++
	}
	if i = p.ifExists(i); p.word(i) == lex.KwOnly {
		i++
	}
	parts, next := p.path(i)
	if len(parts) == 0 {
		return p.end(i)
	}
	b.Writes(TableOf(parts))
	for i = next; i < len(p.toks) && p.punct(i) != ';'; i++ {
		if p.spells(i, "to") && p.word(i+1) == lex.KwTable { // MOVE PARTITION p TO TABLE u
			if other, _ := p.path(i + 2); len(other) > 0 {
				b.Writes(TableOf(other))
			}
		}
		if p.word(i) == lex.KwFrom && p.d == lex.ClickHouse && p.tok(i-1).Kind == lex.Literal && p.isName(i+1) { // REPLACE PARTITION p FROM u
			other, _ := p.path(i + 1)
			b.Reads(other)
		}
		if p.word(i) == lex.KwWith && p.word(i+1) == lex.KwTable || p.word(i) == lex.KwAttach && p.word(i+1) == lex.KwPartition && !p.d.MySQLLike() && p.isName(i+2) {
			if other, _ := p.path(i + 2); len(other) > 0 {
				b.Writes(TableOf(other))
			}
		}
		if p.word(i) == lex.KwAs && p.headsQuery(i+1) {
			n, end := p.query(i + 1)
			b.Roots = append(b.Roots, n)
			return p.end(end)
		}
		if p.punct(i) == '(' && p.opens[i] { // ALTER TABLE t DELETE WHERE a IN (SELECT ..)
			n, _ := p.subquery(i + 1)
			b.Roots = append(b.Roots, n)
			i = p.skip(i) - 1
		}
	}
	return i
}

// comment reads COMMENT ON TABLE t or COLUMN t.c.
func (p *parser) comment(i int) int {
	b := p.build
	b.Wrote = true
	b.Shape.Effect = Repeatable
	if p.word(i) != lex.KwOn {
		return p.end(i)
	}
	b.Shape.Command = "comment on"
	kind := i + 1
	if p.word(kind) == lex.KwMaterialized {
		kind++
	}
	parts, _ := p.path(kind + 1)
	switch p.word(kind) {
	case lex.KwColumn:
		if len(parts) > 1 {
			b.Writes(TableOf(parts[:len(parts)-1]))
		}
	case lex.KwTable, lex.KwView:
		if len(parts) > 0 {
			b.Writes(TableOf(parts))
		}
	}
	return p.end(i)
}
