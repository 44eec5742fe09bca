package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// Field is one key of a configuration, as the reference page shows it.
type Field struct {
	Path    string // dotted; <name> stands for the key of a map, [] for an element of a list
	Env     string // variable that sets it, without the POINTSMAN_<SERVICE>_ in front; empty inside maps and lists
	Type    string // for people: "duration", "list of text"
	Default string // as it would be written; empty when there is none
	Doc     string
	Secret  bool
}

// Defaulter is a struct in a list or map that knows what its fields are when nothing is said of them.
type Defaulter interface{ SetDefaults() }

// Describe lists the keys of a configuration, in the order of its struct. It panics on a struct that is none: that
// is a mistake in the program, and any test that loads the configuration finds it.
func Describe(v any) []Field {
	value := indirect(reflect.ValueOf(v))
	var fields []Field
	describe(value.Type(), value, "", "", &fields)
	return fields
}

func describe(t reflect.Type, v reflect.Value, path, env string, out *[]Field) {
	for _, m := range members(t) {
		child := reflect.Value{}
		if v.IsValid() {
			child = v.FieldByIndex(m.index)
		}
		childEnv := ""
		if path == "" || env != "" {
			childEnv = joinEnv(env, m.name)
		}
		describeMember(m, child, join(path, m.name), childEnv, out)
	}
}

func describeMember(m member, v reflect.Value, path, env string, out *[]Field) {
	t := m.typ
	if v.IsValid() && t.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	t = deref(t)
	if t.Kind() == reflect.Struct && !isScalar(t) {
		describe(t, v, path, env, out)
		return
	}
	f := Field{Path: path, Env: env, Type: typeName(t), Doc: m.doc, Secret: t == secretType}
	if v.IsValid() && !f.Secret {
		f.Default = defaultText(v)
	}
	*out = append(*out, f)
	if t.Kind() != reflect.Slice && t.Kind() != reflect.Map {
		return
	}
	elem := deref(t.Elem())
	if elem.Kind() != reflect.Struct || isScalar(elem) {
		return
	}
	suffix := "[]"
	if t.Kind() == reflect.Map {
		suffix = ".<name>"
	}
	describe(elem, newElement(elem), path+suffix, "", out)
}

// newElement is a list or map element with its defaults.
func newElement(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	if d, ok := reflect.TypeAssert[Defaulter](v); ok {
		d.SetDefaults()
	}
	return v.Elem()
}

func defaultText(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Slice:
		if elem := deref(v.Type().Elem()); v.Len() > 0 && isScalar(elem) {
			texts := make([]string, v.Len())
			for i := range texts {
				texts[i] = encodeScalar(indirect(v.Index(i)))
			}
			return "[" + strings.Join(texts, ", ") + "]"
		}
		return ""
	case reflect.Map, reflect.Interface:
		return ""
	}
	if v.Type() == timeType && v.Interface().(time.Time).IsZero() {
		return ""
	}
	return encodeScalar(v)
}

func typeName(t reflect.Type) string {
	switch {
	case t == durationType:
		return "duration"
	case t == timeType:
		return "time"
	case t == sizeType:
		return "bytes"
	case t == secretType:
		return "secret"
	case reflect.PointerTo(t).Implements(textUnmarshaler):
		return "text"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "text"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list of " + typeName(deref(t.Elem()))
	case reflect.Map:
		return "map of " + typeName(deref(t.Elem()))
	case reflect.Struct:
		return "section"
	case reflect.Interface:
		return "anything"
	default:
		return "integer"
	}
}

// member is a field of a struct that is part of the configuration.
type member struct {
	name  string
	doc   string
	typ   reflect.Type
	index []int
}

func members(t reflect.Type) []member {
	var out []member
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "-" || (!f.IsExported() && name == "") {
			continue
		}
		if name == "" || !f.IsExported() || f.Anonymous {
			panic(fmt.Sprintf("config: field %s.%s needs to be exported, named and tagged yaml:\"name\" (or \"-\")", t, f.Name))
		}
		checkType(t, f)
		out = append(out, member{name: name, doc: f.Tag.Get("doc"), typ: f.Type, index: f.Index})
	}
	return out
}

func checkType(parent reflect.Type, f reflect.StructField) {
	t := deref(f.Type)
	for !isScalar(t) && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
		if t.Kind() == reflect.Map && t.Key().Kind() != reflect.String {
			break
		}
		t = deref(t.Elem())
	}
	if isScalar(t) || t.Kind() == reflect.Struct || t.Kind() == reflect.Interface {
		return
	}
	panic(fmt.Sprintf("config: field %s.%s has type %s, which no configuration can hold", parent, f.Name, f.Type))
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func indirect(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Pointer {
		return v.Elem()
	}
	return v
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// joinEnv appends a key to the name of a variable: poll.maxRecords is POLL_MAX_RECORDS.
func joinEnv(env, name string) string {
	var b strings.Builder
	var previous rune
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(previous) {
			b.WriteByte('_')
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			r = '_'
		}
		b.WriteRune(unicode.ToUpper(r))
		previous = r
	}
	if env == "" {
		return b.String()
	}
	return env + "_" + b.String()
}
