package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"sort"
	"strings"
	"sync"
)

// Extra holds the fields of a JSON object that this version has no name for.
type Extra map[string]json.RawMessage

// ErrNotObject is returned for JSON that is no object.
var ErrNotObject = errors.New("not a JSON object")

// DecodeObject reads a JSON object into v (a pointer to a struct) and returns the fields v has no name for.
// Contracts only grow: a reader of version N passes on what a writer of version N+1 said.
func DecodeObject(data []byte, v any) (Extra, error) { return plain.Decode(data, v) }

// EncodeObject writes v (a struct, or a pointer to one) followed by the extra fields in name order, so that equal values give
// equal bytes.
func EncodeObject(v any, extra Extra) ([]byte, error) { return plain.Encode(v, extra) }

// Decode is DecodeObject by this codec.
func (c *Codec) Decode(data []byte, v any) (Extra, error) {
	if rv := reflect.ValueOf(v).Elem(); rv.IsZero() {
		if p := c.planOf(rv.Type()); p != nil {
			s := scanner{data: data}
			extra, ok := p.readObject(&s, rv, 0)
			if s.space(); ok && s.i == len(data) {
				return extra, nil
			}
			rv.SetZero()
		}
	}
	return decodeObject(data, v)
}

// Encode is EncodeObject by this codec.
func (c *Codec) Encode(v any, extra Extra) ([]byte, error) {
	if data, ok := c.encode(v, extra); ok {
		return data, nil
	}
	return encodeObject(v, extra)
}

// buffers are reused: what is written is copied out of them, at its size.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// largestBuffer is what is kept for the next one.
const largestBuffer = 1 << 20

func (c *Codec) encode(v any, extra Extra) ([]byte, bool) {
	rv := reflect.ValueOf(v)
	switch {
	case rv.Kind() == reflect.Pointer && !rv.IsNil():
		rv = rv.Elem()
	case rv.Kind() == reflect.Struct: // plans need an address
		at := reflect.New(rv.Type()).Elem()
		at.Set(rv)
		rv = at
	default:
		return nil, false
	}
	if rv.Kind() != reflect.Struct {
		return nil, false
	}
	p := c.planOf(rv.Type())
	if p == nil || p.shape != shapeObject || (p.keeps && extra != nil) {
		return nil, false
	}
	buf := buffers.Get().(*[]byte)
	b, ok := p.appendObject((*buf)[:0], rv, extra)
	var data []byte
	if ok {
		data = bytes.Clone(b)
	}
	if cap(b) <= largestBuffer {
		*buf = b
		buffers.Put(buf)
	}
	return data, ok
}

// decodeObject leaves it all to encoding/json.
func decodeObject(data []byte, v any) (Extra, error) {
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' {
		var probe any
		if err := json.Unmarshal(data, &probe); err != nil {
			return nil, err
		}
		return nil, ErrNotObject
	}
	if err := json.Unmarshal(data, v); err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	known := fieldNames(reflect.TypeOf(v).Elem())
	var extra Extra
	for name, raw := range all {
		// encoding/json matches names without regard to case, so a known field in another case is known too.
		if known[strings.ToLower(name)] {
			continue
		}
		if extra == nil {
			extra = Extra{}
		}
		extra[name] = raw
	}
	return extra, nil
}

// encodeObject leaves it all to encoding/json.
func encodeObject(v any, extra Extra) ([]byte, error) {
	data, err := marshal(v)
	if err != nil || len(extra) == 0 {
		return data, err
	}
	names := make([]string, 0, len(extra))
	for name := range extra {
		names = append(names, name)
	}
	sort.Strings(names)
	out := bytes.NewBuffer(data[:len(data)-1])
	for _, name := range names {
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		key, err := marshal(name)
		if err != nil {
			return nil, err
		}
		out.Write(key)
		out.WriteByte(':')
		if err := json.Compact(out, extra[name]); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// marshal is json.Marshal without HTML escaping: SQL is full of < and >, and people read it with kcat.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

var fieldNameCache sync.Map // reflect.Type -> map[string]bool

func fieldNames(t reflect.Type) map[string]bool {
	if names, ok := fieldNameCache.Load(t); ok {
		return names.(map[string]bool)
	}
	names := map[string]bool{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			maps.Copy(names, fieldNames(f.Type)) // an embedded struct's fields lie flat in the object
			continue
		case name == "":
			name = f.Name
		}
		names[strings.ToLower(name)] = true
	}
	fieldNameCache.Store(t, names)
	return names
}
