package query

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"
)

// Codec reads and writes the JSON objects of events by plans that are made once for each type. It gives what encoding/json gives,
// byte for byte, in a fraction of the time: nested objects that keep unknown fields cost encoding/json a pass over all their bytes
// at each level, and events are most of what the services compute.
//
// It does the plain cases. At anything else (an error of any kind, a null, a key twice, a field whose name has another case, a
// type it has no plan for) it gives up, and encoding/json does all of it from the start.
type Codec struct {
	via   map[reflect.Type]via
	plans sync.Map // reflect.Type -> *plan; nil plan: encoding/json only
}

// plain is the codec of types that need no conversion.
var plain = NewCodec()

// NewCodec makes a codec that knows some types by conversion, besides those that are plain.
func NewCodec(conversions ...Conversion) *Codec {
	c := &Codec{via: map[reflect.Type]via{}}
	for _, k := range conversions {
		c.via[k.from] = k.via
	}
	return c
}

// Conversion lets a type that writes itself be written and read as a plain struct instead.
type Conversion struct {
	from reflect.Type
	via  via
}

// via turns a value into another type's and back. Both are pointers in a reflect.Value.
type via struct {
	wire     reflect.Type
	to, back func(value, wire reflect.Value) bool
}

// Via makes the conversion of T to the struct W that has its JSON. Either function may be false: then encoding/json does it.
func Via[T, W any](to func(*T, *W) bool, back func(*W, *T) bool) Conversion {
	return Conversion{reflect.TypeFor[T](), via{
		wire: reflect.TypeFor[W](),
		to: func(value, wire reflect.Value) bool {
			return to(value.Interface().(*T), wire.Interface().(*W))
		},
		back: func(value, wire reflect.Value) bool {
			return back(wire.Interface().(*W), value.Interface().(*T))
		},
	}}
}

// shape is what kind of JSON a type has.
type shape uint8

const (
	shapeString shape = iota + 1
	shapeBool
	shapeInt
	shapeFloat
	shapeTime
	shapeRaw
	shapePointer
	shapeSlice
	shapeMap
	shapeObject
	shapeVia
)

// plan says how values of a type are written and read.
type plan struct {
	shape shape
	typ   reflect.Type
	elem  *plan // of pointers, slices, maps, conversions
	via   via

	// Of objects. extra is the index of the field that keeps unknown ones, nil if there is none. keeps says that the type writes
	// them itself, with no need to be handed them.
	fields []planField
	byName map[string]int
	folded map[string]bool // names in lower case
	extra  []int
	keeps  bool
}

type planField struct {
	name      string
	key       []byte // "name":
	index     []int
	plan      *plan
	omitEmpty bool
	omitZero  bool
}

var (
	typeTime      = reflect.TypeFor[time.Time]()
	typeRaw       = reflect.TypeFor[json.RawMessage]()
	typeExtra     = reflect.TypeFor[Extra]()
	typeMarshaler = reflect.TypeFor[json.Marshaler]()
	typeReader    = reflect.TypeFor[json.Unmarshaler]()
	typeText      = reflect.TypeFor[encoding.TextMarshaler]()
	typeTextRead  = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// planOf is the plan of a type, or nil.
func (c *Codec) planOf(t reflect.Type) *plan {
	if p, ok := c.plans.Load(t); ok {
		return p.(*plan)
	}
	b := builder{codec: c, done: map[reflect.Type]*plan{}}
	p, ok := b.build(t)
	if !ok {
		p = nil
	}
	kept, _ := c.plans.LoadOrStore(t, p)
	return kept.(*plan)
}

// builder makes the plans of one type and of all that it holds: types may hold themselves.
type builder struct {
	codec *Codec
	done  map[reflect.Type]*plan
}

func (b *builder) build(t reflect.Type) (*plan, bool) {
	if p, ok := b.done[t]; ok {
		return p, true
	}
	p := &plan{typ: t}
	b.done[t] = p
	if v, ok := b.codec.via[t]; ok {
		p.shape, p.via = shapeVia, v
		return p, b.inner(p, v.wire)
	}
	switch {
	case t == typeTime:
		p.shape = shapeTime
		return p, true
	case t == typeRaw:
		p.shape = shapeRaw
		return p, true
	case t.Kind() == reflect.Struct:
		p.shape = shapeObject
		return p, b.object(p)
	case t.Kind() == reflect.Pointer: // it has the methods of what it points to
		p.shape = shapePointer
		return p, b.inner(p, t.Elem())
	case writesItself(t):
		return nil, false
	}
	switch t.Kind() {
	case reflect.String:
		p.shape = shapeString
	case reflect.Bool:
		p.shape = shapeBool
	case reflect.Int, reflect.Int32, reflect.Int64:
		p.shape = shapeInt
	case reflect.Float64:
		p.shape = shapeFloat
	case reflect.Slice:
		p.shape = shapeSlice
		return p, t.Elem().Kind() != reflect.Uint8 && b.inner(p, t.Elem())
	case reflect.Map:
		p.shape = shapeMap
		return p, t.Key().Kind() == reflect.String && !writesItself(t.Key()) && b.inner(p, t.Elem())
	default:
		return nil, false
	}
	return p, true
}

func (b *builder) inner(p *plan, t reflect.Type) (ok bool) {
	p.elem, ok = b.build(t)
	return ok
}

// writesItself says that a type, or a pointer to it, has its own idea of its JSON.
func writesItself(t reflect.Type) bool {
	for _, i := range []reflect.Type{typeMarshaler, typeReader, typeText, typeTextRead} {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

// object plans a struct. One that writes itself is planned only if it keeps unknown fields: then it does so by EncodeObject.
func (b *builder) object(p *plan) bool {
	p.byName, p.folded = map[string]int{}, map[string]bool{}
	if !b.fieldsOf(p, p.typ, nil) {
		return false
	}
	p.keeps = p.extra != nil && writesItself(p.typ)
	return len(p.fields) <= 64 && (p.keeps || !writesItself(p.typ))
}

func (b *builder) fieldsOf(p *plan, t reflect.Type, path []int) bool {
	for f := range t.Fields() {
		index := append(append([]int(nil), path...), f.Index...)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case f.Type == typeExtra && tag == "-" && f.Name == "Extra" && len(path) == 0:
			p.extra = index
			continue
		case tag == "-":
			continue
		case f.Anonymous && name == "":
			// An embedded struct's fields lie flat in the object, unless it writes itself.
			if f.Type.Kind() != reflect.Struct || writesItself(f.Type) || !f.IsExported() || !b.fieldsOf(p, f.Type, index) {
				return false
			}
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		field := planField{name: name, index: index}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "":
			case "omitempty":
				field.omitEmpty = true
			case "omitzero":
				field.omitZero = true
			default:
				return false
			}
		}
		var ok bool
		if field.plan, ok = b.build(f.Type); !ok || p.folded[strings.ToLower(name)] {
			return false // or two fields of one name: encoding/json knows which one counts
		}
		if zero, has := f.Type.MethodByName("IsZero"); field.omitZero && has && f.Type != typeTime {
			return zero.Index < 0 // it has its own idea of zero
		}
		field.key = append(appendString(nil, name), ':')
		p.byName[name], p.folded[strings.ToLower(name)] = len(p.fields), true
		p.fields = append(p.fields, field)
	}
	return true
}
