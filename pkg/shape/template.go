package shape

// Template is what a fingerprint says of a statement, without the values of its literals. It is immutable and may be
// shared.
type Template struct {
	shape  Shape // without what Bind adds
	limit  slotRef
	offset slotRef
	preds  []predTemplate
	// uses counts the references to each table: a predicate that is offered must hold for all of them.
	uses   map[Table]int
	ranges []rangeTemplate
}

// slotRef points at the literal that holds a value. The zero reference points at none.
type slotRef struct {
	kind refKind
	slot uint32
}

type refKind uint8

const (
	noRef   refKind = iota
	slotLit         // the literal of a slot
	allRows         // LIMIT ALL or LIMIT NULL: no bound
)

// predTemplate is a predicate whose constants are slots.
type predTemplate struct {
	table Table
	// ref is the reference to the table that the predicate holds for.
	ref    int
	column string
	op     Op
	slots  []uint32
	escape slotRef // LIKE .. ESCAPE
	// hasEscape says that an escape clause was written.
	hasEscape bool
}

// rangeTemplate is the two ends of a range on one column, for the parameter bucket.
type rangeTemplate struct {
	low, high slotRef
	// interval is a slot of INTERVAL n unit back from now, instead of two ends.
	interval slotRef
	unit     string
}

// Statement is the class of the template's statement.
func (t *Template) Statement() Statement { return t.shape.Statement }

// Unbound is the shape without the values of literals.
func (t *Template) Unbound() Shape { return t.shape }
