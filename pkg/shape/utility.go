package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// touched is what a statement does to the tables it names.
type touched uint8

const (
	readsTable touched = iota
	writesTable
	locksTable
)

// utility reads every statement that is neither a query nor a change of rows.
func (p *parser) utility(i int) int {
	b := p.build
	s := &b.Shape
	s.Statement = Other
	s.Command = p.command(i, 2)
	w := p.word(i)
	switch w {
	case lex.KwExplain:
		return p.explain(i + 1)
	case lex.KwShow:
		return p.show(i + 1)
	case lex.KwDescribe, lex.KwDesc:
		return p.describe(i + 1)
	case lex.KwSet, lex.KwReset, lex.KwUnset:
		if w == lex.KwReset && p.d.MySQLLike() {
			b.Wrote = true // RESET MASTER, REPLICA, PERSIST
			s.Effect = Repeatable
			return p.end(i)
		}
		s.Statement = Set
		if p.word(i+1) == lex.KwGlobal || p.spells(i+1, "persist") || p.spells(i+1, "password") || p.setsServer(i+1) {
			b.Wrote = true
			s.Effect = Repeatable
		}
		return p.rest(nil, i+1)
	case lex.KwAdd, lex.KwList, lex.KwDelete:
		if p.resource(i + 1) {
			s.Command = p.command(i, 1) + " " + lower(p.raw(i+1))
			if s.Effect = SessionEffect; w == lex.KwList {
				s.Statement, s.Effect = Show, ""
			}
		}
		return p.rest(nil, i+1)
	case lex.KwUse, lex.KwBegin, lex.KwStart, lex.KwCommit, lex.KwRollback, lex.KwSavepoint, lex.KwRelease, lex.KwDeallocate,
		lex.KwAbort, lex.KwDiscard:
		s.Effect = SessionEffect
		return p.end(i)
	case lex.KwPrepare, lex.KwDeclare:
		return p.wrapped(i+1, SessionEffect)
	case lex.KwSubmit:
		return p.wrapped(i+1, Once)
	case lex.KwCall:
		s.Statement = Call
		b.Wrote = true
		return p.rest(nil, i+1)
	case lex.KwExec, lex.KwExecute:
		s.Statement = Execute
		b.Wrote = true
		return p.rest(nil, i+1)
	case lex.KwDrop:
		s.Statement = Drop
		return p.drop(i + 1)
	case lex.KwTruncate:
		s.Statement = Truncate
		s.Effect = Repeatable
		return p.objects(i+1, writesTable)
	case lex.KwAlter:
		s.Statement = Alter
		return p.alter(i + 1)
	case lex.KwRename, lex.KwExchange:
		s.Statement = Alter
		return p.objects(i+1, writesTable)
	case lex.KwComment:
		return p.comment(i + 1)
	case lex.KwRefresh, lex.KwOptimize, lex.KwVacuum, lex.KwRepair, lex.KwMsck, lex.KwUndrop, lex.KwRecover, lex.KwAttach, lex.KwDetach, lex.KwReindex:
		s.Effect = Repeatable
		return p.objects(i+1, writesTable)
	case lex.KwAnalyze, lex.KwAnalyse:
		s.Effect = Repeatable
		return p.objects(i+1, readsTable)
	case lex.KwCheck, lex.KwExport:
		if p.word(i+1) == lex.KwDatabase {
			return p.end(i)
		}
		return p.objects(i+1, readsTable)
	case lex.KwCache, lex.KwUncache:
		s.Effect = SessionEffect
		return p.cache(i + 1)
	case lex.KwLock:
		b.Locked = true
		return p.objects(i+1, locksTable)
	case lex.KwLoad, lex.KwImport:
		b.Wrote = true
		return p.load(i + 1)
	case lex.KwCopy:
		return p.copy(i + 1)
	case lex.KwGrant, lex.KwRevoke:
		b.Wrote = true
		s.Effect = Repeatable
		return p.granted(i + 1)
	}
	switch {
	case w == lex.KwExists && (p.d == lex.ClickHouse || p.d == lex.Auto) && p.tok(i+1).Kind != lex.Punct:
		return p.exists(i + 1)
	case p.spells(i, "pivot") || p.spells(i, "unpivot") || p.spells(i, "summarize"):
		s.Statement = Select
		return p.objects(i+1, readsTable)
	case p.d.Family() == "spark" && (p.spells(i, "map") || p.spells(i, "reduce")):
		s.Statement, s.Command = Select, ""
		n := &Query{}
		b.Outer = n
		b.Roots = append(b.Roots, n)
		return p.selectRest(n, i)
	case p.spells(i, "upsert"):
		s.Statement, s.Command = Insert, ""
		return p.insert(i)
	case p.spells(i, "trace") && p.headsStatement(i+1):
		return p.explained(i+1, true)
	case p.spells(i, "batch") && p.word(i+1) == lex.KwOn || p.spells(i, "batch") && p.word(i+1) == lex.KwLimit: // TiDB's BATCH ON id LIMIT n DELETE ..
		for ; i < len(p.toks) && p.punct(i) != ';'; i++ {
			switch p.word(i) {
			case lex.KwDelete, lex.KwUpdate, lex.KwInsert, lex.KwReplace:
				return p.statement(i)
			}
		}
		return i
	case p.spells(i, "flush") && (p.word(i+1) == lex.KwTables || p.word(i+1) == lex.KwTable):
		return p.objects(i+1, readsTable)
	case p.spells(i, "handler"), p.spells(i, "checksum") && p.word(i+1) == lex.KwTable:
		return p.objects(i+1, readsTable)
	case (p.spells(i, "backup") || p.spells(i, "split")) && p.word(i+1) == lex.KwTable:
		return p.objects(i+1, readsTable)
	case (p.spells(i, "restore") || p.spells(i, "flashback")) && p.word(i+1) == lex.KwTable:
		return p.objects(i+1, writesTable)
	case p.tok(i).Kind != lex.Bare || w == lex.NoWord:
		s.Statement = ""
	}
	return p.rest(nil, i)
}

