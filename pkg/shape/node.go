package shape

import "slices"

// node is one query: a SELECT, or a set operation or brackets over further nodes.
type node struct {
	kids    []*node
	sources []*source
	outs    []output
	conds   []cond
	// limited: rows are cut off, so that no condition may be moved below.
	limited  bool
	distinct bool // DISTINCT ON, which keeps one row a group
	grouped  bool
	keys     []colRef // group keys that are plain columns
	windows  [][]colRef
	calls    bool // aggregates are called
	items    int
	star     bool
	// aliases are the names of computed output columns, which ClickHouse lets WHERE use.
	aliases []string
	renamed bool // output columns are not what they seem: no condition is taken from above
	opaque  bool // nor from the query itself
	limit   slotRef
	offset  slotRef
}

// source is one item of FROM.
type source struct {
	alias    string
	parts    []string // of a physical table
	table    Table
	node     *node // of a derived table
	cte      *cte
	nullable bool // on the side of an outer join that is filled with NULL
	fixed    bool // columns are renamed, rows sampled or merged: nothing may be pushed
	columns  []string
	closed   bool // columns are all that it has
}

// output is one column of a query's result.
type output struct {
	name string
	col  colRef // if it is a plain column
	star bool   // * or t.*
}

// colRef is a column with its qualifiers.
type colRef struct {
	qual []string
	name string
}

func (c colRef) equal(o colRef) bool { return c.name == o.name && slices.Equal(c.qual, o.qual) }

// cond is a condition that holds for every row of a query's sources joined.
type cond struct {
	col colRef
	predTemplate
	// reach bounds what the condition may be applied to: the sources at or behind from and before to.
	from, to int
	// nulls are the sources that were nullable when the condition was read.
	anyNull bool // the condition may hold of a NULL
}

const maxFound = 256

// push hands conditions down to the tables that they are about. From above come conditions on the node's output.
func (b *builder) push(n *node, above []cond, depth int) {
	if depth > maxNesting {
		return
	}
	if n.kids != nil {
		for _, kid := range n.kids {
			b.push(kid, through(n, kid, above), depth+1)
		}
		return
	}
	conds := slices.Clone(n.conds)
	for _, c := range above {
		if inner, ok := n.below(c); ok {
			conds = append(conds, inner)
		}
	}
	if n.opaque {
		conds = nil
	}
	passed := map[*source][]cond{}
	for _, c := range conds {
		src, ok := n.resolve(c)
		if !ok {
			continue
		}
		if src.nullable && (c.anyNull || b.d.FillsDefaults()) && !c.ownSide(n, src) {
			continue
		}
		if src.node == nil {
			if len(b.found) < maxFound && src.parts != nil {
				p := c.predTemplate
				p.table, p.column = src.table, c.col.name
				p.ref = b.ref(src)
				b.found = append(b.found, p)
			}
			continue
		}
		if src.cte != nil && !src.cte.single() {
			continue
		}
		c.col.qual = nil
		passed[src] = append(passed[src], c)
	}
	for _, src := range n.sources {
		if src.node == nil || src.cte != nil && !src.cte.single() {
			continue
		}
		b.push(src.node, passed[src], depth+1)
	}
}

// ownSide says that the condition comes from the join that makes the source nullable, and so filters before it.
func (c cond) ownSide(n *node, src *source) bool {
	if c.to == 0 {
		return false
	}
	i := slices.Index(n.sources, src)
	return i >= c.from && i < c.to
}

// through carries conditions on the output of a set operation to one of its branches. Columns match by place.
func through(n, kid *node, above []cond) []cond {
	if n.limited || len(above) == 0 {
		return nil
	}
	first := leaf(n)
	inner := leaf(kid)
	if first == nil || inner == nil {
		return nil
	}
	if first == inner {
		return above
	}
	var out []cond
	for _, c := range above {
		for i, o := range first.outs {
			if o.star || i >= len(inner.outs) || inner.outs[i].star {
				break
			}
			if o.name == c.col.name {
				c.col.name = inner.outs[i].name
				out = append(out, c)
				break
			}
		}
	}
	return out
}

// leaf is the SELECT that names the columns of a query.
func leaf(n *node) *node {
	for k := 0; n != nil && n.kids != nil; k++ {
		if len(n.kids) == 0 || k > maxNesting {
			return nil
		}
		n = n.kids[0]
	}
	return n
}

// bounds are the limit and offset of a query's result: its own, or those inside brackets around the whole of it.
func (n *node) bounds() (limit, offset slotRef) {
	for k := 0; n != nil && k <= maxNesting; k++ {
		if n.limited || len(n.kids) != 1 {
			return n.limit, n.offset
		}
		n = n.kids[0]
	}
	return slotRef{}, slotRef{}
}

// below turns a condition on an output column into one on the column it is made of, if rows that fail it can be left out
// before anything else is done.
func (n *node) below(c cond) (cond, bool) {
	if n.limited || n.distinct || n.opaque || n.renamed {
		return c, false
	}
	var col colRef
	for _, o := range n.outs {
		if !o.star && o.name == c.col.name {
			col = o.col
			break
		}
	}
	if col.name == "" {
		for _, o := range n.outs {
			if !o.star && o.name == c.col.name {
				return c, false // computed
			}
		}
		stars := 0
		for _, o := range n.outs {
			if o.star {
				stars++
				col = colRef{qual: o.col.qual, name: c.col.name}
			}
		}
		if stars != 1 {
			return c, false
		}
	}
	has := func(list []colRef) bool {
		return slices.ContainsFunc(list, func(k colRef) bool { return k.equal(col) })
	}
	if n.grouped && !has(n.keys) || !n.grouped && n.calls {
		return c, false
	}
	for _, w := range n.windows {
		if !has(w) {
			return c, false
		}
	}
	c.col, c.from, c.to = col, 0, 0
	return c, true
}

// resolve finds the source that a condition's column belongs to. Without knowledge of columns, a bare name is only sure
// if there is one source.
func (n *node) resolve(c cond) (*source, bool) {
	var src *source
	switch {
	case len(c.col.qual) > 0:
		for _, s := range n.sources {
			if s.named(c.col.qual) {
				if src != nil {
					return nil, false
				}
				src = s
			}
		}
	case slices.Contains(n.aliases, c.col.name):
		return nil, false
	default:
		for _, s := range n.sources {
			if !s.mayHave(c.col.name) {
				continue
			}
			if src != nil {
				return nil, false
			}
			src = s
		}
	}
	if src == nil || src.fixed {
		return nil, false
	}
	if c.to > 0 {
		i := slices.Index(n.sources, src)
		if i < c.from || i >= c.to {
			return nil, false
		}
	}
	return src, true
}

// mayHave says that a source may have a column. Of a table nothing is known; a query without * has what it selects.
func (s *source) mayHave(name string) bool {
	if s.closed {
		return slices.Contains(s.columns, name)
	}
	inner := leaf(s.node)
	if inner == nil || s.fixed || inner.opaque || len(inner.outs) == 0 {
		return true
	}
	return slices.ContainsFunc(inner.outs, func(o output) bool { return o.star || o.name == name || o.name == "" })
}

// named says whether a qualifier means this source: its alias, or without one the end of its name.
func (s *source) named(qual []string) bool {
	if s.alias != "" {
		return len(qual) == 1 && qual[0] == s.alias
	}
	k := len(s.parts) - len(qual)
	return k >= 0 && slices.Equal(s.parts[k:], qual)
}
