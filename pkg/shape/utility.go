package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// end is where the statement ends.
func (p *parser) end(i int) int {
	for i < len(p.toks) && p.punct(i) != ';' {
		i++
	}
	return i
}

// command is the statement's first words, at most n, for people and rules.
func (p *parser) command(i, n int) string {
	out := ""
	for k := range n {
		t := p.tok(i + k)
		if t.Kind != lex.Bare || k > 0 && t.Word == lex.NoWord {
			break
		}
		if out != "" {
			out += " "
		}
		out += lower(p.raw(i + k))
	}
	return out
}

// dataset says that the word at i means a table or view in Dremio.
func (p *parser) dataset(i int) bool {
	return (p.d == lex.Dremio || p.d == lex.ANSI || p.d == lex.Auto) && (p.spells(i, "vds") || p.spells(i, "pds")) && p.isName(i+1)
}

// setsServer says that one of the assignments behind SET changes the server: @@global.x, @@persist.x, or GLOBAL x behind a
// comma.
func (p *parser) setsServer(i int) bool {
	for ; i < len(p.toks) && p.punct(i) != ';'; i++ {
		scope := p.word(i) == lex.KwGlobal || p.spells(i, "global") || p.spells(i, "persist") || p.spells(i, "persist_only")
		switch {
		case !scope:
		case p.op(i-1) == "@@" && p.punct(i+1) == '.' && (p.punct(i-2) == ',' || p.word(i-2) == lex.KwSet),
			p.punct(i-1) == ',' && p.isName(i+1):
			return true
		}
	}
	return false
}

// resource says that the word at i is a kind of file that a session of Spark or Hive can be given: ADD JAR path.
func (p *parser) resource(i int) bool {
	if p.tok(i).Kind != lex.Bare || p.punct(i+1) == '.' || p.punct(i+1) == ',' {
		return false
	}
	switch lower(p.raw(i)) {
	case "jar", "jars", "file", "files", "archive", "archives":
		return true
	}
	return false
}

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
