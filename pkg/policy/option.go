package policy

import (
	"fmt"
	"strings"
	"time"
)

//go:generate go test . -count=1 -run "TestPolicyPage|TestSchemaFile" -update

// option is one key of a mapping of the language: how it is read, and what the JSON Schema and the page about the language
// say of it. All three come from here, so that they can't drift apart.
type option[T any] struct {
	key string
	// about is one sentence for people who write policies.
	about string
	form  form
	read  func(r *reader, f field, into *T)
	// get returns the value of a key that is a number.
	get func(*T) float64
}

// form says what may stand behind a key.
type form struct {
	// name is what the page calls it, e.g. "milliseconds".
	name string
	// schema is its JSON Schema, without the description.
	schema map[string]any
	// def is the default, as it would be written; empty when there is none.
	def string
	// required says that the key may not be left out.
	required bool
}

func (o option[T]) withDefault(def string) option[T] {
	o.form.def = def
	return o
}

func (o option[T]) must() option[T] {
	o.form.required = true
	return o
}

// described is an option without the type that it fills.
type described struct {
	key, about string
	form       form
}

func describe[T any](opts []option[T]) []described {
	out := make([]described, len(opts))
	for i, o := range opts {
		out[i] = described{o.key, o.about, o.form}
	}
	return out
}

// readOptions reads a mapping by its options. what names the mapping in messages, e.g. "an engine".
func readOptions[T any](r *reader, section field, what string, opts []option[T], into *T) {
	for _, f := range r.mapping(section.path, section.value) {
		if !readOption(r, f, opts, into) {
			r.fault(f.keyNode, f.path, "unknown key of "+what+suggest(f.key, keysOf(opts)))
		}
	}
}

// readOption reads one key by its option, if there is one.
func readOption[T any](r *reader, f field, opts []option[T], into *T) bool {
	for i := range opts {
		if opts[i].key == f.key {
			opts[i].read(r, f, into)
			return true
		}
	}
	return false
}

func keysOf[T any](opts []option[T]) []string {
	out := make([]string, len(opts))
	for i, o := range opts {
		out[i] = o.key
	}
	return out
}

func textOption[T any](key, about string, at func(*T) *string) option[T] {
	return option[T]{
		key: key, about: about, form: form{name: "text", schema: map[string]any{"type": "string"}},
		read: func(r *reader, f field, into *T) { *at(into) = r.text(f) },
	}
}

// choiceOption is a text out of a closed list.
func choiceOption[T any, S ~string](key, about string, choices []S, at func(*T) *S) option[T] {
	list := make([]string, len(choices))
	for i, c := range choices {
		list[i] = string(c)
	}
	return option[T]{
		key: key, about: about, form: form{name: strings.Join(list, ", "), schema: map[string]any{"enum": list}},
		read: func(r *reader, f field, into *T) { *at(into) = S(r.choice(f, list)) },
	}
}

func truthOption[T any](key, about string, at func(*T) *bool) option[T] {
	return option[T]{
		key: key, about: about, form: form{name: "true or false", schema: map[string]any{"type": "boolean"}},
		read: func(r *reader, f field, into *T) { *at(into) = r.truth(f) },
	}
}

func wordsOption[T any](key, about string, at func(*T) *[]string) option[T] {
	return option[T]{
		key: key, about: about, form: form{name: "a word or a list of words", schema: wordsSchema()},
		read: func(r *reader, f field, into *T) { *at(into) = r.words(f) },
	}
}

func wordsSchema() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "string"},
		map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
	}}
}

// countOption is a whole number within a range.
func countOption[T any, N ~int | ~int64](key, about string, low, high int64, at func(*T) *N) option[T] {
	return option[T]{
		key: key, about: about,
		form: form{
			name:   fmt.Sprintf("a whole number from %d to %d", low, high),
			schema: map[string]any{"type": "integer", "minimum": low, "maximum": high},
		},
		read: func(r *reader, f field, into *T) { *at(into) = N(r.whole(f, low, high)) },
		get:  func(t *T) float64 { return float64(*at(t)) },
	}
}

// numberOption is a number within a range.
func numberOption[T any](key, about string, low, high float64, at func(*T) *float64) option[T] {
	return option[T]{
		key: key, about: about,
		form: form{
			name:   fmt.Sprintf("a number from %g to %g", low, high),
			schema: map[string]any{"type": "number", "minimum": low, "maximum": high},
		},
		read: func(r *reader, f field, into *T) { *at(into) = r.within(f, low, high) },
		get:  func(t *T) float64 { return *at(t) },
	}
}

// sizeOption is a size in bytes such as `50 GB`; `unlimited` is 0.
func sizeOption[T any](key, about string, at func(*T) *int64) option[T] {
	return option[T]{
		key: key, about: about,
		form: form{name: "a size such as `50 GB`, or `unlimited`", schema: sizeSchema("unlimited")},
		read: func(r *reader, f field, into *T) { *at(into) = r.size(f) },
		get:  func(t *T) float64 { return float64(*at(t)) },
	}
}

// sizeSchema is a number above 0, a size, or one of some words.
func sizeSchema(words ...string) map[string]any {
	forms := []any{
		map[string]any{"type": "number", "exclusiveMinimum": 0},
		map[string]any{"type": "string", "pattern": sizePattern},
	}
	if len(words) > 0 {
		forms = append(forms, map[string]any{"enum": words})
	}
	return map[string]any{"anyOf": forms}
}

// spanOption is a duration: the key says the unit, milliseconds with _ms and seconds with _seconds at its end.
func spanOption[T any](key, about string, at func(*T) *time.Duration) option[T] {
	unit := "seconds"
	if strings.HasSuffix(key, "_ms") {
		unit = "milliseconds"
	}
	return option[T]{
		key: key, about: about,
		form: form{name: unit, schema: map[string]any{"type": "number", "minimum": 0, "maximum": maxSpan / float64(unitOf(key))}},
		read: func(r *reader, f field, into *T) { *at(into) = r.span(f) },
	}
}

// leastSpan is the shortest duration where none at all would be nonsense.
const leastSpan = time.Millisecond

// positiveSpanOption is a duration that may not be zero.
func positiveSpanOption[T any](key, about string, at func(*T) *time.Duration) option[T] {
	o := spanOption(key, about, at)
	o.form.schema["minimum"] = float64(leastSpan) / float64(unitOf(key))
	o.read = func(r *reader, f field, into *T) {
		before := len(r.faults)
		if *at(into) = r.span(f); *at(into) < leastSpan && len(r.faults) == before {
			r.fault(f.value, f.path, fmt.Sprintf("must be at least %s", leastSpan))
		}
	}
	return o
}
