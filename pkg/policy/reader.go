package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// reader walks the YAML tree and collects every fault instead of stopping at the first.
type reader struct {
	file     string
	faults   FaultList
	warnings FaultList
	anchors  map[string]ast.Node

	// What rules may refer to, known before they are read.
	clusters []string
	names    *vocabulary
	numbers  *Thresholds
	// usedThresholds are those that a rule or a latch refers to; tagTests are the tests of tags.
	usedThresholds map[string]bool
	tagTests       []field
	expressions    *expressions
	// queues is the `queues` key of the engine that is being read.
	queues *field
	// tenants is budgets.tenants, which is read after budgets.tenant.
	tenants *field
}

// field is one key of a mapping with its value.
type field struct {
	path    string
	key     string
	keyNode ast.Node
	value   ast.Node
}

type place struct{ line, column int }

func placeOf(n ast.Node) place {
	// The token of a mapping or of a pair is its colon; people look for its first key.
	switch m := n.(type) {
	case *ast.MappingNode:
		if len(m.Values) > 0 {
			return placeOf(m.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return placeOf(m.Key)
	}
	if n == nil || n.GetToken() == nil {
		return place{1, 1}
	}
	return place{n.GetToken().Position.Line, n.GetToken().Position.Column}
}

func lineOf(n ast.Node) int   { return placeOf(n).line }
func columnOf(n ast.Node) int { return placeOf(n).column }

func (r *reader) fault(n ast.Node, path, message string) { r.faultAt(placeOf(n), path, message) }

func (r *reader) faultAt(at place, path, message string) {
	r.faults = append(r.faults, Fault{File: r.file, Line: at.line, Column: at.column, Path: path, Message: message})
}

func (r *reader) warnAt(at place, path, message string) {
	r.warnings = append(r.warnings, Fault{File: r.file, Line: at.line, Column: at.column, Path: path, Message: message})
}

func isMapping(n ast.Node) bool {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	default:
		return false
	}
}

func isSequence(n ast.Node) bool {
	_, ok := n.(*ast.SequenceNode)
	return ok
}

// mapping reads the keys of a mapping, with those that it merges in (<<) behind its own.
func (r *reader) mapping(path string, n ast.Node) []field {
	n = r.resolve(n)
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	case *ast.NullNode, nil:
		return nil
	default:
		r.fault(n, path, "must be a mapping of keys to values")
		return nil
	}
	out := make([]field, 0, len(values))
	var merged []field
	for _, v := range values {
		key := keyText(v.Key)
		p := path + "." + key
		if path == "$" {
			p = key
		}
		if _, ok := v.Key.(*ast.MergeKeyNode); ok {
			merged = append(merged, r.merge(path, v.Value)...)
			continue
		}
		if slices.ContainsFunc(out, func(f field) bool { return f.key == key }) {
			r.fault(v.Key, p, "the key stands here twice")
			continue
		}
		out = append(out, field{path: p, key: key, keyNode: v.Key, value: r.resolve(v.Value)})
	}
	for _, m := range merged {
		if !slices.ContainsFunc(out, func(f field) bool { return f.key == m.key }) {
			out = append(out, m)
		}
	}
	return out
}

// merge reads what stands behind a merge key: a mapping, or a list of them of which the first that has a key counts.
func (r *reader) merge(path string, n ast.Node) []field {
	n = r.resolve(n)
	if isMapping(n) {
		return r.mapping(path, n)
	}
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.fault(n, path, "<< merges a mapping, or a list of mappings")
		return nil
	}
	var out []field
	for _, v := range s.Values {
		if v = r.resolve(v); !isMapping(v) {
			r.fault(v, path, "<< merges a mapping, or a list of mappings")
			continue
		}
		out = append(out, r.mapping(path, v)...)
	}
	return out
}

// mappingQuietly reads a mapping a second time, when its faults are listed already.
func (r *reader) mappingQuietly(f field) []field {
	before := len(r.faults)
	out := r.mapping(f.path, f.value)
	r.faults = r.faults[:before]
	return out
}

func keyText(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	return strings.TrimSpace(n.String())
}

