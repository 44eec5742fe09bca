package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
)

// EnvPrefix is what the variables of a service begin with.
func EnvPrefix(service string) string {
	return "POINTSMAN_" + joinEnv("", service) + "_"
}

// fileSuffix marks a variable that names a file with a secret in it, as container platforms mount them.
const fileSuffix = "_FILE"

// configEnv is the one variable with the prefix that is no key: the default of the flag -config.
const configEnv = "CONFIG"

// environment merges the variables of a service, and returns a warning for each that has its prefix and names no
// key. That is no error, because Kubernetes adds variables of this form for every Service in a namespace.
func (l *layers) environment(service string, environ []string) []string {
	if len(environ) == 0 {
		return nil
	}
	prefix := EnvPrefix(service)
	fields := l.byEnv()
	var warnings []string
	given := map[string]string{} // key, to find one that is set both ways
	provider := env.Provider("", env.Opt{
		Prefix:      prefix,
		EnvironFunc: func() []string { return slices.Sorted(slices.Values(environ)) },
		TransformFunc: func(name, value string) (string, any) {
			f, fromFile, ok := findEnv(fields, strings.TrimPrefix(name, prefix))
			if !ok {
				if name != prefix+configEnv {
					warnings = append(warnings, fmt.Sprintf("environment %s: no such key", name))
				}
				return "", nil
			}
			l.variable(name, value, f, fromFile, given)
			return "", nil
		},
	})
	if _, err := provider.Read(); err != nil {
		l.errs = append(l.errs, fmt.Errorf("reading the environment: %w", err))
	}
	return warnings
}

func (l *layers) variable(name, value string, f Field, fromFile bool, given map[string]string) {
	source := "environment " + name
	if other, twice := given[f.Path]; twice {
		l.problem(source, f.Path, fmt.Errorf("is set by %s too: use one of them", other))
		return
	}
	given[f.Path] = name
	if fromFile {
		data, err := os.ReadFile(value)
		if err != nil {
			l.problem(source, f.Path, err)
			return
		}
		value = strings.TrimRight(string(data), "\r\n")
	}
	l.assign(source, f.Path, value)
}

// byEnv indexes the keys by variable, and panics on two keys with the same one: a mistake in the program.
func (l *layers) byEnv() map[string]Field {
	fields := map[string]Field{}
	for _, f := range Describe(reflect.New(l.t).Interface()) {
		if f.Env == "" {
			continue
		}
		if other, taken := fields[f.Env]; taken || f.Env == configEnv {
			panic(fmt.Sprintf("config: %s and %s have the same variable %s", f.Path, other.Path, f.Env))
		}
		fields[f.Env] = f
	}
	return fields
}

func findEnv(fields map[string]Field, name string) (f Field, fromFile, ok bool) {
	if f, ok = fields[name]; ok {
		return f, false, true
	}
	if base, cut := strings.CutSuffix(name, fileSuffix); cut {
		f, ok = fields[base]
		return f, true, ok && f.Secret
	}
	return Field{}, false, false
}

// set merges "key=value" pairs, in order.
func (l *layers) set(pairs []string) {
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			l.errs = append(l.errs, fmt.Errorf("flag -set %s: write it as key=value", pair))
			continue
		}
		l.assign("flag -set "+key, key, value)
	}
}

// assign merges one text for the key at a dotted path.
func (l *layers) assign(source, path, text string) {
	keys := strings.Split(path, ".")
	t := l.t
	for i, key := range keys {
		t = deref(t)
		if isScalar(t) || (t.Kind() != reflect.Struct && t.Kind() != reflect.Map) {
			l.problem(source, path, fmt.Errorf("%s has no keys in it", strings.Join(keys[:i], ".")))
			return
		}
		child, known := childType(t, key)
		if !known {
			l.problem(source, path, unknownKey(t, key))
			return
		}
		t = child
	}
	r := newReader(source, false)
	value := r.text(text, t, path)
	if value == nil && t.Kind() != reflect.Pointer {
		l.take(r, nil)
		return
	}
	for _, key := range slices.Backward(keys) {
		value = map[string]any{key: value}
	}
	l.take(r, value)
}

// text reads what a variable or flag says: a single value as it stands, a list of them with commas between or as
// YAML, everything else as YAML.
func (r *reader) text(text string, t reflect.Type, path string) any {
	elem := deref(t)
	if isScalar(elem) {
		r.origins[path] = Origin{Source: r.source}
		if _, err := decodeScalar(elem, text); err != nil {
			r.fail(nil, path, err)
			return nil
		}
		return text
	}
	if elem.Kind() == reflect.Slice && isScalar(deref(elem.Elem())) && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		return r.commas(text, deref(elem.Elem()), path)
	}
	return r.document([]byte(text), t, path)
}

func (r *reader) commas(text string, elem reflect.Type, path string) any {
	r.origins[path] = Origin{Source: r.source}
	out := []any{}
	if strings.TrimSpace(text) == "" {
		return out
	}
	for i, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			r.fail(nil, path, errors.New("has an empty element"))
			continue
		}
		if _, err := decodeScalar(elem, part); err != nil {
			r.fail(nil, fmt.Sprintf("%s[%d]", path, i), err)
		}
		out = append(out, part)
	}
	return out
}

func (l *layers) problem(source, path string, err error) {
	l.errs = append(l.errs, &Problem{Origin: Origin{Source: source}, Path: path, Err: err})
}
