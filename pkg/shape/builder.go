package shape

import (
	"strings"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

// Builder gathers what a reader of a text finds, and makes a template of it. Both readers, of tokens and of syntax trees,
// feed it, so that what they find is put together in one way.
type Builder struct {
	// Shape takes what is counted or said of the whole statement.
	Shape Shape
	// Roots are the queries that stand in no FROM; Outer is the one whose result is the statement's.
	Roots []*Query
	Outer *Query
	Named []*Named
	// Wrote and Locked say that the statement changes or locks something; Partial, that something was not read.
	Wrote, Locked, Partial bool
	Ranges                 []Range

	d       lex.Dialect
	uses    map[Table]int  // references to each table
	written map[Table]bool // the tables that are written
	udfs    map[string]bool
	depth   int
	found   []predTemplate
	refs    map[*Item]int
	values  map[string]bool // names of computed values
}

// NewBuilder starts a template for a text of a dialect.
func NewBuilder(d lex.Dialect) *Builder {
	return &Builder{d: d, uses: map[Table]int{}, udfs: map[string]bool{}, refs: map[*Item]int{}}
}

// Reads notes a reference to a physical table.
func (b *Builder) Reads(parts []string) Table {
	t := TableOf(parts)
	b.list(t)
	b.uses[t]++
	return t
}

// list names a table once. Every table that is named has its count of references, if only of none.
func (b *Builder) list(t Table) {
	if _, ok := b.uses[t]; !ok {
		b.uses[t] = 0
		b.Shape.Tables = append(b.Shape.Tables, t)
	}
}

// Writes notes that a table is written. It does not count as a scan.
func (b *Builder) Writes(t Table) {
	b.Wrote = true
	b.list(t)
	if !b.written[t] {
		if b.written == nil {
			b.written = map[Table]bool{}
		}
		b.written[t] = true
		b.Shape.WriteTables = append(b.Shape.WriteTables, t)
	}
}

// Target is for the one item that UPDATE or DELETE names as what it changes: a named query of the same name hides a table
// from reading, but cannot be written.
func (b *Builder) Target(it *Item) {
	if it.Named == nil {
		return
	}
	it.Named.Uses--
	it.Parts = []string{it.Named.Name}
	it.Table = b.Reads(it.Parts)
	it.Named, it.Query, it.Fixed = nil, nil, false
	b.Shape.JoinTables++
}

// Calls notes the call of a function.
func (b *Builder) Calls(parts []string) {
	name := strings.ToLower(parts[len(parts)-1])
	qualified := len(parts) > 1 && !systemSchema(strings.ToLower(parts[0]))
	switch {
	case qualified || !builtin(name):
		full := strings.ToLower(strings.Join(parts, "."))
		if !b.udfs[full] {
			b.udfs[full] = true
			b.Shape.UDFs = append(b.Shape.UDFs, full)
		}
		return
	case isRegex(name) && (name != "match" || !b.d.MySQLLike()): // MATCH .. AGAINST is a search for words
		b.Shape.Regex++
	case isJSON(name):
		b.Shape.JSON++
	}
	effect := sideEffect(name)
	b.Locked = b.Locked || effect == LockEffect
	b.Wrote = b.Wrote || effect == Once
}

// computed notes the name that ClickHouse's WITH gives to an expression: no query takes it for that of a column.
func (b *Builder) computed(name string) {
	if b.values == nil {
		b.values = map[string]bool{}
	}
	b.values[name] = true
}

// ref numbers the references to tables.
func (b *Builder) ref(s *Item) int {
	n, ok := b.refs[s]
	if !ok {
		n = len(b.refs)
		b.refs[s] = n
	}
	return n
}

// Enter and Leave count a query inside the statement's own.
func (b *Builder) Enter() {
	b.Shape.Subqueries++
	b.depth++
	b.Shape.SubqueryDepth = max(b.Shape.SubqueryDepth, b.depth)
}

// Leave ends what Enter began.
func (b *Builder) Leave() { b.depth-- }

// Top says that what is read now is the statement's own query and not one inside it.
func (b *Builder) Top() bool { return b.depth == 0 }

// AddWindow notes a use of a window function.
func (b *Builder) AddWindow(w Window) { b.Shape.Windows = append(b.Shape.Windows, w) }

// Template closes the books.
func (b *Builder) Template() *Template {
	for _, n := range b.Roots {
		b.push(n, nil, 0)
	}
	for _, c := range b.Named {
		if !c.single() {
			b.push(c.Query, nil, 0)
		}
	}
	if n := leaf(b.Outer); n != nil {
		b.Shape.Star = n.Star
		if !n.Star && n.Columns > 0 {
			columns := n.Columns // a pointer into the query would keep all of it
			b.Shape.OutputColumns = &columns
		}
	}
	t := &Template{shape: b.Shape, uses: b.uses}
	t.limit, t.offset = b.Outer.bounds()
	t.shape.HasLimit = t.limit.kind == slotLit || t.limit.kind == oneRow
	t.shape.Partial = t.shape.Partial || b.Partial
	t.preds = b.found
	t.ranges = b.Ranges
	b.class(&t.shape)
	t.own()
	return t
}

// class settles what follows from the class and from what was found inside the statement.
func (b *Builder) class(s *Shape) {
	switch s.Statement {
	case Select, Show, Explain:
		s.ReadOnly = !b.Wrote && !b.Locked
	case Set:
		s.ReadOnly = !b.Wrote
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
	case b.Wrote:
		s.Effect = Once
	case b.Locked:
		s.Effect = LockEffect
	case s.Statement == Other || s.Statement == "":
		s.Effect = ""
	default:
		s.Effect = Once
	}
}
