package config

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Print writes a loaded configuration as YAML that can be loaded again, except for its secrets, which are redacted.
// A comment says where each value that is no default came from.
func (l *Loaded[T]) Print(w io.Writer) error {
	comments := yaml.CommentMap{}
	tree := printable(reflect.ValueOf(l.Config), "", func(path string) {
		if o, ok := l.Origins[path]; ok {
			comments["$."+path] = []*yaml.Comment{yaml.LineComment(" " + o.String())}
		}
	})
	text, err := yaml.MarshalWithOptions(tree, yaml.WithComment(comments), yaml.IndentSequence(true))
	if err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	_, err = w.Write(text)
	return err
}

// printable is toTree for people: in the order of the struct, with secrets redacted and numbers left numbers.
func printable(v reflect.Value, path string, leaf func(path string)) any {
	if v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
		return printable(v.Elem(), path, leaf)
	}
	switch t := v.Type(); {
	case t == secretType:
		leaf(path)
		return v.Interface().(Secret).String()
	case isScalar(t):
		leaf(path)
		if t == durationType || t == timeType || t.Implements(textMarshaler) {
			return encodeScalar(v)
		}
		return v.Interface()
	case v.Kind() == reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = printable(v.Index(i), fmt.Sprintf("%s[%d]", path, i), leaf)
		}
		return out
	case v.Kind() == reflect.Map:
		out := yaml.MapSlice{}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			out = append(out, yaml.MapItem{Key: key.String(), Value: printable(v.MapIndex(key), join(path, key.String()), leaf)})
		}
		return out
	case v.Kind() == reflect.Struct:
		out := yaml.MapSlice{}
		for _, m := range members(t) {
			out = append(out, yaml.MapItem{Key: m.name, Value: printable(v.FieldByIndex(m.index), join(path, m.name), leaf)})
		}
		return out
	default:
		return v.Interface()
	}
}
