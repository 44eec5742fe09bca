package shape

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

// Statement is the class of the template's statement.
func (t *Template) Statement() Statement { return t.shape.Statement }

// Unbound is the shape without the values of literals.
func (t *Template) Unbound() Shape { return t.shape }
