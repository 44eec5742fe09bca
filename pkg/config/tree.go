package config

import (
	"fmt"
	"reflect"
)

// toTree writes a value as the tree that a YAML file would give: maps, lists and texts. What is nil is left out.
func toTree(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		if v.Kind() == reflect.Interface {
			return v.Interface()
		}
		return toTree(v.Elem())
	}
	switch {
	case isScalar(v.Type()):
		return encodeScalar(v)
	case v.Kind() == reflect.Slice:
		if v.IsNil() {
			return nil
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = toTree(v.Index(i))
		}
		return out
	case v.Kind() == reflect.Map:
		if v.IsNil() {
			return nil
		}
		out := map[string]any{}
		for _, key := range v.MapKeys() {
			out[key.String()] = toTree(v.MapIndex(key))
		}
		return out
	default:
		out := map[string]any{}
		for _, m := range members(v.Type()) {
			if child := toTree(v.FieldByIndex(m.index)); child != nil {
				out[m.name] = child
			}
		}
		return out
	}
}

// mergeTree lays one tree over another: maps merge, everything else is replaced.
func mergeTree(under, over map[string]any) {
	for key, v := range over {
		above, isMap := v.(map[string]any)
		below, wasMap := under[key].(map[string]any)
		if isMap && wasMap {
			mergeTree(below, above)
			continue
		}
		under[key] = v
	}
}

// fillElements puts their defaults under the structs in lists and maps. Those of the program's own default keep what
// they have: they are in the tree as a whole already.
func fillElements(tree any, t reflect.Type) {
	t = deref(t)
	switch node := tree.(type) {
	case []any:
		for i, v := range node {
			node[i] = fillElement(v, deref(t.Elem()))
		}
	case map[string]any:
		if t.Kind() == reflect.Map {
			for key, v := range node {
				node[key] = fillElement(v, deref(t.Elem()))
			}
			return
		}
		if t.Kind() != reflect.Struct {
			return // of a free-form value
		}
		for _, m := range members(t) {
			if child, ok := node[m.name]; ok && deref(m.typ).Kind() != reflect.Interface && !isScalar(deref(m.typ)) {
				fillElements(child, m.typ)
			}
		}
	}
}

func fillElement(v any, t reflect.Type) any {
	if t.Kind() == reflect.Struct && !isScalar(t) {
		defaults, ok := toTree(newElement(t)).(map[string]any)
		if given, isMap := v.(map[string]any); ok && isMap {
			mergeTree(defaults, given)
			v = defaults
		}
	}
	if t.Kind() != reflect.Interface && !isScalar(t) {
		fillElements(v, t)
	}
	return v
}

// decodeHook turns the texts of a tree into what the fields hold.
func decodeHook(from, to reflect.Value) (any, error) {
	t := deref(to.Type())
	text, ok := reflect.TypeAssert[string](from)
	if !ok || !isScalar(t) {
		return from.Interface(), nil
	}
	v, err := decodeScalar(t, text)
	if err != nil {
		return nil, fmt.Errorf("decoding %q: %w", text, err)
	}
	return v.Interface(), nil
}
