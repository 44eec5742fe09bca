package shape

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

// Binding holds the values that one text gives to a template. Its memory may be used again for the next text.
type Binding struct {
	Limit, Offset       int64
	HasLimit, HasOffset bool
	Bucket              Bucket
	// slots[k] is the first span of slot k; spans of one slot need not follow each other.
	spans []lex.Span
	first []int32
	cut   bool
	open  bool // the text ends inside of a literal or comment
	d     lex.Dialect
	t     *Template
}

// Bind gives the template's slots the values of a text. r and spans are what lexing that text returned. It allocates
// nothing once the binding's memory is large enough.
func (t *Template) Bind(b *Binding, sql string, d lex.Dialect, r lex.Result, spans *lex.Spans) {
	b.t, b.d, b.spans, b.cut = t, d, spans.List, spans.Cut
	b.open = r.Flags&(lex.OpenLiteral|lex.OpenComment) != 0
	b.index(int(r.Slots))
	b.Limit, b.HasLimit = b.integer(sql, t.limit)
	b.Offset, b.HasOffset = b.integer(sql, t.offset)
	b.Bucket = t.bucket(b, sql, r)
}

// index finds the first span of every slot.
func (b *Binding) index(slots int) {
	slots = min(slots, lex.MaxSpans)
	if cap(b.first) < slots {
		b.first = make([]int32, slots)
	}
	b.first = b.first[:slots]
	for i := range b.first {
		b.first[i] = -1
	}
	for i, v := range slices.Backward(b.spans) {
		if s := int(v.Slot); s < slots {
			b.first[s] = int32(i)
		}
	}
}

// span is the literal of a slot that has exactly one.
func (b *Binding) span(slot uint32) (lex.Span, bool) {
	if int(slot) >= len(b.first) || b.first[slot] < 0 {
		return lex.Span{}, false
	}
	return b.spans[b.first[slot]], true
}

// integer reads a bound of rows.
func (b *Binding) integer(sql string, ref Slot) (int64, bool) {
	switch ref.kind {
	case slotLit:
	case oneRow:
		return 1, true
	default:
		return 0, false
	}
	s, ok := b.span(ref.slot)
	if !ok || s.Class != lex.Number {
		return 0, false
	}
	if n, ok := parseInt(sql[s.Off:s.End]); ok {
		return n, true
	}
	// 1e3 and 10.0 are whole numbers too, exact as far as a float is.
	f, err := strconv.ParseFloat(sql[s.Off:s.End], 64)
	if err != nil || f < 0 || f > 1<<53 || f != math.Trunc(f) || !strings.ContainsAny(sql[s.Off:s.End], ".eE") {
		return 0, false
	}
	return int64(f), true
}

