// Package contrast says what two routing policies treat differently: where their texts differ, and which made-up requests, close
// to the thresholds of either, they decide differently.
//
// It is core. Comparing them over recorded decisions is pkg/replay's, which also counts and tells what is found here.
package contrast

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/pointsman/pointsman/pkg/policy"
)

// Kind is how a part of the text differs.
type Kind string

// The kinds.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
	// Moved is a rule that stands elsewhere among the others: the first that matches decides.
	Moved Kind = "moved"
)

// Change is one difference of two policy texts. Comments and the order of keys are no difference; the order of rules is one.
type Change struct {
	Kind Kind `json:"kind"`
	// Path leads to it: thresholds.heavy_bytes, or rules[transformations].when, by the name of an item that has one.
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// String tells the change in a line.
func (c Change) String() string {
	switch c.Kind {
	case Added:
		return fmt.Sprintf("+ %s: %s", c.Path, c.After)
	case Removed:
		return fmt.Sprintf("- %s: %s", c.Path, c.Before)
	case Moved:
		return fmt.Sprintf("~ %s: %s, is %s now", c.Path, c.Before, c.After)
	default:
		return fmt.Sprintf("~ %s: %s -> %s", c.Path, c.Before, c.After)
	}
}

// Structure lists the differences of two policies' texts.
func Structure(a, b *policy.Policy) ([]Change, error) {
	x, err := parse(a)
	if err != nil {
		return nil, err
	}
	y, err := parse(b)
	if err != nil {
		return nil, err
	}
	var d differ
	d.walk("", x, y)
	return d.changes, nil
}

func parse(p *policy.Policy) (any, error) {
	var v any
	if err := yaml.UnmarshalWithOptions([]byte(p.Source), &v, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("reading policy %s: %w", p.Hash, err)
	}
	return v, nil
}

type differ struct{ changes []Change }

func (d *differ) add(kind Kind, path string, before, after any) {
	c := Change{Kind: kind, Path: path}
	if kind != Added {
		c.Before = flow(before)
	}
	if kind != Removed {
		c.After = flow(after)
	}
	d.changes = append(d.changes, c)
}

func (d *differ) walk(path string, a, b any) {
	if m, ok := a.(yaml.MapSlice); ok {
		if n, ok := b.(yaml.MapSlice); ok {
			d.maps(path, m, n)
			return
		}
	}
	if l, ok := a.([]any); ok {
		if k, ok := b.([]any); ok && allNamed(l) && allNamed(k) {
			d.named(path, l, k)
			return
		}
	}
	if flow(sorted(a)) != flow(sorted(b)) {
		d.add(Changed, path, a, b)
	}
}

// sorted is a value with the keys of its mappings in order.
func sorted(v any) any {
	switch v := v.(type) {
	case yaml.MapSlice:
		out := make(yaml.MapSlice, len(v))
		for i, item := range v {
			out[i] = yaml.MapItem{Key: item.Key, Value: sorted(item.Value)}
		}
		slices.SortStableFunc(out, func(a, b yaml.MapItem) int { return strings.Compare(fmt.Sprint(a.Key), fmt.Sprint(b.Key)) })
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = sorted(e)
		}
		return out
	default:
		return v
	}
}

func (d *differ) maps(path string, a, b yaml.MapSlice) {
	for _, item := range a {
		key := fmt.Sprint(item.Key)
		if other, ok := lookup(b, key); ok {
			d.walk(join(path, key), item.Value, other)
		} else {
			d.add(Removed, join(path, key), item.Value, nil)
		}
	}
	for _, item := range b {
		key := fmt.Sprint(item.Key)
		if _, ok := lookup(a, key); !ok {
			d.add(Added, join(path, key), nil, item.Value)
		}
	}
}

// named compares lists of items with names, whose order means something.
func (d *differ) named(path string, a, b []any) {
	at := func(list []any, name string) int {
		return slices.IndexFunc(list, func(v any) bool { return nameOf(v) == name })
	}
	var common []string
	for _, v := range a {
		name := nameOf(v)
		if at(b, name) >= 0 {
			common = append(common, name)
		} else {
			d.add(Removed, item(path, name), without(v), nil)
		}
	}
	// Those of the longest run in the old order stay where they are; the others have moved.
	order := make([]int, len(common))
	for i, name := range common {
		order[i] = at(b, name)
	}
	stays := longestRun(order)
	for i, name := range common {
		x, y := a[at(a, name)], b[at(b, name)]
		if !stays[i] {
			d.changes = append(d.changes, Change{Moved, item(path, name), behind(a, name), behind(b, name)})
		}
		d.walk(item(path, name), without(x), without(y))
	}
	for _, v := range b {
		if name := nameOf(v); at(a, name) < 0 {
			d.changes = append(d.changes, Change{Kind: Added, Path: item(path, name), After: flow(without(v)) + ", " + behind(b, name)})
		}
	}
}

// behind says where an item stands.
func behind(list []any, name string) string {
	i := slices.IndexFunc(list, func(v any) bool { return nameOf(v) == name })
	if i <= 0 {
		return "first"
	}
	return fmt.Sprintf("behind %q", nameOf(list[i-1]))
}

// longestRun marks a longest increasing subsequence.
func longestRun(order []int) []bool {
	best, from := make([]int, len(order)), make([]int, len(order))
	last := -1
	for i := range order {
		best[i], from[i] = 1, -1
		for j := range i {
			if order[j] < order[i] && best[j]+1 > best[i] {
				best[i], from[i] = best[j]+1, j
			}
		}
		if last < 0 || best[i] > best[last] {
			last = i
		}
	}
	in := make([]bool, len(order))
	for ; last >= 0; last = from[last] {
		in[last] = true
	}
	return in
}

func lookup(m yaml.MapSlice, key string) (any, bool) {
	for _, item := range m {
		if fmt.Sprint(item.Key) == key {
			return item.Value, true
		}
	}
	return nil, false
}

func nameOf(v any) string {
	m, ok := v.(yaml.MapSlice)
	if !ok {
		return ""
	}
	name, _ := lookup(m, "name")
	s, _ := name.(string)
	return s
}

// without is an item without its name, which its path says.
func without(v any) any {
	m, ok := v.(yaml.MapSlice)
	if !ok {
		return v
	}
	out := make(yaml.MapSlice, 0, len(m))
	for _, item := range m {
		if fmt.Sprint(item.Key) != "name" {
			out = append(out, item)
		}
	}
	return out
}

// allNamed says that every item of a list has a name, each another.
func allNamed(list []any) bool {
	seen := map[string]bool{}
	for _, v := range list {
		name := nameOf(v)
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func item(path, name string) string { return path + "[" + name + "]" }

// flow writes a value in a line.
func flow(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case yaml.MapSlice:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = fmt.Sprint(item.Key) + ": " + flow(item.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = flow(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}
