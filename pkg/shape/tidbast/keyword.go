package tidbast

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// keyword prints the keyword at i, with what follows it where MySQL says it otherwise.
func (p *shim) keyword(i int) int {
	if len(p.from) == 1 {
		p.rows = p.tok(i).Word == lex.KwValues
	}
	switch w := p.tok(i).Word; w {
	case lex.KwFrom:
		p.setFrom(!p.inCall(i))
	case lex.KwJoin, lex.KwStraightJoin:
		p.setFrom(true)
		if p.joins++; p.joins > MaxJoins {
			p.refused = true
		}
	case lex.KwOn, lex.KwWhere, lex.KwGroup, lex.KwOrder, lex.KwHaving, lex.KwLimit, lex.KwSelect, lex.KwUnion, lex.KwSet, lex.KwUsing,
		lex.KwWindow, lex.KwExcept, lex.KwIntersect:
		p.setFrom(false)
	}
	switch p.tok(i).Word {
	case lex.KwOffset:
		if p.tok(i-2).Word != lex.KwLimit {
			return p.offset(i)
		}
	case lex.KwFetch:
		return p.fetch(i, "")
	case lex.KwLimit:
		if p.tok(i+1).Word == lex.KwAll {
			p.rewrote = true
			return i + 2
		}
	case lex.KwRollup:
		return p.rollup(i)
	case lex.KwTryCast:
		p.rewrote = true
		p.write("CAST")
		return i + 1
	case lex.KwAs:
		if p.casts[len(p.casts)-1] {
			return p.castType(i)
		}
	case lex.KwFull, lex.KwCube, lex.KwSets, lex.KwFilter, lex.KwQualify, lex.KwUnnest, lex.KwLateral, lex.KwTablesample, lex.KwPivot,
		lex.KwUnpivot, lex.KwMatchRecognize, lex.KwArray, lex.KwFinal, lex.KwPrewhere, lex.KwSample, lex.KwAsof, lex.KwSemi, lex.KwAnti,
		lex.KwWithin, lex.KwOverwrite, lex.KwOnly, lex.KwApply, lex.KwReturning, lex.KwMerge, lex.KwMinus, lex.KwTop, lex.KwSettings:
		p.refused = true
		return i + 1
	case lex.KwFor:
		switch p.tok(i + 1).Word {
		case lex.KwUpdate, lex.KwShare, lex.KwJoin, lex.KwOrder, lex.KwGroup:
		default:
			if !p.inCall(i) {
				p.refused = true
			}
		}
	case lex.KwUsing:
		// elsewhere DELETE FROM a USING b reads both; MySQL takes the name for one of the sources
		if !p.d.MySQLLike() && p.punct(i+1) != '(' {
			p.refused = true
		}
	case lex.KwInterval:
		// the unit is a word behind; PostgreSQL has it inside
		if p.tok(i+1).Kind == lex.Literal && p.tok(i+2).Kind != lex.Bare {
			p.refused = true
		}
	case lex.KwExcept:
		if p.punct(i+1) == '(' && p.raw(i-1) == "*" {
			p.refused = true
		}
	case lex.KwUser:
		if p.d == lex.Postgres {
			p.refused = true // a function there, a name here
		}
	case lex.KwDistinct:
		if p.tok(i+1).Word == lex.KwOn || p.tok(i+1).Word == lex.KwFrom {
			p.refused = true
		}
	}
	p.write(lex.Name(p.raw(i), false, p.d))
	return i + 1
}

// inCall says that a FROM or FOR stands among the arguments of a function: EXTRACT(x FROM y).
func (p *shim) inCall(i int) bool {
	depth := 0
	for k := i - 1; k >= 0 && k > i-64; k-- {
		switch p.punct(k) {
		case ')':
			depth++
		case '(':
			if depth == 0 {
				switch p.raw(k - 1) {
				case "extract", "EXTRACT", "Extract", "trim", "TRIM", "Trim", "substring", "SUBSTRING", "Substring", "substr", "SUBSTR":
					return true
				}
				return false
			}
			depth--
		}
		if depth == 0 && p.tok(k).Word == lex.KwSelect {
			return false
		}
	}
	return false
}

// offset prints OFFSET n [ROWS] with a LIMIT or FETCH behind it as LIMIT n OFFSET m.
func (p *shim) offset(i int) int {
	n := p.tok(i + 1)
	if n.Kind != lex.Literal {
		p.refused = true
		return i + 1
	}
	p.rewrote = true
	k := i + 2
	if w := p.tok(k).Word; w == lex.KwRow || w == lex.KwRows {
		k++
	}
	switch p.tok(k).Word {
	case lex.KwLimit:
		if p.tok(k+1).Kind == lex.Literal {
			p.write("LIMIT")
			p.literal(k + 1)
			p.write("OFFSET")
			p.literal(i + 1)
			return k + 2
		}
	case lex.KwFetch:
		p.write("LIMIT")
		end := p.fetch(k, "bare")
		p.write("OFFSET")
		p.literal(i + 1)
		return end
	}
	p.refused = true // an offset alone has no spelling
	return k
}

// fetch prints FETCH FIRST n ROWS ONLY as LIMIT n.
func (p *shim) fetch(i int, bare string) int {
	w := p.tok(i + 1).Word
	rows := p.tok(i + 3).Word
	if w != lex.KwFirst && w != lex.KwNext || p.tok(i+2).Kind != lex.Literal || rows != lex.KwRow && rows != lex.KwRows || p.tok(i+4).Word != lex.KwOnly {
		p.refused = true
		return i + 1
	}
	p.rewrote = true
	if bare == "" {
		p.write("LIMIT")
	}
	p.literal(i + 2)
	return i + 5
}

// rollup prints GROUP BY ROLLUP (a, b) as GROUP BY a, b WITH ROLLUP.
func (p *shim) rollup(i int) int {
	if p.tok(i-1).Word == lex.KwWith {
		p.write("ROLLUP")
		return i + 1
	}
	if p.tok(i-1).Word != lex.KwBy || p.punct(i+1) != '(' {
		p.refused = true
		return i + 1
	}
	p.rewrote = true
	depth := 0
	k := i + 2
	for ; k < len(p.toks) && !p.refused; k++ {
		c := p.punct(k)
		if c == '(' && (p.punct(k-1) == '(' || p.punct(k-1) == ',') {
			p.refused = true // a key of several columns
		}
		if c == ')' && depth == 0 {
			break
		}
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if next := p.token(k); next > k {
			k = next - 1
		}
	}
	if p.punct(k+1) == ',' {
		p.refused = true // further keys behind
	}
	p.write("WITH ROLLUP")
	return k + 1
}

// castType prints the type behind AS in CAST. Only dates matter to a shape; every other type is printed as one that MySQL
// has.
func (p *shim) castType(i int) int {
	k, depth := i+1, 0
	for ; k < len(p.toks); k++ {
		switch p.punct(k) {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				p.writeType(i+1, k)
				return k
			}
			depth--
		}
	}
	p.refused = true
	return k
}

func (p *shim) writeType(lo, hi int) {
	p.write("AS")
	switch w := p.tok(lo).Word; {
	case hi == lo+1 && w == lex.KwDate:
		p.write("DATE")
	case hi == lo+1 && (w == lex.KwTimestamp || p.raw(lo) == "datetime" || p.raw(lo) == "DATETIME"):
		p.write("DATETIME")
	case p.d.MySQLLike():
		for k := lo; k < hi; k++ {
			p.write(p.raw(k))
		}
		return
	default:
		p.write("CHAR")
	}
	if !p.d.MySQLLike() {
		p.rewrote = true
	}
}
