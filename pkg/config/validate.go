package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Validator is a configuration, or a part of one, that knows what it must not be. It joins all it finds, with
// Invalid where it can name the key. The parts in it are asked by themselves: it need not ask them.
type Validator interface{ Validate() error }

// Validate asks a configuration and every part of it, as Load does, for those who build one in code.
func Validate(v any) error {
	value := reflect.ValueOf(v)
	if value.Kind() != reflect.Pointer { // so that Validate may have a pointer receiver
		pointer := reflect.New(value.Type())
		pointer.Elem().Set(value)
		value = pointer
	}
	return validate(value, nil)
}

func validate(v reflect.Value, origins map[string]Origin) error {
	var errs []error
	walk(v, "", func(path string, validator Validator) {
		for _, err := range flatten(validator.Validate()) {
			p := &Problem{Path: path, Err: err}
			if inner, ok := err.(*invalid); ok { //nolint:errorlint // one inside a sentence stays there, with the sentence
				p.Path, p.Err = join(path, inner.path), inner.err
			}
			p.Origin = origins[p.Path]
			errs = append(errs, p)
		}
	})
	return errors.Join(errs...)
}

// walk visits the parts of a configuration from the inside out.
func walk(v reflect.Value, path string, visit func(string, Validator)) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch {
	case isScalar(v.Type()), v.Kind() == reflect.Interface:
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case v.Kind() == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			walk(addressable(v.MapIndex(key)), join(path, key.String()), visit)
		}
	case v.Kind() == reflect.Struct:
		for _, m := range members(v.Type()) {
			walk(v.FieldByIndex(m.index), join(path, m.name), visit)
		}
	}
	if v.CanAddr() {
		if validator, ok := reflect.TypeAssert[Validator](v.Addr()); ok {
			visit(path, validator)
		}
	}
}

// addressable copies the element of a map, which has no address of its own.
func addressable(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Pointer {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}
