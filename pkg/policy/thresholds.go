package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Threshold is a number that a policy gives a name and a range, so that it can be tuned in one place, within reason.
type Threshold struct {
	Value    float64
	Min, Max float64
	// Bytes says that it was written as a size.
	Bytes bool
	About string
	Line  int
}

// namedNumber reads one number of a threshold of the policy's own.
type namedNumber struct {
	Threshold
	given map[string]bool
}

func amountOption(key, about string, at func(*namedNumber) *float64) option[namedNumber] {
	return option[namedNumber]{
		key: key, about: about, form: form{name: "a number, or a size such as `50 GB`", schema: amountSchema()},
		read: func(r *reader, f field, into *namedNumber) {
			into.given[key] = true
			if _, ok := f.value.(*ast.StringNode); ok {
				into.Bytes = true
			}
			*at(into) = r.number(f)
		},
	}
}

// amountSchema is any number or a size.
func amountSchema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "number"}, map[string]any{"type": "string", "pattern": sizePattern}}}
}

var namedOptions = []option[namedNumber]{
	amountOption("value", "The number that rules use.", func(n *namedNumber) *float64 { return &n.Value }).must(),
	amountOption("min", "The least that it may be.", func(n *namedNumber) *float64 { return &n.Min }).must(),
	amountOption("max", "The most that it may be.", func(n *namedNumber) *float64 { return &n.Max }).must(),
	textOption("about", "What it is for.", func(n *namedNumber) *string { return &n.About }),
}

const namePattern = `^[a-z][a-z0-9_]*$`

var nameOf = regexp.MustCompile(namePattern)

func isBuiltIn(key string) bool {
	return slices.ContainsFunc(thresholdOptions, func(o option[Thresholds]) bool { return o.key == key })
}

// thresholds reads the section: the built-in thresholds, and mappings with a value and a range for those of the policy's own.
func (r *reader) thresholds(section field, into *Thresholds) {
	for _, f := range r.mapping(section.path, section.value) {
		switch {
		case isBuiltIn(f.key):
			readOption(r, f, thresholdOptions, into)
		case !isMapping(f.value):
			r.fault(f.keyNode, f.path, "unknown threshold"+suggest(f.key, keysOf(thresholdOptions))+
				"; a threshold of your own is a mapping: {value: 50 GB, min: 1 GB, max: 1 TB}")
		case !nameOf.MatchString(f.key):
			r.fault(f.keyNode, f.path, "a threshold's name must be lower-case letters, digits and _")
		default:
			n := namedNumber{Threshold: Threshold{Line: lineOf(f.keyNode)}, given: map[string]bool{}}
			before := len(r.faults)
			readOptions(r, f, "a threshold", namedOptions, &n)
			for _, key := range []string{"value", "min", "max"} {
				if !n.given[key] {
					r.fault(f.keyNode, f.path, fmt.Sprintf("`%s` is missing: a threshold of your own has a value, a min and a max", key))
				}
			}
			if len(r.faults) == before {
				r.inRange(f, n.Threshold)
			}
			if into.Named == nil {
				into.Named = map[string]Threshold{}
			}
			into.Named[f.key] = n.Threshold
		}
	}
}

func (r *reader) inRange(f field, t Threshold) {
	if t.Min > t.Max {
		r.fault(f.value, f.path, fmt.Sprintf("its min %s is above its max %s", t.format(t.Min), t.format(t.Max)))
	} else if t.Value < t.Min || t.Value > t.Max {
		r.fault(f.value, f.path, fmt.Sprintf("%s is outside the range %s to %s", t.format(t.Value), t.format(t.Min), t.format(t.Max)))
	}
}

// override reads a tenant's thresholds: the built-in ones as ever, and plain numbers for those of the policy's own.
func (r *reader) override(section field, into *Thresholds) {
	for _, f := range r.mapping(section.path, section.value) {
		own, ok := into.Named[f.key]
		switch {
		case isBuiltIn(f.key):
			readOption(r, f, thresholdOptions, into)
		case !ok:
			r.fault(f.keyNode, f.path, "unknown threshold"+suggest(f.key, append(keysOf(thresholdOptions), slices.Sorted(maps.Keys(into.Named))...))+
				"; a tenant can only override what `thresholds` declares")
		default:
			before := len(r.faults)
			own.Value = r.number(f)
			if len(r.faults) == before {
				r.inRange(f, own)
			}
			into.Named = maps.Clone(into.Named)
			into.Named[f.key] = own
		}
	}
}

// Get returns a threshold by its name, built-in or the policy's own.
func (t *Thresholds) Get(name string) (float64, bool) {
	for _, o := range thresholdOptions {
		if o.key == name {
			return o.get(t), true
		}
	}
	own, ok := t.Named[name]
	return own.Value, ok
}

// Names lists all thresholds, the built-in ones first.
func (t *Thresholds) Names() []string {
	return append(keysOf(thresholdOptions), slices.Sorted(maps.Keys(t.Named))...)
}

// Format writes a threshold as the policy would.
func (t *Thresholds) Format(name string) string {
	if own, ok := t.Named[name]; ok {
		return own.format(own.Value)
	}
	n, _ := t.Get(name)
	return Threshold{Bytes: strings.HasSuffix(name, "_bytes")}.format(n)
}

func (t Threshold) format(n float64) string {
	if t.Bytes {
		return formatSize(n)
	}
	return formatNumber(n)
}
