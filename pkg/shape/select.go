package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// selectCore reads SELECT up to what its set operation or its tail begins with.
func (p *parser) selectCore(i int) (*Query, int) {
	n := &Query{}
	return n, p.selectRest(n, i)
}

// fromFirst reads FROM t [SELECT ..], as DuckDB and Hive write it. Hive writes to several tables behind one FROM.
func (p *parser) fromFirst(i int) (*Query, int) {
	n := &Query{}
	i = p.from(n, i+1)
	switch p.word(i) {
	case lex.KwSelect:
		i = p.selectRest(n, i)
	case lex.KwInsert:
		p.build.Shape.Statement = Insert
		for p.word(i) == lex.KwInsert {
			next := p.insert(i)
			if next <= i {
				break
			}
			i = next
		}
	default:
		if p.spells(i, "map") || p.spells(i, "reduce") {
			i = p.selectRest(n, i) // a program's rows
			break
		}
		n.Star, n.Outs = true, []Output{{Star: true}}
		i = p.clauses(n, i)
	}
	return n, i
}

func (p *parser) selectRest(n *Query, i int) int {
	i++
	for {
		switch {
		case p.word(i) == lex.KwDistinct:
			p.build.Shape.Distinct = true
			if p.word(i+1) == lex.KwOn && p.punct(i+2) == '(' {
				n.DistinctOn = true
				i = p.expr(i+3, nil, inAny)
			}
			i++
			continue
		case p.word(i) == lex.KwAll, p.word(i) == lex.KwStraightJoin, p.priority(i) && !p.endsItem(i+1):
			i++
			continue
		case p.word(i) == lex.KwTop && (p.tok(i+1).Kind == lex.Literal || p.punct(i+1) == '('):
			n.Limited = true
			k := i + 1
			if p.punct(k) == '(' {
				k++
			}
			if n.Limit = p.slot(k); k == i+1 {
				n.Limit = SlotOf(p.tok(k).Slot) // TOP 5 *: what follows goes on no number
			}
			i += 2
			if p.punct(i-1) == '(' {
				i = p.skip(i - 1)
			}
			if p.spells(i, "percent") && !p.endsItem(i+1) {
				n.Limit = Slot{}
				i++
			}
			if p.word(i) == lex.KwWith && p.spells(i+1, "ties") {
				i += 2
			}
			continue
		case mysqlModifier(p, i):
			i++
			continue
		}
		break
	}
	i = p.items(n, i)
	if p.d == lex.Hive || p.d == lex.Spark {
		i = p.script(i)
	}
	return p.clauses(n, i)
}

// script steps over what says how Hive's TRANSFORM runs a program: ROW FORMAT .. USING 'program' AS (a, b).
func (p *parser) script(i int) int {
	if p.word(i-1) == lex.KwRow && p.word(i) == lex.KwFormat || p.word(i) == lex.KwUsing && p.tok(i+1).Kind == lex.Literal {
		for i < len(p.toks) && p.word(i) != lex.KwFrom && p.word(i) != lex.KwWhere && p.punct(i) != ')' && p.punct(i) != ';' {
			if p.punct(i) == '(' {
				i = p.skip(i)
				continue
			}
			i++
		}
	}
	return i
}

// endsItem says that an output column ends before i, so that the word there was the column.
func (p *parser) endsItem(i int) bool {
	return i >= len(p.toks) || p.punct(i) != 0 && p.punct(i) != '(' || p.word(i) == lex.KwFrom || p.word(i) == lex.KwAs
}

// mysqlModifier says that a word like SQL_NO_CACHE stands in front of the output columns.
func mysqlModifier(p *parser, i int) bool {
	t := p.tok(i)
	if t.Kind != lex.Bare || t.Word != lex.NoWord || p.endsItem(i+1) {
		return false
	}
	switch lower(p.raw(i)) {
	case "sql_no_cache", "sql_cache", "sql_calc_found_rows", "sql_small_result", "sql_big_result", "sql_buffer_result", "distinctrow":
		return true
	}
	return false
}

// items reads the output columns.
func (p *parser) items(n *Query, i int) int {
	if p.word(i) == lex.KwFrom && p.punct(i+1) != ',' {
		return i // SELECT FROM t, PostgreSQL's empty list
	}
	for i < len(p.toks) {
		end := p.expr(i, n, inItems)
		if end > i {
			n.Columns++
			n.Outs = append(n.Outs, p.output(n, i, end))
		}
		i = end
		if p.punct(i) != ',' {
			break
		}
		i++
	}
	return i
}