// parseInt reads digits alone.
func parseInt(s string) (int64, bool) {
	if len(s) == 0 || len(s) > 19 {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		if n > (1<<63-1-int64(c-'0'))/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// Shape is the template with the values of its binding.
func (t *Template) Shape(b *Binding, sql string) Shape {
	s := t.shape
	if b.HasLimit {
		n := b.Limit
		s.Limit = &n
	}
	if b.HasOffset {
		n := b.Offset
		s.Offset = &n
	}
	s.Prunable = b.Predicates(sql)
	s.Partial = s.Partial || b.open
	s.Bucket = b.Bucket.String()
	return s
}

// Predicates decodes the conditions that can prune. Left out are those whose values are not in the text, or could not all
// be kept, and those that do not hold for every reference to their table, since a scan is planned once for all of them.
func (b *Binding) Predicates(sql string) []Predicate {
	if len(b.t.preds) == 0 {
		return nil
	}
	all := make([]held, 0, len(b.t.preds))
	for i := range b.t.preds {
		p := &b.t.preds[i]
		pred, ok := b.predicate(sql, p)
		if !ok {
			continue
		}
		k := slices.IndexFunc(all, func(q held) bool { return equalPredicates(q.Predicate, pred) })
		if k < 0 {
			k = len(all)
			all = append(all, held{Predicate: pred})
		}
		if !slices.Contains(all[k].refs, p.ref) {
			all[k].refs = append(all[k].refs, p.ref)
		}
	}
	out := make([]Predicate, 0, len(all))
	for i, h := range all {
		if len(h.refs) >= b.t.uses[h.Table] {
			out = append(out, h.Predicate)
			continue
		}
		if p, ok := b.together(all, i); ok {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// held is a predicate and the references to its table that it holds for.
type held struct {
	Predicate
	refs []int
}

// together makes one list of the constants that the references to a table compare a column with, each its own: a row that
// equals none of them is needed by none. i is the first predicate on that column, so that the list is made once.
func (b *Binding) together(all []held, i int) (Predicate, bool) {
	first := all[i].Predicate
	var refs []int
	var values []Value
	for k, h := range all {
		if h.Table != first.Table || h.Column != first.Column || h.Op != Eq && h.Op != In {
			continue
		}
		if k < i || len(h.refs) >= b.t.uses[h.Table] {
			return Predicate{}, false
		}
		list := h.Value.List()
		if h.Op == Eq {
			list = []Value{h.Value}
		}
		for _, v := range list {
			if !slices.ContainsFunc(values, v.Equal) {
				values = append(values, v)
			}
		}
		for _, ref := range h.refs {
			if !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	if len(refs) < b.t.uses[first.Table] || len(values) > maxFound {
		return Predicate{}, false
	}
	return Predicate{Table: first.Table, Column: first.Column, Op: In, Value: ListValue(values)}, true
}

func (b *Binding) predicate(sql string, p *predTemplate) (Predicate, bool) {
	pred, ok := Predicate{Table: p.table, Column: p.column, Op: p.Op}, true
	switch p.Op {
	case IsNull, IsNotNull:
	case In, NotIn:
		pred.Value, ok = b.values(sql, p)
	case Like:
		pred.Op, pred.Value, ok = b.prefix(sql, p)
	default:
		pred.Value, ok = b.value(sql, p.Slots[0])
		ok = ok && p.Made.says(pred.Value)
	}
	return pred, ok
}

func equalPredicates(a, b Predicate) bool {
	return a.Table == b.Table && a.Column == b.Column && a.Op == b.Op && a.Value.Equal(b.Value)
}

// Equal says that two values are of one kind and spelled alike.
func (v Value) Equal(o Value) bool {
	return v.kind == o.kind && v.text == o.text && slices.EqualFunc(v.list, o.list, Value.Equal)
}

// values decodes all the constants of a list; a list that was cut says nothing.
func (b *Binding) values(sql string, p *predTemplate) (Value, bool) {
	if b.cut {
		return Value{}, false
	}
	var list []Value
	last := slices.Max(p.Slots)
	for _, slot := range p.Slots {
		if int(slot) >= len(b.first) || b.first[slot] < 0 {
			return Value{}, false
		}
		for _, s := range b.spans[b.first[slot]:] {
			if s.Slot > last {
				break // behind the list
			}
			if s.Slot != slot {
				continue
			}
			v, ok := decode(sql[s.Off:s.End], s.Class, b.d)
			if !ok || !p.Made.says(v) {
				return Value{}, false
			}
			list = append(list, v)
		}
	}
	return ListValue(list), len(list) > 0
}

func (b *Binding) value(sql string, slot uint32) (Value, bool) {
	s, ok := b.span(slot)
	if !ok {
		return Value{}, false
	}
	return decode(sql[s.Off:s.End], s.Class, b.d)
}

// prefix turns a LIKE pattern into what it says for sure of the beginning of a value.
func (b *Binding) prefix(sql string, p *predTemplate) (Op, Value, bool) {
	s, ok := b.span(p.Slots[0])
	if !ok || s.Class != lex.String {
		return "", Value{}, false
	}
	pattern, ok := decodeString(sql[s.Off:s.End], b.d)
	if !ok {
		return "", Value{}, false
	}
	escape := b.d.LikeEscape()
	if p.HasEscape {
		e, ok := b.span(p.Escape.slot)
		if !ok || p.Escape.kind != slotLit {
			return "", Value{}, false
		}
		text, ok := decodeString(sql[e.Off:e.End], b.d)
		if !ok || len(text) > 1 {
			return "", Value{}, false
		}
		escape = 0
		if len(text) == 1 {
			escape = text[0]
		}
	} else if b.d == lex.Auto && slices.Contains([]byte(pattern), '\\') {
		return "", Value{}, false
	}
	var out []byte
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case escape != 0 && c == escape && i+1 < len(pattern):
			i++
			out = append(out, pattern[i])
		case c == '%' || c == '_':
			return StartsWith, StringValue(string(out)), len(out) > 0
		default:
			out = append(out, c)
		}
	}
	return Eq, StringValue(string(out)), true
}
