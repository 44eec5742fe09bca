package shape

import (
	"strings"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

// over reads OVER (..) or OVER name, and notes the window.
func (p *parser) over(i int, n *node) int {
	if !p.endsOperand(i - 1) {
		return i + 1
	}
	w := Window{Function: p.windowFunction(i)}
	if p.punct(i+1) != '(' {
		if !p.isName(i + 1) {
			return i + 1
		}
		w.PartitionBy, w.Ordered = p.windowNamed(p.name(i+1), n, i)
		p.build.window(w)
		return i + 2
	}
	keys, ordered, end := p.windowSpec(i+2, n)
	w.PartitionBy, w.Ordered = keys, ordered
	p.build.window(w)
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
				return strings.ToLower(p.name(open - 1))
			}
			return ""
		default:
			return ""
		}
	}
	return ""
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
func (p *parser) windowSpec(i int, n *node) (keys []string, ordered bool, end int) {
	if p.isName(i) && p.word(i) != lex.KwPartition && p.word(i) != lex.KwOrder && p.word(i) != lex.KwRows && p.word(i) != lex.KwRange && p.punct(i+1) != '(' {
		keys, ordered = p.windowNamed(p.name(i), n, i)
		i++
	}
	var cols []colRef
	if (p.word(i) == lex.KwPartition || p.word(i) == lex.KwDistribute) && p.word(i+1) == lex.KwBy {
		i += 2
		for i < len(p.toks) {
			end := p.expr(i, nil, inElement)
			if end > i {
				keys = append(keys, p.render(i, end))
				if parts, next := p.path(i); next == end && len(parts) > 0 {
					k := len(parts) - 1
					cols = append(cols, colRef{parts[:k:k], parts[k]})
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
		n.windows = append(n.windows, cols)
	}
	if p.punct(i) == ')' {
		i++
	}
	return keys, ordered, i
}

// windowNamed looks a named window up. Its definition may stand further on, behind WINDOW, at the same depth.
func (p *parser) windowNamed(name string, n *node, i int) (keys []string, ordered bool) {
	if n != nil {
		n.windows = append(n.windows, nil)
	}
	if p.windows == nil {
		p.windows = map[string][2]int{}
		for k := range p.toks {
			if p.word(k) == lex.KwWindow {
				p.namedWindows(k + 1)
			}
		}
	}
	spec, ok := p.windows[name]
	if !ok || spec[0] <= i && i < spec[1] || p.depth >= maxNesting {
		return nil, false
	}
	p.depth++
	saved := p.build
	p.build = newBuilder(p.d) // what stands there is counted where it stands
	keys, ordered, _ = p.windowSpec(spec[0], nil)
	p.build = saved
	p.depth--
	return keys, ordered
}

// namedWindows notes where the definitions behind WINDOW stand.
func (p *parser) namedWindows(i int) {
	for p.isName(i) && p.word(i+1) == lex.KwAs && p.punct(i+2) == '(' {
		end := p.skip(i + 2)
		if _, ok := p.windows[p.name(i)]; !ok {
			p.windows[p.name(i)] = [2]int{i + 3, end}
		}
		if p.punct(end) != ',' {
			return
		}
		i = end + 1
	}
}

// windowClause reads WINDOW w AS (..), .. from its first name on.
func (p *parser) windowClause(_ *node, i int) int {
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