func (r *reader) sequence(f field) []field {
	s, ok := f.value.(*ast.SequenceNode)
	if !ok {
		r.fault(f.value, f.path, "must be a list")
		return nil
	}
	out := make([]field, len(s.Values))
	for i, v := range s.Values {
		v = r.resolve(v)
		out[i] = field{path: fmt.Sprintf("%s[%d]", f.path, i), keyNode: v, value: v}
	}
	return out
}

func (r *reader) text(f field) string {
	switch v := f.value.(type) {
	case *ast.StringNode:
		return v.Value
	case *ast.LiteralNode:
		return v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		r.fault(f.value, f.path, "must be a text; put it in quotes")
	default:
		r.fault(f.value, f.path, "must be a text")
	}
	return ""
}

func (r *reader) words(f field) []string {
	if s, ok := f.value.(*ast.StringNode); ok {
		return []string{s.Value}
	}
	var out []string
	for _, item := range r.sequence(f) {
		out = append(out, r.text(item))
	}
	return out
}

// wordsQuietly reads words a second time, when their faults are listed already.
func (r *reader) wordsQuietly(f field) []string {
	before := len(r.faults)
	out := r.words(f)
	r.faults = r.faults[:before]
	return out
}

func (r *reader) truth(f field) bool {
	b, ok := f.value.(*ast.BoolNode)
	if !ok {
		r.fault(f.value, f.path, "must be true or false")
		return false
	}
	return b.Value
}

// number reads a plain number or a size such as `50 GB`.
func (r *reader) number(f field) float64 {
	switch v := f.value.(type) {
	case *ast.IntegerNode:
		switch n := v.Value.(type) {
		case int64:
			return float64(n)
		case uint64:
			return float64(n)
		}
	case *ast.FloatNode:
		return v.Value
	case *ast.StringNode:
		n, err := ParseSize(v.Value)
		if err == nil {
			return float64(n)
		}
		r.fault(f.value, f.path, err.Error())
		return 0
	}
	r.fault(f.value, f.path, "must be a number or a size such as `50 GB`")
	return 0
}

// within reads a number and checks its range.
func (r *reader) within(f field, low, high float64) float64 {
	before := len(r.faults)
	n := r.number(f)
	if (n < low || n > high) && len(r.faults) == before {
		r.fault(f.value, f.path, fmt.Sprintf("%s is outside the range %s to %s", formatNumber(n), formatNumber(low), formatNumber(high)))
	}
	return n
}

// size reads a size; `unlimited` is 0.
func (r *reader) size(f field) int64 {
	if s, ok := f.value.(*ast.StringNode); ok && strings.EqualFold(s.Value, "unlimited") {
		return 0
	}
	before := len(r.faults)
	n := r.number(f)
	if (n < 1 || n >= math.MaxInt64) && len(r.faults) == before {
		r.fault(f.value, f.path, "must be at least 1, or `unlimited`")
		return 0
	}
	return int64(n)
}

// maxSpan is the longest duration that a policy may name.
const maxSpan = float64(366 * 24 * time.Hour)

// unitOf is the unit of a duration: milliseconds when the key ends in _ms, else seconds.
func unitOf(key string) time.Duration {
	if strings.HasSuffix(key, "_ms") {
		return time.Millisecond
	}
	return time.Second
}

// span reads a duration in the unit that its key names.
func (r *reader) span(f field) time.Duration {
	unit := float64(unitOf(f.key))
	return time.Duration(r.within(f, 0, maxSpan/unit) * unit)
}

// whole reads a whole number within a range.
func (r *reader) whole(f field, low, high int64) int64 {
	before := len(r.faults)
	n := r.within(f, float64(low), float64(high))
	if n != math.Trunc(n) && len(r.faults) == before {
		r.fault(f.value, f.path, fmt.Sprintf("must be a whole number, is %s", formatNumber(n)))
	}
	if len(r.faults) > before {
		return 0
	}
	return int64(n)
}

// choice reads one of some words.
func (r *reader) choice(f field, words []string) string {
	before := len(r.faults)
	s := r.text(f)
	if !slices.Contains(words, s) && len(r.faults) == before {
		r.fault(f.value, f.path, fmt.Sprintf("%q is none of %s%s", s, strings.Join(words, ", "), slip(s, words)))
	}
	return s
}
