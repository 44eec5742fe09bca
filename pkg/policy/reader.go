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
	file   string
	faults FaultList
	// queues are those of the engine being read: they begin with what the engine says, wherever they stand in it.
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

func (r *reader) fault(n ast.Node, path, message string) {
	at := &place{line: 1, column: 1}
	if n != nil && n.GetToken() != nil {
		at.line, at.column = n.GetToken().Position.Line, n.GetToken().Position.Column
	}
	r.faultAt(at, path, message)
}

func (r *reader) faultAt(at *place, path, message string) {
	r.faults = append(r.faults, Fault{File: r.file, Line: at.line, Column: at.column, Path: path, Message: message})
}

func (r *reader) mapping(path string, n ast.Node) []field {
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
	var out []field
	for _, v := range values {
		key := v.Key.String()
		p := path + "." + key
		if path == "$" {
			p = key
		}
		if slices.ContainsFunc(out, func(f field) bool { return f.key == key }) {
			r.fault(v.Key, p, "the key stands here twice")
		}
		out = append(out, field{path: p, key: key, keyNode: v.Key, value: v.Value})
	}
	return out
}

func (r *reader) sequence(f field) []field {
	s, ok := f.value.(*ast.SequenceNode)
	if !ok {
		r.fault(f.value, f.path, "must be a list")
		return nil
	}
	out := make([]field, len(s.Values))
	for i, v := range s.Values {
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
	default:
		r.fault(f.value, f.path, "must be a text")
		return ""
	}
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
		n, err := parseSize(v.Value)
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
	n := r.number(f)
	if n < low || n > high {
		r.fault(f.value, f.path, fmt.Sprintf("%g is outside the range %g to %g", n, low, high))
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
	if n <= 0 && len(r.faults) == before {
		r.fault(f.value, f.path, "must be above 0, or `unlimited`")
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
	n := r.within(f, float64(low), float64(high))
	if n != math.Trunc(n) {
		r.fault(f.value, f.path, fmt.Sprintf("must be a whole number, is %g", n))
	}
	return int64(n)
}

// choice reads one of some words.
func (r *reader) choice(f field, words []string) string {
	s := r.text(f)
	if !slices.Contains(words, s) {
		r.fault(f.value, f.path, fmt.Sprintf("%q is none of %s", s, strings.Join(words, ", ")))
	}
	return s
}
