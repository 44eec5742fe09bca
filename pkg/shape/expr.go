package shape

import (
	"strings"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

// place is the clause that an expression stands in, which decides what ends it.
type place uint8

const (
	inAny     place = iota // to the closing bracket only
	inItems                // output columns: one of them
	inWhere                // conditions
	inOn                   // join conditions and arguments of FROM
	inTail                 // ORDER BY, LIMIT: one comma-separated list, or one element behind GROUP BY
	inValues               // rows
	inList                 // one element
	inElement              // one element of a list behind BY
)

// expr walks over an expression at i, takes note of calls, windows and subqueries, and returns the index of what ends it:
// a bracket that was not opened in it, a semicolon, or at its own depth a word that begins the next clause. It does not
// recurse but into queries.
func (p *parser) expr(i int, n *Query, where place) int {
	depth := 0
	for i < len(p.toks) {
		t := &p.toks[i]
		switch t.Kind {
		case lex.Punct:
			switch p.s[t.Off] {
			case '(':
				if p.opens[i] && p.depth < maxNesting {
					node, next := p.subquery(i + 1)
					p.build.Roots = append(p.build.Roots, node)
					end := p.skip(i)
					if next < end-1 {
						i = next // not a query all through: look at the rest
						depth++
						continue
					}
					i = end
					continue
				}
				depth++
			case '[', '{':
				depth++
			case ')', ']', '}':
				if depth == 0 {
					return i
				}
				depth--
			case ',':
				if depth == 0 && (where == inItems || where == inList || where == inOn || where == inElement) {
					return i
				}
			case ';':
				return i
			}
		case lex.Bare:
			if t.Word != lex.NoWord {
				if depth == 0 && p.endsExpr(i, where) {
					return i
				}
				i = p.keyword(i, n)
				continue
			}
			if p.punct(i+1) == '(' {
				p.call(i, n)
			} else if t.End-t.Off == 7 && p.spells(i, "similar") && p.spells(i+1, "to") {
				p.build.Shape.Regex++
			}
		case lex.Quoted:
			if p.punct(i+1) == '(' {
				p.call(i, n)
			}
		case lex.Operator:
			p.operator(i)
		}
		i++
	}
	return i
}

// endsExpr says whether the keyword at i begins another clause.
func (p *parser) endsExpr(i int, where place) bool {
	w := p.word(i)
	switch w {
	case lex.KwFrom:
		if p.spells(i-1, "fill") {
			return false // ORDER BY a WITH FILL FROM 1 TO 5
		}
		if p.word(i-1) == lex.KwDistinct && (p.word(i-2) == lex.KwIs || p.word(i-2) == lex.KwNot) {
			return false
		}
		if p.punct(i-1) == ')' && (p.word(i+1) == lex.KwFirst || p.spells(i+1, "last")) && (p.word(i+2) == lex.KwOver || p.word(i+2) == lex.KwIgnore || p.spells(i+2, "respect")) {
			return false // NTH_VALUE(a, 2) FROM FIRST OVER (..)
		}
		return where != inAny
	case lex.KwWhere, lex.KwHaving, lex.KwPrewhere, lex.KwReturning:
		return where != inAny
	case lex.KwGroup:
		return p.word(i+1) == lex.KwBy && where != inAny && !(p.word(i-1) == lex.KwWithin)
	case lex.KwOrder:
		return p.word(i+1) == lex.KwBy && where != inAny
	case lex.KwUnion, lex.KwIntersect, lex.KwExcept:
		return where != inAny && !(w == lex.KwExcept && p.op(i-1) == "*")
	case lex.KwInto, lex.KwQualify:
		return where != inAny
	case lex.KwAs:
		return where == inList || where == inOn
	case lex.KwBy:
		return (where == inTail || where == inElement) && p.word(i-1) != lex.KwOrder && p.word(i-1) != lex.KwGroup && p.word(i-1) != lex.KwPartition
	case lex.KwOn:
		if p.word(i+1) == lex.KwDuplicate || p.spells(i+1, "conflict") {
			return where != inAny
		}
		return where == inOn || where == inValues
	case lex.KwWith:
		if p.spells(i+1, "fill") || p.spells(i+1, "ties") {
			return false
		}
		fallthrough
	case lex.KwSelect:
		return where == inOn || where == inTail || where == inWhere || where == inItems || where == inValues || where == inElement || where == inList
	case lex.KwInsert:
		return where == inWhere || where == inTail || where == inItems && (p.word(i+1) == lex.KwInto || p.word(i+1) == lex.KwOverwrite)
	case lex.KwJoin, lex.KwInner, lex.KwCross, lex.KwNatural, lex.KwStraightJoin:
		return where == inOn
	case lex.KwLeft, lex.KwRight:
		return where == inOn && p.punct(i+1) != '('
	case lex.KwFull, lex.KwAsof, lex.KwGlobal, lex.KwSemi, lex.KwAnti, lex.KwArray, lex.KwAny, lex.KwAll:
		_, ok := p.join(i)
		return where == inOn && ok
	case lex.KwLateral:
		return where != inAny && p.word(i+1) == lex.KwView
	case lex.KwFor:
		switch p.word(i + 1) {
		case lex.KwUpdate, lex.KwShare, lex.KwNo, lex.KwKey:
			return where != inAny
		}
		return false
	case lex.KwLimit, lex.KwOffset, lex.KwFetch, lex.KwMinus, lex.KwWindow, lex.KwSettings, lex.KwFormat, lex.KwSort, lex.KwCluster,
		lex.KwDistribute, lex.KwLock, lex.KwSet, lex.KwWhen, lex.KwConnect, lex.KwStart:
		return where != inAny && p.softClause(i)
	case lex.KwDo:
		return false
	}
	return false
}

// softClause says whether a word that may also name a column begins a clause here: an operand stands before it, and what
// the clause needs behind it.
func (p *parser) softClause(i int) bool {
	if !p.endsOperand(i-1) && p.punct(i-1) != ')' && p.word(i-1) != lex.KwAll {
		return false
	}
	switch next := p.tok(i + 1); p.word(i) {
	case lex.KwLimit, lex.KwOffset:
		return next.Kind == lex.Literal || next.Word == lex.KwAll || next.Kind == lex.Bare && next.Word == lex.NoWord || p.punct(i+1) == '(' || next.Kind == lex.Operator
	case lex.KwFetch:
		return next.Word == lex.KwFirst || next.Word == lex.KwNext
	case lex.KwMinus:
		return p.startsQuery(i + 1)
	case lex.KwWindow:
		return p.isName(i+1) && p.word(i+2) == lex.KwAs
	case lex.KwSort, lex.KwCluster, lex.KwDistribute, lex.KwConnect:
		return next.Word == lex.KwBy
	case lex.KwSettings:
		return p.isName(i+1) && p.op(i+2) == "="
	case lex.KwFormat:
		return p.isName(i+1) && p.punct(i+2) != '('
	case lex.KwLock:
		return next.Word == lex.KwIn
	case lex.KwStart:
		return next.Word == lex.KwWith
	case lex.KwWhen:
		return next.Word == lex.KwMatched || next.Word == lex.KwNot && p.word(i+2) == lex.KwMatched
	case lex.KwSet:
		return p.isName(i + 1)
	}
	return true
}

// keyword acts on a keyword inside an expression.
func (p *parser) keyword(i int, n *Query) int {
	switch w := p.word(i); w {
	case lex.KwOver:
		return p.over(i, n)
	case lex.KwIn:
		p.inTable(i + 1)
	case lex.KwAs:
		if n != nil && p.d.AliasesInWhere() && p.isName(i+1) && !p.castAt(i) && !(p.isName(i-1) && p.name(i-1) == p.name(i+1)) {
			n.Aliases = append(n.Aliases, p.name(i+1))
		}
	case lex.KwRlike, lex.KwRegexp:
		p.build.Shape.Regex++
	case lex.KwNext:
		if p.word(i+1) == lex.KwValue || p.spells(i+1, "value") {
			p.build.Wrote = true // NEXT VALUE FOR s
		}
	case lex.KwLeft, lex.KwRight, lex.KwIf, lex.KwReplace, lex.KwInsert, lex.KwTruncate, lex.KwDate, lex.KwTime, lex.KwTimestamp,
		lex.KwFormat, lex.KwFirst, lex.KwTop, lex.KwExport, lex.KwRepair, lex.KwCast, lex.KwTryCast, lex.KwConvert, lex.KwArray, lex.KwUnnest,
		lex.KwGrouping, lex.KwMinus, lex.KwCurrent, lex.KwAnalyze, lex.KwDatabase, lex.KwSchema, lex.KwUser, lex.KwCatalog:
		// spelled like functions that every engine ships
	default:
		if p.punct(i+1) == '(' && !notCalled[w] && p.word(i-1) != lex.KwAs {
			p.call(i, n)
		}
	}
	return i + 1
}

// castAt says that the AS at i stands in CAST(x AS type).
func (p *parser) castAt(i int) bool {
	depth := 0
	for k := i - 1; k >= 0 && k > i-64; k-- {
		switch p.punct(k) {
		case ')', ']', '}':
			depth++
		case '(', '[', '{':
			if depth == 0 {
				return p.word(k-1) == lex.KwCast || p.word(k-1) == lex.KwTryCast
			}
			depth--
		}
	}
	return false
}

// inTable reads ClickHouse's a IN t, which is a IN (SELECT * FROM t), unless the name is one that the text gives to an expression.
func (p *parser) inTable(i int) {
	if p.d != lex.ClickHouse || !p.isName(i) || p.inTables > 8 {
		return
	}
	parts, next := p.path(i)
	if p.punct(next) == '(' || p.punct(next) == '[' || p.cteNamed(parts) != nil {
		return
	}
	p.inTables++
	if len(parts) == 1 {
		for k := range p.toks {
			if p.word(k) == lex.KwAs && p.isName(k+1) && p.name(k+1) == parts[0] {
				return
			}
		}
	}
	p.build.Reads(parts)
}

// notCalled are keywords that a bracket may follow without being called.
var notCalled = func() map[lex.Word]bool {
	m := map[lex.Word]bool{}
	for w := range reserved {
		m[w] = true
	}
	for _, w := range []lex.Word{
		lex.KwAll, lex.KwAny, lex.KwSome, lex.KwFilter, lex.KwOver, lex.KwGroup, lex.KwRollup, lex.KwCube, lex.KwSets, lex.KwInterval,
		lex.KwOf, lex.KwKey, lex.KwIndex, lex.KwColumns, lex.KwPartition, lex.KwSet, lex.KwLimit, lex.KwOffset, lex.KwTable, lex.KwEscape,
		lex.KwRow, lex.KwValue, lex.KwEnd, lex.KwDefault, lex.KwReturn, lex.KwCheck, lex.KwType, lex.KwOptions, lex.KwFields,
		lex.KwPartitions, lex.KwLateral, lex.KwDuplicate, lex.KwWithin, lex.KwDiv,
	} {
		m[w] = true
	}
	return m
}()

// call notes the call of the function that is named at i.
func (p *parser) call(i int, n *Query) {
	if p.op(i-1) == "::" || p.word(i-1) == lex.KwAs {
		return // a type with arguments, or the columns of an alias
	}
	lo := i
	for p.punct(lo-1) == '.' && (p.tok(lo-2).Kind == lex.Bare || p.tok(lo-2).Kind == lex.Quoted) {
		lo -= 2
	}
	if lo > 0 && p.endsOperand(lo-1) && p.tok(lo-1).Kind != lex.Punct {
		return // an alias with columns
	}
	if p.word(lo-1) == lex.KwOn && p.spells(i, "conflict") || p.punct(lo-1) == ')' && p.spells(i, "against") || p.spells(i, "distinctrow") {
		return
	}
	if p.punct(lo-1) == '(' && p.word(lo-2) == lex.KwTable {
		return // TABLE(f(..)) is a source of rows, not a computation on each
	}
	parts := make([]string, 0, 2)
	for k := lo; k <= i; k += 2 {
		parts = append(parts, p.name(k))
	}
	p.build.Calls(parts)
	if p.word(i+2) == lex.KwDistinct || p.spells(i+2, "distinctrow") {
		p.build.Shape.DistinctAggregates++
	}
	if n != nil && len(parts) == 1 && isAggregate(strings.ToLower(parts[0])) && p.word(p.skip(i+1)) != lex.KwOver {
		n.Aggregates = true
	}
}

// operator notes operators that cost CPU for every row.
func (p *parser) operator(i int) {
	switch p.op(i) {
	case "~", "~*", "!~", "!~*":
		if p.endsOperand(i-1) && !p.d.MySQLLike() {
			p.build.Shape.Regex++
		}
	case "->", "->>":
		if p.tok(i+1).Kind == lex.Literal {
			p.build.Shape.JSON++
			if p.op(i) == "->>" {
				p.build.Shape.JSON++ // the quotes are taken off too
			}
		}
	case "#>", "#>>", "@>":
		p.build.Shape.JSON++
	}
}

// flat looks for tables in a part of the text that is nested too deeply to be read. It knows no scopes.
func (p *parser) flat(i int) int {
	p.build.Partial = true
	for ; i < len(p.toks) && p.punct(i) != ';'; i++ {
		switch p.word(i) {
		case lex.KwFrom, lex.KwJoin:
			parts, next := p.path(i + 1)
			if len(parts) > 0 && p.punct(next) != '(' && p.cteNamed(parts) == nil && p.word(i-1) != lex.KwDistinct {
				p.build.Reads(parts)
				p.build.Shape.JoinTables++
			}
		case lex.KwOver:
			p.build.AddWindow(Window{})
		case lex.KwGroup:
			if p.word(i+1) == lex.KwBy {
				p.build.Shape.GroupBy = true
			}
		}
	}
	return i
}
