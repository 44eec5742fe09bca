package shape

import (
	"slices"
	"strings"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

// builder gathers what a reader of a text finds. Both readers, tokens and parser, feed the same builder.
type builder struct {
	d       lex.Dialect
	shape   Shape
	roots   []*node
	ctes    []*cte
	outer   *node         // the query whose result is the statement's
	uses    map[Table]int // how often a table is referenced
	udfs    map[string]bool
	depth   int
	writes  bool
	locks   bool
	partial bool
	found   []predTemplate
	refs    map[*source]int
	ranges  []rangeTemplate
}

func newBuilder(d lex.Dialect) *builder {
	return &builder{d: d, uses: map[Table]int{}, udfs: map[string]bool{}, refs: map[*source]int{}}
}

// reads notes a reference to a physical table.
func (b *builder) reads(parts []string) Table {
	t := tableOf(parts)
	if b.uses[t] == 0 && !slices.Contains(b.shape.Tables, t) {
		b.shape.Tables = append(b.shape.Tables, t)
	}
	b.uses[t]++
	return t
}

// writesTo notes that a table is written. It does not count as a scan.
func (b *builder) writesTo(t Table) {
	b.writes = true
	if !slices.Contains(b.shape.Tables, t) {
		b.shape.Tables = append(b.shape.Tables, t)
	}
	if !slices.Contains(b.shape.WriteTables, t) {
		b.shape.WriteTables = append(b.shape.WriteTables, t)
	}
}

// calls notes the call of a function.
func (b *builder) calls(parts []string) {
	name := strings.ToLower(parts[len(parts)-1])
	qualified := len(parts) > 1 && !systemSchema(strings.ToLower(parts[0]))
	switch {
	case qualified || !builtin(name):
		full := strings.ToLower(strings.Join(parts, "."))
		if !b.udfs[full] {
			b.udfs[full] = true
			b.shape.UDFs = append(b.shape.UDFs, full)
		}
		return
	case isRegex(name):
		b.shape.Regex++
	case isJSON(name):
		b.shape.JSON++
	}
	switch sideEffect(name) {
	case LockEffect:
		b.locks = true
	case Once:
		b.writes = true
	}
}

// ref numbers the references to tables.
func (b *builder) ref(s *source) int {
	n, ok := b.refs[s]
	if !ok {
		n = len(b.refs)
		b.refs[s] = n
	}
	return n
}

// window notes a use of a window function.
func (b *builder) window(w Window) { b.shape.Windows = append(b.shape.Windows, w) }

// template closes the books.
func (b *builder) template() *Template {
	for _, n := range b.roots {
		b.push(n, nil, 0)
	}
	for _, c := range b.ctes {
		if !c.single() {
			b.push(c.node, nil, 0)
		}
	}
	if n := leaf(b.outer); n != nil {
		b.shape.Star = n.star
		if !n.star && n.items > 0 {
			b.shape.OutputColumns = &n.items
		}
	}
	t := &Template{shape: b.shape, uses: b.uses}
	t.limit, t.offset = b.outer.bounds()
	t.shape.HasLimit = t.limit.kind == slotLit
	t.shape.Partial = t.shape.Partial || b.partial
	t.preds = b.found
	t.ranges = append(b.ranges, rangesOf(t.preds)...)
	b.class(&t.shape)
	return t
}

// class settles what follows from the class and from what was found inside the statement.
func (b *builder) class(s *Shape) {
	switch s.Statement {
	case Select, Show, Explain:
		s.ReadOnly = !b.writes && !b.locks
	case Set:
		s.ReadOnly = !b.writes
	default:
		s.ReadOnly = false
	}
	if s.Effect != "" {
		return
	}
	switch {
	case s.Statement == Set:
		s.Effect = SessionEffect
	case s.ReadOnly:
		s.Effect = NoEffect
	case b.writes:
		s.Effect = Once
	case b.locks:
		s.Effect = LockEffect
	case s.Statement == Other || s.Statement == "":
		s.Effect = ""
	default:
		s.Effect = Once
	}
}
