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
func DecodeObject(data []byte, v any) (Extra, error) {
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

// EncodeObject writes v (a struct) followed by the extra fields in name order, so that equal values give equal bytes.
func EncodeObject(v any, extra Extra) ([]byte, error) {
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
