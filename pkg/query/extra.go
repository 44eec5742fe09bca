package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"reflect"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// options have the second version of Go's JSON package read and write what the first one does, but for HTML: SQL is full of < and >,
// and people read it with kcat. Types that write themselves into its encoder (MarshalJSONTo) are not gone over again by whatever
// holds them, which is what took most of the time.
var options = jsonv2.JoinOptions(
	jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false),
	jsonv1.ReportErrorsWithLegacySemantics(false), // it would read every text twice; see explained
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
	if err := jsonv2.Unmarshal(data, v, options); err != nil {
		return nil, explained(data, v, err)
	}
	known := fieldNames(reflect.TypeOf(v).Elem())
	var extra Extra
	// The text is valid JSON by now, so its members can be told apart without parsing it once more.
	for key, value := range members(trimmed) {
		if known[string(key)] {
			continue
		}
		name := memberName(key)
		// encoding/json matches names without regard to case, so a known field in another case is known too.
		if known[strings.ToLower(name)] {
			continue
		}
		if extra == nil {
			extra = Extra{}
		}
		extra[name] = bytes.Clone(value)
	}
	return extra, nil
}

// explained is the error of a text that can't be read as encoding/json tells it, with fields and types by the names that
// DescribeJSONError knows.
func explained(data []byte, v any, err error) error {
	if known := json.Unmarshal(data, reflect.New(reflect.TypeOf(v).Elem()).Interface()); known != nil {
		return known
	}
	return err
}

// members yields the members of a JSON object: each key as it is written between its quotes, and its value's text. The object
// must be valid JSON.
func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for i := skip(object, 1); object[i] == '"'; {
			keyEnd := stringEnd(object, i)
			key := object[i+1 : keyEnd-1]
			start := skip(object, skip(object, keyEnd)+1) // behind the colon
			end := valueEnd(object, start)
			if !yield(key, object[start:end]) {
				return
			}
			if i = skip(object, end); object[i] == ',' {
				i = skip(object, i+1)
			}
		}
	}
}

// skip returns the first place from i on that is no white space.
func skip(text []byte, i int) int {
	for text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n' {
		i++
	}
	return i
}

// stringEnd returns the place behind the string that begins at i.
func stringEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd returns the place behind the value that begins at i.
func valueEnd(text []byte, i int) int {
	for depth := 0; ; {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // of the object around a number or a word
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
		i++
	}
}

// memberName is a key as encoding/json reads it: bytes that are no UTF-8 would be written otherwise the first time than ever after.
func memberName(key []byte) string {
	if bytes.IndexByte(key, '\\') < 0 && utf8.Valid(key) {
		return string(key)
	}
	var name string
	if err := json.Unmarshal(append(append([]byte{'"'}, key...), '"'), &name); err != nil {
		return string(key)
	}
	return name
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

// EncodeObjectTo is EncodeObject for a struct within another.
func EncodeObjectTo(enc *jsontext.Encoder, v any, extra Extra) error {
	if len(extra) == 0 {
		return jsonv2.MarshalEncode(enc, v, options)
	}
	data, err := EncodeObject(v, extra)
	if err != nil {
		return err
	}
	return enc.WriteValue(data)
}

func marshal(v any) ([]byte, error) { return jsonv2.Marshal(v, options) }

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
