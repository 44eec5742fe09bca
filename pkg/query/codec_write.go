package query

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"time"
	"unicode/utf8"
)

// append writes a value. It is false for what encoding/json has to do. v is addressable.
func (p *plan) append(b []byte, v reflect.Value) (_ []byte, ok bool) {
	switch p.shape {
	case shapeString:
		return appendString(b, v.String()), true
	case shapeBool:
		return strconv.AppendBool(b, v.Bool()), true
	case shapeInt:
		return strconv.AppendInt(b, v.Int(), 10), true
	case shapeFloat:
		return appendFloat(b, v.Float())
	case shapeTime:
		return appendTime(b, *v.Addr().Interface().(*time.Time))
	case shapeRaw:
		return appendRaw(b, v.Bytes())
	case shapePointer:
		if v.IsNil() {
			return append(b, "null"...), true
		}
		return p.elem.append(b, v.Elem())
	case shapeSlice:
		return p.appendSlice(b, v)
	case shapeMap:
		return p.appendMap(b, v)
	case shapeObject:
		return p.appendObject(b, v, nil)
	case shapeVia:
		wire := reflect.New(p.via.wire)
		if !p.via.to(v.Addr(), wire) {
			return b, false
		}
		return p.elem.append(b, wire.Elem())
	default:
		return b, false
	}
}

func (p *plan) appendSlice(b []byte, v reflect.Value) (_ []byte, ok bool) {
	if v.IsNil() {
		return append(b, "null"...), true
	}
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		if b, ok = p.elem.append(b, v.Index(i)); !ok {
			return b, false
		}
	}
	return append(b, ']'), true
}

// entry is a key of a map, with its place in the map's order of iteration.
type entry struct {
	key string
	at  int
}

func (p *plan) appendMap(b []byte, v reflect.Value) (_ []byte, ok bool) {
	if v.IsNil() {
		return append(b, "null"...), true
	}
	n := v.Len()
	entries := make([]entry, 0, n)
	// Elements of a map have no address: they are copied to where they have one.
	values := reflect.MakeSlice(reflect.SliceOf(p.elem.typ), n, n)
	for it := v.MapRange(); it.Next(); {
		at := len(entries)
		values.Index(at).SetIterValue(it)
		entries = append(entries, entry{it.Key().String(), at})
	}
	slices.SortFunc(entries, func(a, b entry) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		default:
			return 0
		}
	})
	b = append(b, '{')
	for i, e := range entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, e.key), ':')
		if b, ok = p.elem.append(b, values.Index(e.at)); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

// appendObject writes the fields in their order, then the unknown ones by name: those given, and those that the value itself keeps.
func (p *plan) appendObject(b []byte, v reflect.Value, extra Extra) (_ []byte, ok bool) {
	b = append(b, '{')
	some := false
	for i := range p.fields {
		f := &p.fields[i]
		fv := v
		for _, x := range f.index {
			fv = fv.Field(x)
		}
		if (f.omitEmpty && isEmpty(fv)) || (f.omitZero && isZero(fv)) {
			continue
		}
		if some {
			b = append(b, ',')
		}
		some = true
		b = append(b, f.key...)
		if b, ok = f.plan.append(b, fv); !ok {
			return b, false
		}
	}
	if p.keeps {
		extra = v.FieldByIndex(p.extra).Interface().(Extra)
	}
	if len(extra) > 0 {
		if b, ok = appendExtra(b, extra, some); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

func appendExtra(b []byte, extra Extra, some bool) (_ []byte, ok bool) {
	names := make([]string, 0, len(extra))
	for name := range extra {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if some {
			b = append(b, ',')
		}
		some = true
		b = append(appendString(b, name), ':')
		if b, ok = appendRaw(b, extra[name]); !ok || extra[name] == nil {
			return b, false
		}
	}
	return b, true
}

// isEmpty is encoding/json's idea of it.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String:
		return v.Len() == 0
	case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64, reflect.Pointer:
		return v.IsZero()
	default:
		return false
	}
}

func isZero(v reflect.Value) bool {
	if t, ok := reflect.TypeAssert[*time.Time](v.Addr()); ok {
		return t.IsZero()
	}
	return v.IsZero()
}

func appendRaw(b []byte, raw []byte) (_ []byte, ok bool) {
	if raw == nil {
		return append(b, "null"...), true
	}
	buf := bytes.NewBuffer(b)
	if json.Compact(buf, raw) != nil {
		return b, false
	}
	return buf.Bytes(), true
}

func appendTime(b []byte, t time.Time) (_ []byte, ok bool) {
	b = append(b, '"')
	b, err := t.AppendText(b)
	return append(b, '"'), err == nil
}

// appendFloat writes a number as ES6 does, and as encoding/json does.
func appendFloat(b []byte, f float64) (_ []byte, ok bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return b, false
	}
	abs, format := math.Abs(f), byte('f')
	if abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	b = strconv.AppendFloat(b, f, format, -1, 64)
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1] // e-09 is written e-9
		b = b[:n-1]
	}
	return b, true
}

const hexDigits = "0123456789abcdef"

// appendString quotes a text without escaping for HTML.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\b':
				b = append(b, '\\', 'b')
			case '\f':
				b = append(b, '\\', 'f')
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(append(b, s[start:i]...), `\ufffd`...)
			start = i + size
		case r == '\u2028' || r == '\u2029':
			b = append(append(b, s[start:i]...), '\\', 'u', '2', '0', '2', hexDigits[r&0xf])
			start = i + size
		}
		i += size
	}
	return append(append(b, s[start:]...), '"')
}
