package query

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// read reads a value into v, which can be set. It is false for what encoding/json has to do, and v may hold anything then.
func (p *plan) read(s *scanner, v reflect.Value, depth int) bool {
	switch p.shape {
	case shapeString:
		text, ok := s.str()
		v.SetString(text)
		return ok
	case shapeBool:
		v.SetBool(s.peek() == 't')
		return s.word("true") || s.word("false")
	case shapeInt:
		raw, ok := s.number()
		if !ok {
			return false
		}
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil || v.OverflowInt(n) {
			return false
		}
		v.SetInt(n)
		return true
	case shapeFloat:
		raw, ok := s.number()
		if !ok {
			return false
		}
		n, err := strconv.ParseFloat(string(raw), 64)
		v.SetFloat(n)
		return err == nil
	case shapeTime:
		return readTime(s, v.Addr().Interface().(*time.Time))
	case shapeRaw:
		s.space()
		start := s.i
		if !s.skip(depth) {
			return false
		}
		v.SetBytes(bytes.Clone(s.data[start:s.i]))
		return true
	case shapePointer:
		if s.peek() == 'n' {
			return false
		}
		if v.IsNil() {
			v.Set(reflect.New(p.elem.typ))
		}
		return p.elem.read(s, v.Elem(), depth)
	case shapeSlice:
		return p.readSlice(s, v, depth)
	case shapeMap:
		return p.readMap(s, v, depth)
	case shapeObject:
		_, ok := p.readObject(s, v, depth)
		return ok
	case shapeVia:
		wire := reflect.New(p.via.wire)
		return p.elem.read(s, wire.Elem(), depth) && p.via.back(v.Addr(), wire)
	default:
		return false
	}
}

func readTime(s *scanner, t *time.Time) bool {
	raw, simple, ok := s.text()
	return ok && simple && t.UnmarshalText(raw) == nil
}

func (p *plan) readSlice(s *scanner, v reflect.Value, depth int) bool {
	if !s.take('[') || v.Len() > 0 || depth >= deepest {
		return false
	}
	v.Set(reflect.MakeSlice(p.typ, 0, 0))
	for first := true; ; first = false {
		more, ok := s.more(first, ']')
		if !ok || !more {
			return ok
		}
		n := v.Len()
		if n == v.Cap() {
			v.Grow(max(n, 4))
		}
		v.SetLen(n + 1)
		if !p.elem.read(s, v.Index(n), depth+1) {
			return false
		}
	}
}

func (p *plan) readMap(s *scanner, v reflect.Value, depth int) bool {
	if !s.take('{') || v.Len() > 0 || depth >= deepest {
		return false
	}
	v.Set(reflect.MakeMap(p.typ))
	keys := p.typ.Key()
	elem := reflect.New(p.elem.typ).Elem()
	for first := true; ; first = false {
		more, ok := s.more(first, '}')
		if !ok || !more {
			return ok
		}
		name, ok := s.str()
		if !ok || !s.take(':') {
			return false
		}
		elem.SetZero()
		if !p.elem.read(s, elem, depth+1) {
			return false
		}
		key := reflect.ValueOf(name)
		if keys != key.Type() {
			key = key.Convert(keys)
		}
		v.SetMapIndex(key, elem)
	}
}

// readObject reads the fields that the plan has, and returns the others. Those of an object that keeps them are set as well.
func (p *plan) readObject(s *scanner, v reflect.Value, depth int) (extra Extra, ok bool) {
	if !s.take('{') || depth >= deepest {
		return nil, false
	}
	var seen uint64
	next := 0
	for first := true; ; first = false {
		more, ok := s.more(first, '}')
		if !ok {
			return nil, false
		}
		if !more {
			break
		}
		name, simple, ok := s.text()
		if !ok || !simple || !s.take(':') {
			return nil, false
		}
		i, known := p.field(name, next)
		if !known {
			if extra, ok = p.unknown(s, name, extra, depth); !ok {
				return nil, false
			}
			continue
		}
		if seen&(1<<i) != 0 {
			return nil, false
		}
		seen |= 1 << i
		next = i + 1
		f := &p.fields[i]
		fv := v
		for _, x := range f.index {
			fv = fv.Field(x)
		}
		if !f.plan.read(s, fv, depth+1) {
			return nil, false
		}
	}
	if extra != nil && p.extra != nil {
		v.FieldByIndex(p.extra).Set(reflect.ValueOf(extra))
	}
	return extra, true
}

// field finds a field by its name. It is mostly the one after the last.
func (p *plan) field(name []byte, next int) (int, bool) {
	for i := next; i < len(p.fields) && i < next+3; i++ {
		if p.fields[i].name == string(name) {
			return i, true
		}
	}
	i, ok := p.byName[string(name)]
	return i, ok
}

// unknown moves over a field that the plan has not, and keeps it if the object does.
func (p *plan) unknown(s *scanner, name []byte, extra Extra, depth int) (Extra, bool) {
	for _, c := range name {
		if c >= utf8.RuneSelf {
			return nil, false
		}
	}
	// encoding/json matches names without regard to case.
	if p.folded[strings.ToLower(string(name))] {
		return nil, false
	}
	s.space()
	start := s.i
	if !s.skip(depth + 1) {
		return nil, false
	}
	if p.extra == nil {
		return extra, true
	}
	if extra == nil {
		extra = Extra{}
	}
	extra[string(name)] = bytes.Clone(s.data[start:s.i])
	return extra, true
}
