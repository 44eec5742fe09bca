package shape

import (
	"slices"
	"strings"
)

// Query is one query as far as its tables and conditions go: a SELECT, or a set operation or brackets over Kids.
type Query struct {
	Kids  []*Query
	Items []*Item  // of FROM, from left to right
	Outs  []Output // the result's columns
	Conds []Condition
	// Columns is the number of output expressions; Star says that one of them stands for unknown many.
	Columns int
	Star    bool
	// Limit and Offset are the query's own. Limited says that rows are cut off, so that no condition may be moved below.
	Limit, Offset Slot
	Limited       bool
	DistinctOn    bool // one row of a group is kept
	Grouped       bool
	Keys          []Column   // group keys that are plain columns
	Windows       [][]Column // the plain columns that each window is partitioned by
	Aggregates    bool       // rows are folded though nothing is grouped
	// Aliases are the names of computed output columns, which ClickHouse lets WHERE use.
	Aliases []string
	// Renamed says that output columns are not what they are called, so that nothing is taken from above; Opaque, that the
	// same holds of the query's own conditions.
	Renamed, Opaque bool
	// markedFrom and markedTo bound items that are all nullable.
	markedFrom, markedTo int
}

// Item is one item of FROM.
type Item struct {
	Alias string
	Parts []string // the name of a physical table
	Table Table
	Query *Query // of a derived table or a named query
	Named *Named // the named query, if it is one
	// Nullable says that an outer join fills the item with NULL where it has no match.
	Nullable bool
	// Fixed says that no condition may be moved into the item: its columns are renamed, its rows sampled or merged.
	Fixed bool
	// Columns are all the columns that the item has, if Closed.
	Columns []string
	Closed  bool
}

// Named is a query that WITH gives a name.
type Named struct {
	Name      string
	Query     *Query
	Uses      int // references to it
	Recursive bool
}

// single says that the query is read in one place, so that what holds there holds of it.
func (c *Named) single() bool { return c.Uses == 1 && !c.Recursive }

// Output is one column of a query's result.
type Output struct {
	Name   string
	Column Column // if it is a plain column
	Star   bool   // * or t.*, whose qualifier is the column's
}

// Column is a column with its qualifiers.
type Column struct {
	Qualifier []string
	Name      string
}

// Equal says that two columns are spelled alike.
func (c Column) Equal(o Column) bool {
	return c.Name == o.Name && slices.Equal(c.Qualifier, o.Qualifier)
}

// Conversion is what is made of a constant before it is compared. A text that does not say all of what comes of it is no
// constant then: whoever prunes by '2026-01-01 10:00' where midnight was meant loses rows.
type Conversion uint8

// The conversions, those that ask more of a text behind those that ask less.
const (
	AsWritten Conversion = iota
	ToTime               // a date and time, whose fraction of a second may be rounded
	ToDate
)

// says that a text is what the conversion makes of it.
func (c Conversion) says(v Value) bool {
	switch c {
	case ToTime:
		return v.IsText() && !strings.Contains(v.text, ".")
	case ToDate:
		s := v.text
		return v.IsText() && len(s) == 10 && s[4] == '-' && s[7] == '-'
	case AsWritten:
	}
	return true
}

// Test compares a column with constants.
type Test struct {
	Op    Op
	Slots []uint32
	// Made is what is made of the constants; of several of a list, what asks most.
	Made Conversion
	// Escape is the literal of LIKE .. ESCAPE, if HasEscape.
	Escape    Slot
	HasEscape bool
}

// Condition must hold for every row that the query lets through.
type Condition struct {
	Column Column
	Test
	// From and To bound the items that the condition may be applied to; all, if To is zero.
	From, To int
}

// passesNull says that the condition may hold of a NULL.
func (c Condition) passesNull() bool { return c.Op == IsNull }

// Where adds a condition, negated if need be.
func (n *Query) Where(c Condition, not bool) {
	if not {
		if c.Op = c.Op.negate(); c.Op == "" {
			return
		}
	}
	if len(n.Conds) < maxFound {
		n.Conds = append(n.Conds, c)
	}
}

const maxFound = 256

// push hands conditions down to the tables that they are about. From above come conditions on the node's output.
func (b *Builder) push(n *Query, above []Condition, depth int) {
	if depth > maxNesting {
		return
	}
	if n.Kids != nil {
		for _, kid := range n.Kids {
			b.push(kid, through(n, kid, above), depth+1)
		}
		return
	}
	b.Ranges = append(b.Ranges, rangesOf(n.Conds)...)
	conds := slices.Clone(n.Conds)
	for _, c := range above {
		if inner, ok := n.below(c); ok {
			conds = append(conds, inner)
		}
	}
	if n.Opaque {
		conds = nil
	}
	passed := map[*Item][]Condition{}
	var names itemIndex
	if len(conds)*len(n.Items) > 64 {
		names = indexNames(n.Items)
	}
	for _, c := range conds {
		if len(c.Column.Qualifier) == 0 && b.values[c.Column.Name] {
			continue
		}
		src, ok := n.resolve(c, names)
		if !ok {
			continue
		}
		if src.Nullable && (c.passesNull() || b.d.FillsDefaults()) && !c.ownSide(n, src) {
			continue
		}
		if src.Query == nil {
			if len(b.found) < maxFound && src.Parts != nil {
				p := predTemplate{table: src.Table, column: c.Column.Name, Test: c.Test}
				p.ref = b.ref(src)
				b.found = append(b.found, p)
			}
			continue
		}
		if src.Named != nil && !src.Named.single() {
			continue
		}
		c.Column.Qualifier = nil
		passed[src] = append(passed[src], c)
	}
	for _, src := range n.Items {
		if src.Query == nil || src.Named != nil && !src.Named.single() {
			continue
		}
		b.push(src.Query, passed[src], depth+1)
	}
}

