package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// join is one join operator and where its right side begins.
type join struct {
	kind    lex.Word // inner, left, right, full, cross, semi, anti
	next    int
	array   bool // LATERAL VIEW, ARRAY JOIN, APPLY: columns of the left side are unfolded
	asof    bool
	view    bool
	natural bool
}

// joinAhead says that a join operator stands where a table could.
func (p *parser) joinAhead(i int) bool {
	switch p.word(i) {
	case lex.KwLateral:
		return p.word(i+1) == lex.KwView
	case lex.KwLeft, lex.KwInner:
		return p.word(i+1) == lex.KwArray
	case lex.KwArray:
		return p.word(i+1) == lex.KwJoin
	}
	return false
}

// join reads the words of a join operator, if one begins at i.
func (p *parser) join(i int) (join, bool) {
	j := join{kind: lex.KwInner}
	for k := i; k < i+6; k++ {
		switch w := p.word(k); w {
		case lex.KwJoin:
			j.next = k + 1
			return j, true
		case lex.KwStraightJoin:
			j.next = k + 1
			return j, true
		case lex.KwApply:
			if k == i {
				return j, false
			}
			j.next, j.array = k+1, false
			return j, true
		case lex.KwLeft, lex.KwRight, lex.KwFull, lex.KwCross:
			if p.punct(k+1) == '(' {
				return j, false
			}
			j.kind = w
		case lex.KwSemi, lex.KwAnti:
			j.kind = w
		case lex.KwOuter:
			if k == i && p.word(k+1) == lex.KwApply {
				j.kind = lex.KwLeft
			}
		case lex.KwAsof:
			j.asof = true
		case lex.KwArray:
			j.array = true
		case lex.KwLateral:
			if p.word(k+1) != lex.KwView {
				return j, false
			}
			j.array, j.view = true, true
			j.next = k + 2
			if p.word(j.next) == lex.KwOuter {
				j.next++
			}
			return j, true
		case lex.KwNatural:
			j.natural = true
		case lex.KwInner, lex.KwGlobal, lex.KwAny, lex.KwAll, lex.KwLocal:
		default:
			if !p.spells(k, "positional") && !p.spells(k, "paste") && !p.spells(k, "broadcast") && !p.spells(k, "shuffle") {
				return j, false
			}
		}
	}
	return j, false
}

// joined reads the right side of a join and its condition.
func (p *parser) joined(n *Query, j join, first int) int {
	left := len(n.Items)
	i := j.next
	if j.array {
		return p.unfold(n, i, j.view)
	}
	i = p.factor(n, i)
	p.build.joins(j, p.word(i) == lex.KwOn || p.word(i) == lex.KwUsing && (p.punct(i+1) == '(' || p.bareUsing(i)))
	right := len(n.Items)
	// The sides that the join fills with NULL, and the sides that its condition may filter.
	from, to := first, right
	switch j.kind {
	case lex.KwLeft:
		mark(n.Items[left:right])
		from = left
	case lex.KwRight:
		n.markAll(first, left)
		to = left
	case lex.KwFull:
		n.markAll(first, right)
		from, to = 0, -1
	case lex.KwAnti:
		from = left
	}
	for p.word(i) == lex.KwOn || p.word(i) == lex.KwUsing && (p.punct(i+1) == '(' || p.bareUsing(i)) {
		if p.word(i) == lex.KwUsing {
			if p.punct(i+1) == '(' {
				i = p.skip(i + 1)
			} else {
				i = p.columns(i + 1)
			}
			if p.word(i) == lex.KwAs && p.isName(i+1) {
				i += 2
			}
			from, to = 0, -1
			continue
		}
		end := p.expr(i+1, n, inOn)
		if !j.asof && to >= 0 {
			p.conditions(n, i+1, end, from, to)
		}
		from, to = 0, -1
		if p.word(end) == lex.KwOn {
			p.build.later() // a second ON belongs to a join further left
		}
		i = end
	}
	return i
}

// bareUsing says that USING a, b stands at i, as ClickHouse takes it. Elsewhere DELETE .. USING names tables.
func (p *parser) bareUsing(i int) bool {
	return (p.d == lex.ClickHouse || p.d == lex.Auto) && p.isName(i+1) && p.build.Shape.Statement != Delete
}

// columns is the index behind a list of names.
func (p *parser) columns(i int) int {
	for {
		parts, next := p.path(i)
		if len(parts) == 0 || p.punct(next) != ',' {
			return next
		}
		i = next + 1
	}
}

// joins counts a join. One without a condition pairs everything with everything, however it is spelled.
func (b *Builder) joins(j join, conditioned bool) {
	joins := &b.Shape.Joins
	switch j.kind {
	case lex.KwLeft:
		joins.Left++
	case lex.KwRight:
		joins.Right++
	case lex.KwFull:
		joins.Full++
	case lex.KwSemi:
		joins.Semi++
	case lex.KwAnti:
		joins.Anti++
	default:
		if conditioned || j.natural {
			joins.Inner++
		} else {
			joins.Cross++
		}
	}
}

// later counts a join as conditioned whose ON stands behind that of a later one: a JOIN b JOIN c ON .. ON ..
func (b *Builder) later() {
	if b.Shape.Joins.Cross > 0 {
		b.Shape.Joins.Cross--
		b.Shape.Joins.Inner++
	}
}