// cache reads Spark's CACHE [LAZY] TABLE t [AS query].
func (p *parser) cache(i int) int {
	b := p.build
	for p.word(i) == lex.KwTable || p.spells(i, "lazy") {
		i++
	}
	parts, next := p.path(p.ifExists(i))
	for k := next; k < len(p.toks) && p.punct(k) != ';'; k++ {
		if p.headsQuery(k) {
			n, end := p.query(k)
			b.Roots = append(b.Roots, n)
			return p.end(end)
		}
	}
	if len(parts) > 0 {
		b.Reads(parts)
	}
	return p.end(next)
}

// load reads LOAD DATA .. INTO TABLE t.
func (p *parser) load(i int) int {
	for ; i < len(p.toks) && p.punct(i) != ';'; i++ {
		if p.word(i) == lex.KwTable || p.word(i) == lex.KwInto && p.isName(i+1) && p.word(i+1) != lex.KwTable {
			if parts, _ := p.path(i + 1); len(parts) > 0 {
				p.build.Writes(TableOf(parts))
			}
			if p.word(i-1) == lex.KwOverwrite {
				p.build.Shape.Effect = Repeatable
			}
			return p.end(i)
		}
	}
	return i
}

// copy reads COPY t FROM, COPY t TO, COPY (query) TO and COPY INTO t FROM.
func (p *parser) copy(i int) int {
	b := p.build
	into := p.word(i) == lex.KwInto
	if into {
		i++
	}
	if p.headsQuery(i) {
		n, end := p.query(i)
		b.Roots = append(b.Roots, n)
		b.Wrote = true // a file
		return p.end(end)
	}
	parts, next := p.path(i)
	if len(parts) == 0 {
		b.Wrote = true
		return p.end(i)
	}
	if p.punct(next) == '(' {
		next = p.skip(next)
	}
	if into || p.word(next) == lex.KwFrom {
		b.Writes(TableOf(parts))
	} else {
		b.Reads(parts)
		b.Wrote = true
	}
	for i = next; i < len(p.toks) && p.punct(i) != ';'; i++ {
		if p.punct(i) != '(' {
			continue
		}
		if p.opens[i] {
			n, _ := p.query(i + 1) // COPY INTO t FROM (SELECT ..)
			b.Roots = append(b.Roots, n)
		}
		i = p.skip(i) - 1 // else options
	}
	return i
}

// wrapped reads the statement that another keeps for later: PREPARE p AS .., DECLARE c CURSOR FOR .., SUBMIT TASK AS ...
func (p *parser) wrapped(i int, effect Effect) int {
	s := &p.build.Shape
	command := s.Command
	for ; i < len(p.toks) && p.punct(i) != ';'; i++ {
		w := p.word(i)
		if (w == lex.KwAs || w == lex.KwFor || w == lex.KwFrom) && (p.headsStatement(i+1) && p.punct(i+1) != ';' || p.word(i+1) == lex.KwCreate) {
			i = p.statement(i + 1)
			break
		}
	}
	s.Statement, s.Command, s.Effect = Other, command, effect
	return p.end(i)
}

// granted reads GRANT .. ON [TABLE] t TO ...
func (p *parser) granted(i int) int {
	for ; i < len(p.toks) && p.punct(i) != ';'; i++ {
		if p.word(i) != lex.KwOn {
			continue
		}
		i++
		switch p.word(i) {
		case lex.KwTable:
			i++
		case lex.KwSchema, lex.KwDatabase, lex.KwFunction, lex.KwCatalog, lex.KwAll:
			return p.end(i)
		}
		for {
			parts, next := p.path(i)
			if len(parts) == 0 || p.punct(next) == '.' {
				return p.end(i)
			}
			p.build.Reads(parts)
			if i = next; p.punct(i) != ',' {
				return p.end(i)
			}
			i++
		}
	}
	return i
}
