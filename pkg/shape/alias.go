package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// suffix reads what may stand between a table and its alias, or behind the alias: time travel, samples, hints.
func (p *parser) suffix(src *Item, i int) int {
	for {
		start := i
		switch p.word(i) {
		case lex.KwFor:
			switch {
			case p.word(i+1) == lex.KwTimestamp || p.spells(i+1, "version") || p.spells(i+1, "system_time") || p.spells(i+1, "system_version"):
				i = p.timeTravel(i + 2)
			}
		case lex.KwTimestamp:
			if p.word(i+1) == lex.KwAs && p.word(i+2) == lex.KwOf {
				i = p.timeTravel(i + 1)
			}
		case lex.KwAs:
			if p.word(i+1) == lex.KwOf && p.word(i+2) == lex.KwTimestamp {
				i = p.timeTravel(i)
			}
		case lex.KwPartition, lex.KwPartitions:
			if p.punct(i+1) == '(' {
				i = p.skip(i + 1)
			}
		case lex.KwFinal:
			src.Fixed = true // rows are merged after they are read: a condition may not come first
			i++
		case lex.KwSample:
			src.Fixed = true
			i = p.expr(i+1, nil, inOn)
			if p.word(i) == lex.KwOffset {
				i = p.expr(i+1, nil, inOn)
			}
		case lex.KwTablesample:
			src.Fixed = true
			i++
			if p.punct(i) != '(' {
				i++
			}
			if p.punct(i) == '(' {
				i = p.skip(i)
			}
			if p.spells(i, "repeatable") && p.punct(i+1) == '(' {
				i = p.skip(i + 1)
			}
		case lex.KwPivot, lex.KwUnpivot, lex.KwMatchRecognize:
			src.Fixed = true
			if p.punct(i+1) == '(' {
				p.expr(i+2, nil, inAny)
				i = p.skip(i + 1)
			}
		case lex.KwUse, lex.KwIgnore:
			if p.word(i+1) == lex.KwIndex || p.word(i+1) == lex.KwKey {
				i = p.indexHint(i + 2)
			}
		case lex.KwWith:
			if p.punct(i+1) == '(' {
				i = p.skip(i + 1)
			}
		default:
			switch {
			case p.spells(i, "version") && p.word(i+1) == lex.KwAs && p.word(i+2) == lex.KwOf:
				i = p.timeTravel(i + 1)
			case p.spells(i, "force") && (p.word(i+1) == lex.KwIndex || p.word(i+1) == lex.KwKey):
				i = p.indexHint(i + 2)
			case p.spells(i, "tablet") && p.punct(i+1) == '(':
				i = p.skip(i + 1)
			case p.punct(i) == '[':
				i = p.skip(i) // StarRocks and Doris put hints there
			case p.spells(i, "at") && (p.word(i+1) == lex.KwBranch || p.word(i+1) == lex.KwTag || p.word(i+1) == lex.KwSnapshot || p.spells(i+1, "commit") || p.spells(i+1, "reference")):
				i = min(i+3, len(p.toks))
			case p.op(i) == "@" && p.isName(i+1):
				i += 2
			case p.op(i) == "*" && p.d == lex.Postgres:
				i++ // t*, with the tables that inherit from it
			}
		}
		if i == start {
			return i
		}
	}
}

func (p *parser) indexHint(i int) int {
	if p.word(i) == lex.KwFor {
		i += 2
		if p.word(i) == lex.KwBy {
			i++
		}
	}
	if p.punct(i) == '(' {
		return p.skip(i)
	}
	return i
}

// timeTravel reads AS OF and its point in time, which is one operand.
func (p *parser) timeTravel(i int) int {
	if p.word(i) == lex.KwAs {
		i++
	}
	if p.word(i) == lex.KwOf {
		i++
	}
	if k := p.tok(i); k.Word == lex.KwTimestamp || k.Word == lex.KwDate {
		i++
	}
	for i < len(p.toks) {
		switch {
		case p.punct(i) == '(':
			i = p.skip(i)
		case p.tok(i).Kind == lex.Literal:
			i++
		case p.tok(i).Kind == lex.Bare && p.punct(i+1) == '(':
			i++
		case p.op(i) == "-" || p.op(i) == "+" || p.word(i) == lex.KwInterval:
			i++
		default:
			return i
		}
	}
	return i
}

// alias reads an alias with the names of columns, and what may stand behind it.
func (p *parser) alias(src *Item, i int) int {
	if p.word(i) == lex.KwWith && p.word(i+1) == lex.KwOrdinality {
		i += 2
	}
	k, ok := p.aliasAt(i)
	if !ok {
		return i
	}
	if p.word(i) == lex.KwAs {
		i++
	}
	if p.tok(i).Kind == lex.Literal {
		src.Fixed = true
	} else if p.punct(i) != '(' {
		src.Alias = p.name(i)
	}
	if p.punct(k-1) == ')' {
		src.Fixed = true // columns are renamed
		src.Columns, src.Closed = p.columnNames(i+1, k)
	}
	return p.suffix(src, k)
}

// columnNames reads the names in brackets between two places; types may follow them.
func (p *parser) columnNames(lo, hi int) ([]string, bool) {
	for lo < hi && p.punct(lo) != '(' {
		lo++
	}
	var names []string
	for i := lo + 1; i < hi; i++ {
		if p.punct(i-1) != ',' && i != lo+1 {
			continue
		}
		if !p.isName(i) {
			return nil, false
		}
		names = append(names, p.name(i))
	}
	return names, len(names) > 0
}

// aliasAt says whether an alias stands at i, and where it ends.
func (p *parser) aliasAt(i int) (int, bool) {
	as := p.word(i) == lex.KwAs
	if as {
		i++
	}
	switch t := p.tok(i); {
	case t.Kind == lex.Quoted, t.Kind == lex.Literal && (as || p.d.MySQLLike()):
	case t.Kind == lex.Bare && (t.Word == lex.NoWord || as && !reserved[t.Word] || !ends[t.Word] && !reserved[t.Word]):
	case as && p.punct(i) == '(':
		return p.skip(i), true
	default:
		return i, false
	}
	i++
	if p.punct(i) == '(' {
		i = p.skip(i)
	}
	return i, true
}

// ends are the words that end an item of FROM where a name could be an alias.
var ends = func() map[lex.Word]bool {
	m := map[lex.Word]bool{}
	for _, w := range []lex.Word{
		lex.KwLeft, lex.KwRight, lex.KwFull, lex.KwOuter, lex.KwSemi, lex.KwAnti, lex.KwLateral, lex.KwLimit, lex.KwOffset, lex.KwFetch,
		lex.KwMinus, lex.KwWindow, lex.KwFor, lex.KwSet, lex.KwWhen, lex.KwFinal, lex.KwSample, lex.KwTablesample, lex.KwArray, lex.KwAsof,
		lex.KwSettings, lex.KwFormat, lex.KwGlobal, lex.KwAny, lex.KwAll, lex.KwPivot, lex.KwUnpivot, lex.KwMatchRecognize, lex.KwApply,
		lex.KwUse, lex.KwIgnore, lex.KwSort, lex.KwCluster, lex.KwDistribute, lex.KwLock, lex.KwConnect, lex.KwStart, lex.KwInsert,
		lex.KwPartition, lex.KwTimestamp, lex.KwDo, lex.KwOverwrite, lex.KwEnd,
	} {
		m[w] = true
	}
	return m
}()
