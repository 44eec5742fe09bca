package shape

import (
	"strings"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

// over reads OVER (..) or OVER name, and notes the window.
func (p *parser) over(i int, n *Query) int {
	if !p.endsOperand(i - 1) {
		return i + 1
	}
	w := Window{Function: p.windowFunction(i)}
	if p.punct(i+1) != '(' {
		if !p.isName(i + 1) {
			return i + 1
		}
		w.PartitionBy, w.Ordered = p.windowNamed(p.name(i+1), n, i)
		p.build.AddWindow(w)
		return i + 2
	}
	keys, ordered, end := p.windowSpec(i+2, n)
	w.PartitionBy, w.Ordered = keys, ordered
	p.build.AddWindow(w)
	return end
}

// windowFunction is the name of the function whose arguments end before OVER, past FILTER and IGNORE NULLS.
func (p *parser) windowFunction(i int) string {
	for k := i - 1; k > 0 && k > i-256; k-- {
		switch {
		case p.word(k) == lex.KwNulls || p.word(k) == lex.KwIgnore || p.spells(k, "respect"):
		case p.punct(k) == ')':
			open := p.openOf(k)
			if open <= 0 {
				return ""
			}
			if p.word(open-1) == lex.KwFilter || p.word(open-1) == lex.KwGroup {
				k = open - 1
				if p.word(open-1) == lex.KwGroup {
					k--
				}
				continue
			}
			if t := p.tok(open - 1); t.Kind == lex.Bare || t.Kind == lex.Quoted {
				return windowName(strings.ToLower(p.name(open - 1)))
			}
			return ""
		case (p.word(k) == lex.KwFirst || p.spells(k, "last")) && p.word(k-1) == lex.KwFrom:
			k--
		default:
			return ""
		}
	}
	return ""
}

// windowName is the name that a function goes by under its other names.
func windowName(name string) string {
	switch name {
	case "std", "stddev":
		return "stddev_pop"
	case "variance":
		return "var_pop"
	}
	return name
}

// openOf finds the bracket that k closes, within a reach that any argument list fits in.
func (p *parser) openOf(k int) int {
	for i := k - 1; i >= 0 && i > k-4096; i-- {
		if p.punct(i) == '(' && int(p.match[i]) == k {
			return i
		}
	}
	return -1
}

// windowSpec reads what stands in the brackets of OVER or WINDOW and returns the index behind them.
func (p *parser) windowSpec(i int, n *Query) (keys []string, ordered bool, end int) {
	if p.isName(i) && p.word(i) != lex.KwPartition && p.word(i) != lex.KwOrder && p.word(i) != lex.KwRows && p.word(i) != lex.KwRange && p.punct(i+1) != '(' {
		keys, ordered = p.windowNamed(p.name(i), n, i)
		i++
	}
	var cols []Column
	if (p.word(i) == lex.KwPartition || p.word(i) == lex.KwDistribute) && p.word(i+1) == lex.KwBy {
		i += 2
		for i < len(p.toks) {
			end := p.expr(i, nil, inElement)
			if end > i {
				keys = append(keys, p.render(i, end))
				if parts, next := p.path(i); next == end && len(parts) > 0 {
					k := len(parts) - 1
					cols = append(cols, Column{parts[:k:k], parts[k]})
				}
			}
			i = end
			if p.punct(i) != ',' {
				break
			}
			i++
		}
	}
	if (p.word(i) == lex.KwOrder || p.word(i) == lex.KwSort) && p.word(i+1) == lex.KwBy {
		ordered = true
	}
	i = p.expr(i, nil, inAny)
	if n != nil {
		n.Windows = append(n.Windows, cols)
	}
	if p.punct(i) == ')' {
		i++
	}
	return keys, ordered, i
}

// windowNamed looks a named window up. Its definition may stand further on, behind WINDOW, at the same depth.
func (p *parser) windowNamed(name string, n *Query, i int) (keys []string, ordered bool) {
	if n != nil {
		n.Windows = append(n.Windows, nil)
	}
	if p.windows == nil {
		p.windows = map[string]*namedWindow{}
		for k := range p.toks {
			if p.word(k) == lex.KwWindow {
				p.namedWindows(k + 1)
			}
		}
	}
	w := p.windows[name]
	if w == nil || w.lo <= i && i < w.hi {
		return nil, false
	}
	if !w.read {
		w.read = true // before it is read, so that one that names itself ends
		saved := p.build
		p.build = NewBuilder(p.d) // what stands there is counted where it stands
		w.keys, w.ordered, _ = p.windowSpec(w.lo, nil)
		p.build = saved
	}
	return w.keys, w.ordered
}

// namedWindow is a definition behind WINDOW, and what it says once it was read.
type namedWindow struct {
	lo, hi  int
	read    bool
	keys    []string
	ordered bool
}

// namedWindows notes where the definitions behind WINDOW stand.
func (p *parser) namedWindows(i int) {
	for p.isName(i) && p.word(i+1) == lex.KwAs && p.punct(i+2) == '(' {
		end := p.skip(i + 2)
		if _, ok := p.windows[p.name(i)]; !ok {
			p.windows[p.name(i)] = &namedWindow{lo: i + 3, hi: end}
		}
		if p.punct(end) != ',' {
			return
		}
		i = end + 1
	}
}

// windowClause reads WINDOW w AS (..), .. from its first name on.
func (p *parser) windowClause(_ *Query, i int) int {
	for p.isName(i) && p.word(i+1) == lex.KwAs && p.punct(i+2) == '(' {
		p.expr(i+3, nil, inAny)
		i = p.skip(i + 2)
		if p.punct(i) != ',' {
			return i
		}
		i++
	}
	return i
}

// render prints an expression in short: names folded, literals left out.
func (p *parser) render(lo, hi int) string {
	var b strings.Builder
	for i := lo; i < hi && b.Len() < 200; i++ {
		t := p.tok(i)
		if i > lo && (p.punct(i-1) == ',' || t.Kind != lex.Punct && p.punct(i-1) != '(' && p.punct(i-1) != '.' && p.punct(i-1) != '[') {
			b.WriteByte(' ')
		}
		switch t.Kind {
		case lex.Literal:
			b.WriteByte('?')
		case lex.Bare, lex.Quoted:
			b.WriteString(p.name(i))
		default:
			b.WriteString(p.raw(i))
		}
	}
	return b.String()
}