// output tells what one output column is called and whether it is a plain column.
func (p *parser) output(n *Query, lo, hi int) Output {
	if p.op(hi-1) == "*" && (hi-1 == lo || p.punct(hi-2) == '.') || p.op(lo) == "*" {
		n.Star = true
		out := Output{Star: true}
		if hi-1 > lo && p.op(hi-1) == "*" {
			out.Column.Qualifier, _ = p.path(lo)
		}
		if p.op(hi-1) != "*" {
			n.Renamed = true // * EXCEPT (..) and * REPLACE (..)
		}
		return out
	}
	var alias string
	last := hi
	if hi-lo >= 2 && p.isName(hi-1) {
		switch {
		case p.word(hi-2) == lex.KwAs:
			alias, last = p.name(hi-1), hi-2
		case p.endsOperand(hi - 2):
			alias, last = p.name(hi-1), hi-1
		}
	}
	parts, end := p.path(lo)
	if end != last || len(parts) == 0 {
		if alias != "" && p.d.AliasesInWhere() {
			n.Aliases = append(n.Aliases, alias)
		}
		return Output{Name: alias}
	}
	k := len(parts) - 1
	out := Output{Name: alias, Column: Column{parts[:k:k], parts[k]}}
	if alias == "" {
		out.Name = parts[k]
	} else if alias != parts[k] && p.d.AliasesInWhere() {
		n.Aliases = append(n.Aliases, alias)
	}
	return out
}

// clauses reads FROM, WHERE, GROUP BY and the rest of one SELECT.
func (p *parser) clauses(n *Query, i int) int {
	for i < len(p.toks) {
		start := i
		switch p.word(i) {
		case lex.KwInto:
			i = p.into(i + 1)
		case lex.KwFrom:
			i = p.from(n, i+1)
		case lex.KwWhere, lex.KwPrewhere:
			end := p.expr(i+1, n, inWhere)
			p.conditions(n, i+1, end, 0, 0)
			i = end
		case lex.KwGroup:
			if p.word(i+1) != lex.KwBy {
				return i
			}
			i = p.groupBy(n, i+2)
		case lex.KwFor, lex.KwLock:
			if p.locks(i) {
				i = p.lock(i)
			}
		case lex.KwHaving, lex.KwQualify:
			i = p.expr(i+1, n, inWhere)
		case lex.KwWindow:
			if p.isName(i+1) && p.word(i+2) == lex.KwAs {
				i = p.windowClause(n, i+1)
			}
		case lex.KwLateral, lex.KwLeft, lex.KwArray, lex.KwInner:
			i = p.from(n, i)
		case lex.KwConnect, lex.KwStart:
			n.Opaque = true
			i = p.expr(i+1, n, inWhere)
		}
		if i == start {
			return i
		}
	}
	return i
}

// groupKeys counts the expressions of one element behind GROUP BY: those in ROLLUP (..) and CUBE (..), or one.
func (p *parser) groupKeys(i int) int {
	if p.word(i) != lex.KwRollup && p.word(i) != lex.KwCube || p.punct(i+1) != '(' {
		return 1
	}
	n := 1
	for k := i + 2; k < int(p.match[i+1]); k++ {
		switch p.punct(k) {
		case '(', '[', '{':
			k = int(p.match[k])
		case ',':
			n++
		}
	}
	return n
}

// groupBy reads the grouping expressions.
func (p *parser) groupBy(n *Query, i int) int {
	n.Grouped = true
	p.build.Shape.GroupBy = true
	count := 0
	for p.word(i) == lex.KwAll || p.word(i) == lex.KwDistinct {
		i++
	}
	for i < len(p.toks) {
		end := p.expr(i, n, inElement)
		if end > i {
			count += p.groupKeys(i)
		}
		parts, next := p.path(i)
		if k := len(parts) - 1; k >= 0 && next == end {
			n.Keys = append(n.Keys, Column{parts[:k:k], parts[k]})
		}
		switch p.word(i) {
		case lex.KwGrouping, lex.KwRollup, lex.KwCube:
			n.Renamed = true // a key may be NULL in the result
		}
		i = end
		if p.punct(i) != ',' {
			break
		}
		i++
	}
	if p.word(i) == lex.KwWith {
		n.Renamed = true // WITH ROLLUP
		i = p.expr(i+1, n, inTail)
	}
	if p.build.Shape.GroupKeys == 0 || p.build.depth == 0 {
		p.build.Shape.GroupKeys = count
	}
	return i
}
