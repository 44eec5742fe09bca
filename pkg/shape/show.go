package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// explain reads EXPLAIN. Only with ANALYZE does it run what it explains.
func (p *parser) explain(i int) int {
	b := p.build
	analyze := false
	for i < len(p.toks) && !p.headsStatement(i) && p.word(i) != lex.KwCreate || p.punct(i) == '(' && !p.opens[i] {
		switch p.word(i) {
		case lex.KwAnalyze, lex.KwAnalyse:
			analyze = true
		}
		if p.punct(i) == '(' {
			for k := i; k < p.skip(i); k++ {
				analyze = analyze || (p.word(k) == lex.KwAnalyze || p.word(k) == lex.KwAnalyse) && !p.falseBehind(k)
			}
			i = p.skip(i)
			continue
		}
		i++
	}
	if i >= len(p.toks) { // EXPLAIN t
		if parts := p.lastPath(); len(parts) > 0 {
			b.Reads(parts)
		}
		b.Shape.Statement = Explain
		return i
	}
	end := p.explained(i, analyze)
	if analyze {
		b.Shape.Command = "explain analyze"
	}
	return end
}

// explained reads the statement behind EXPLAIN, which writes and locks nothing unless it is run.
func (p *parser) explained(i int, run bool) int {
	b := p.build
	wrote, locked, written := b.Wrote, b.Locked, b.Shape.WriteTables
	end := p.statement(i)
	b.Shape.Statement, b.Shape.Command, b.Shape.Effect = Explain, "explain", ""
	if !run {
		for _, t := range b.Shape.WriteTables[len(written):] {
			delete(b.written, t)
		}
		b.Wrote, b.Locked, b.Shape.WriteTables = wrote, locked, written
	}
	return end
}

// exists reads ClickHouse's EXISTS [TEMPORARY] [TABLE | VIEW | DICTIONARY | DATABASE] t, which answers from the catalog.
func (p *parser) exists(i int) int {
	p.build.Shape.Statement = Show
	for p.word(i) == lex.KwTemporary || p.word(i) == lex.KwTable || p.word(i) == lex.KwView || p.spells(i, "dictionary") && p.isName(i+1) {
		i++
	}
	if p.word(i) == lex.KwDatabase {
		return p.end(i)
	}
	if parts, _ := p.path(i); len(parts) > 0 {
		p.build.Reads(parts)
	}
	return p.end(i)
}

// falseBehind says that an option is switched off by a word behind it. A literal does not tell: what is read of one text is
// said of all that differ from it in literals.
func (p *parser) falseBehind(i int) bool {
	return p.word(i+1) == lex.KwFalse || p.spells(i+1, "off")
}

// lastPath reads the qualified name that the text ends with.
func (p *parser) lastPath() []string {
	i := len(p.toks) - 1
	for i >= 2 && p.punct(i-1) == '.' {
		i -= 2
	}
	parts, _ := p.path(i)
	return parts
}

// show reads SHOW .. [FROM|IN|FOR] t, which names a table where it shows a part of one.
func (p *parser) show(i int) int {
	b := p.build
	b.Shape.Statement = Show
	ofTable := false
	for ; i < len(p.toks) && p.punct(i) != ';'; i++ {
		switch p.word(i) {
		case lex.KwColumns, lex.KwFields, lex.KwIndex, lex.KwIndexes, lex.KwKeys, lex.KwPartitions, lex.KwBranches, lex.KwBranch, lex.KwTag,
			lex.KwPartition, lex.KwStats, lex.KwStatistics, lex.KwSnapshots:
			ofTable = true
		case lex.KwCreate:
			if p.word(i+1) == lex.KwTable || p.word(i+1) == lex.KwView || p.word(i+1) == lex.KwMaterialized {
				ofTable = true
			}
		case lex.KwTable, lex.KwView:
			if p.isName(i+1) && ofTable {
				return p.shown(i + 1)
			}
		case lex.KwFrom, lex.KwIn, lex.KwFor, lex.KwOn:
			if !ofTable {
				return p.end(i)
			}
			k := i + 1
			if p.word(k) == lex.KwTable || p.word(k) == lex.KwView {
				k++
			}
			if p.punct(k) == '(' && p.opens[k] {
				n, end := p.query(k) // SHOW STATS FOR (query)
				b.Roots = append(b.Roots, n)
				return p.end(end)
			}
			return p.shown(k)
		case lex.NoWord:
			if p.spells(i, "tblproperties") || p.spells(i, "tags") || p.spells(i, "tablet") || p.spells(i, "refs") {
				ofTable = true
			}
			if ofTable && p.tok(i).Kind != lex.Literal && (p.word(i-1) == lex.KwPartitions || p.spells(i-1, "tblproperties")) && p.tok(i).Kind != lex.Punct {
				return p.shown(i)
			}
		}
	}
	return i
}

func (p *parser) shown(i int) int {
	if parts, next := p.path(i); len(parts) > 0 {
		if (p.word(next) == lex.KwFrom || p.word(next) == lex.KwIn) && p.isName(next+1) && len(parts) == 1 {
			db, _ := p.path(next + 1)
			parts = append(db, parts...)
		}
		p.build.Reads(parts)
	}
	return p.end(i)
}

// describe reads DESCRIBE of a query or a table.
func (p *parser) describe(i int) int {
	b := p.build
	if (p.spells(i, "input") || p.spells(i, "output")) && p.isName(i+1) {
		b.Shape.Statement = Show // of a prepared statement
		return p.end(i)
	}
	for p.word(i) == lex.KwTable || p.word(i) == lex.KwExtended || p.spells(i, "formatted") || p.spells(i, "query") && p.headsQuery(i+1) ||
		(p.spells(i, "history") || p.spells(i, "detail")) && p.isName(i+1) && p.d.Family() == "spark" {
		i++
	}
	if p.headsQuery(i) || p.word(i) == lex.KwInsert || p.word(i) == lex.KwUpdate || p.word(i) == lex.KwDelete {
		return p.explained(i, false)
	}
	b.Shape.Statement = Show
	switch p.word(i) {
	case lex.KwDatabase, lex.KwSchema, lex.KwFunction, lex.KwCatalog:
		return p.end(i)
	}
	if parts, _ := p.path(i); len(parts) > 0 {
		b.Reads(parts)
	}
	return p.end(i)
}
