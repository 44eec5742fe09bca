package shape

import "strings"

// Template is what a fingerprint says of a statement, without the values of its literals. It is immutable and may be
// shared.
type Template struct {
	shape  Shape // without what Bind adds
	limit  Slot
	offset Slot
	preds  []predTemplate
	// uses counts the references to each table: a predicate that is offered must hold for all of them.
	uses   map[Table]int
	ranges []Range
}

// Slot points at the literal that holds a value. The zero reference points at none.
type Slot struct {
	kind slotKind
	slot uint32
}

type slotKind uint8

const (
	noRef   slotKind = iota
	slotLit          // the literal of a slot
	allRows          // LIMIT ALL or LIMIT NULL: no bound
	oneRow           // FETCH FIRST ROW ONLY
)

// SlotOf points at the literal of a slot.
func SlotOf(slot uint32) Slot { return Slot{slotLit, slot} }

// predTemplate is a test that holds for one reference to a table.
type predTemplate struct {
	table  Table
	ref    int
	column string
	Test
}

// Range is a range on one column, whose width is part of the parameter bucket: its two ends, or the time since an interval
// ago.
type Range struct {
	Low, High Slot
	Interval  Slot
	Unit      string // of the interval, in lower case
}

// own copies every name out of the text it was read from: a template outlives the text, and must not keep its literals.
func (t *Template) own() {
	copies := map[string]string{}
	own := func(s *string) {
		c, ok := copies[*s]
		if !ok {
			c = strings.Clone(*s)
			copies[c] = c
		}
		*s = c
	}
	table := func(x *Table) {
		own(&x.Catalog)
		own(&x.Schema)
		own(&x.Name)
	}
	own(&t.shape.Command)
	for i := range t.shape.Tables {
		table(&t.shape.Tables[i])
	}
	for i := range t.shape.WriteTables {
		table(&t.shape.WriteTables[i])
	}
	for i := range t.shape.UDFs {
		own(&t.shape.UDFs[i])
	}
	for i := range t.shape.Windows {
		w := &t.shape.Windows[i]
		own(&w.Function)
		for k := range w.PartitionBy {
			own(&w.PartitionBy[k])
		}
	}
	for i := range t.preds {
		table(&t.preds[i].table)
		own(&t.preds[i].column)
	}
	for i := range t.ranges {
		own(&t.ranges[i].Unit)
	}
	uses := make(map[Table]int, len(t.uses))
	for x, n := range t.uses {
		table(&x)
		uses[x] = n
	}
	t.uses = uses
}

// Statement is the class of the template's statement.
func (t *Template) Statement() Statement { return t.shape.Statement }

// HasPredicates says that a binding may have conditions that prune.
func (t *Template) HasPredicates() bool { return len(t.preds) > 0 }

// Unbound is the shape without the values of literals.
func (t *Template) Unbound() Shape { return t.shape }

// Size is about how many bytes a template holds, for those who bound what they keep.
func (t *Template) Size() int {
	const record = 96 // about what one element of a list takes beside its texts
	n := 8 * record
	for _, list := range [][]Table{t.shape.Tables, t.shape.WriteTables} {
		for _, table := range list {
			n += record + len(table.Catalog) + len(table.Schema) + len(table.Name)
		}
	}
	n += len(t.uses) * 2 * record
	for i := range t.preds {
		n += 2*record + len(t.preds[i].column) + 4*len(t.preds[i].Slots)
	}
	n += len(t.ranges) * record
	for _, w := range t.shape.Windows {
		n += record + len(w.Function)
		for _, key := range w.PartitionBy {
			n += record/4 + len(key)
		}
	}
	for _, f := range t.shape.UDFs {
		n += record/4 + len(f)
	}
	return n
}