// ownSide says that the condition comes from the join that makes the source nullable, and so filters before it.
func (c Condition) ownSide(n *Query, src *Item) bool {
	if c.To == 0 {
		return false
	}
	i := slices.Index(n.Items, src)
	return i >= c.From && i < c.To
}

// through carries conditions on the output of a set operation to one of its branches. Columns match by place.
func through(n, kid *Query, above []Condition) []Condition {
	if n.Limited || len(above) == 0 {
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
	var out []Condition
	for _, c := range above {
		for i, o := range first.Outs {
			if o.Star || i >= len(inner.Outs) || inner.Outs[i].Star {
				break
			}
			if o.Name == c.Column.Name {
				c.Column.Name = inner.Outs[i].Name
				out = append(out, c)
				break
			}
		}
	}
	return out
}

// leaf is the SELECT that names the columns of a query.
func leaf(n *Query) *Query {
	for k := 0; n != nil && n.Kids != nil; k++ {
		if len(n.Kids) == 0 || k > maxNesting {
			return nil
		}
		n = n.Kids[0]
	}
	return n
}

// bounds are the limit and offset of a query's result: its own, or those inside brackets around the whole of it.
func (n *Query) bounds() (limit, offset Slot) {
	for k := 0; n != nil && k <= maxNesting; k++ {
		if n.Limited || len(n.Kids) != 1 {
			return n.Limit, n.Offset
		}
		n = n.Kids[0]
	}
	return Slot{}, Slot{}
}

// below turns a condition on an output column into one on the column it is made of, if rows that fail it can be left out
// before anything else is done.
func (n *Query) below(c Condition) (Condition, bool) {
	if n.Limited || n.DistinctOn || n.Opaque || n.Renamed {
		return c, false
	}
	var col Column
	for _, o := range n.Outs {
		if !o.Star && o.Name == c.Column.Name {
			col = o.Column
			break
		}
	}
	if col.Name == "" {
		for _, o := range n.Outs {
			if !o.Star && o.Name == c.Column.Name {
				return c, false // computed
			}
		}
		stars := 0
		for _, o := range n.Outs {
			if o.Star {
				stars++
				col = Column{Qualifier: o.Column.Qualifier, Name: c.Column.Name}
			}
		}
		if stars != 1 {
			return c, false
		}
	}
	has := func(list []Column) bool {
		return slices.ContainsFunc(list, func(k Column) bool { return k.Equal(col) })
	}
	if n.Grouped && !has(n.Keys) || !n.Grouped && n.Aggregates {
		return c, false
	}
	for _, w := range n.Windows {
		if !has(w) {
			return c, false
		}
	}
	c.Column, c.From, c.To = col, 0, 0
	return c, true
}

// resolve finds the source that a condition's column belongs to. Without knowledge of columns, a bare name is only sure
// if there is one source. names may be nil.
func (n *Query) resolve(c Condition, names itemIndex) (*Item, bool) {
	var src *Item
	switch qual := c.Column.Qualifier; {
	case len(qual) > 0:
		items := n.Items
		if names != nil {
			items = names[qual[len(qual)-1]]
		}
		for _, s := range items {
			if s.Means(qual) {
				if src != nil {
					return nil, false
				}
				src = s
			}
		}
	case slices.Contains(n.Aliases, c.Column.Name):
		return nil, false
	default:
		for _, s := range n.Items {
			if !s.mayHave(c.Column.Name) {
				continue
			}
			if src != nil {
				return nil, false
			}
			src = s
		}
	}
	if src == nil || src.Fixed {
		return nil, false
	}
	if c.To > 0 {
		i := slices.Index(n.Items, src)
		if i < c.From || i >= c.To {
			return nil, false
		}
	}
	return src, true
}

// mayHave says that a source may have a column. Of a table nothing is known; a query without * has what it selects.
func (s *Item) mayHave(name string) bool {
	if s.Closed {
		return slices.Contains(s.Columns, name)
	}
	inner := leaf(s.Query)
	if inner == nil || s.Fixed || inner.Opaque || len(inner.Outs) == 0 {
		return true
	}
	return slices.ContainsFunc(inner.Outs, func(o Output) bool { return o.Star || o.Name == name || o.Name == "" })
}

// Means says whether a qualifier means this source: its alias, or without one the end of its name.
func (s *Item) Means(qual []string) bool {
	if s.Alias != "" {
		return len(qual) == 1 && qual[0] == s.Alias
	}
	k := len(s.Parts) - len(qual)
	return k >= 0 && slices.Equal(s.Parts[k:], qual)
}
