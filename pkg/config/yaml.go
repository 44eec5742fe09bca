package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// reader turns YAML into the tree that the layers are merged from: maps, lists, and texts that are known to decode
// into the type they are for. It goes on after a mistake, so that one run shows them all.
type reader struct {
	source  string // of problems and origins: a file, a variable, a flag
	inFile  bool   // positions mean something only there
	anchors map[string]ast.Node
	origins map[string]Origin
	errs    []error
}

func newReader(source string, inFile bool) *reader {
	return &reader{source: source, inFile: inFile, anchors: map[string]ast.Node{}, origins: map[string]Origin{}}
}

// document reads a whole text as a value of the type at the path. An empty one is nil: nothing was said.
func (r *reader) document(data []byte, t reflect.Type, path string) any {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		r.syntax(err)
		return nil
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			r.fail(doc.Body, path, errors.New("a second document: a configuration is one"))
			return nil
		}
		body = doc.Body
	}
	if body == nil || body.Type() == ast.CommentType || body.Type() == ast.CommentGroupType {
		return nil
	}
	return r.value(body, t, path)
}

func (r *reader) value(node ast.Node, t reflect.Type, path string) any {
	node = r.resolve(node, path)
	if node == nil {
		return nil
	}
	pointer := t.Kind() == reflect.Pointer
	t = deref(t)
	if _, null := node.(*ast.NullNode); null {
		if isScalar(t) && !pointer {
			r.fail(node, path, fmt.Errorf("has no value: write a %s, or leave the key out for the default", typeName(t)))
		}
		return nil
	}
	switch {
	case isScalar(t):
		return r.scalar(node, t, path)
	case t.Kind() == reflect.Interface:
		return r.anything(node, path)
	case t.Kind() == reflect.Slice:
		return r.list(node, t, path)
	default:
		return r.mapping(node, t, path)
	}
}

func (r *reader) scalar(node ast.Node, t reflect.Type, path string) any {
	text, ok := scalarText(node)
	if !ok {
		r.fail(node, path, fmt.Errorf("must be a %s, is a %s", typeName(t), kindOf(node)))
		return nil
	}
	if _, err := decodeScalar(t, text); err != nil {
		r.fail(node, path, err)
		return nil
	}
	r.origin(node, path)
	return text
}

func (r *reader) anything(node ast.Node, path string) any {
	var v any
	if err := yaml.NodeToValue(node, &v); err != nil {
		if positioned, ok := errors.AsType[yaml.Error](err); ok {
			err = errors.New(positioned.GetMessage()) // its text is a drawing of several lines
		}
		r.fail(node, path, err)
		return nil
	}
	r.origin(node, path)
	return v
}

func (r *reader) list(node ast.Node, t reflect.Type, path string) any {
	sequence, ok := node.(*ast.SequenceNode)
	if !ok {
		r.fail(node, path, fmt.Errorf("must be a list, is a %s", kindOf(node)))
		return nil
	}
	r.origin(node, path)
	out := make([]any, 0, len(sequence.Values))
	for i, v := range sequence.Values {
		out = append(out, r.value(v, t.Elem(), fmt.Sprintf("%s[%d]", path, i)))
	}
	return out
}

// mapping reads a section (a struct) or a map.
func (r *reader) mapping(node ast.Node, t reflect.Type, path string) any {
	pairs, ok := mappingPairs(node)
	if !ok {
		r.fail(node, path, fmt.Errorf("must be a %s, is a %s", typeName(t), kindOf(node)))
		return nil
	}
	out := map[string]any{}
	for _, pair := range pairs { // merged keys first: what is written here wins
		if pair.Key.IsMergeKey() {
			if merged, ok := r.value(pair.Value, t, path).(map[string]any); ok {
				mergeTree(out, merged)
			}
		}
	}
	for _, pair := range pairs {
		if pair.Key.IsMergeKey() {
			continue
		}
		key, _ := scalarText(pair.Key)
		child, known := childType(t, key)
		if !known {
			r.fail(pair.Key, join(path, key), unknownKey(t, key))
			continue
		}
		r.origin(pair.Key, join(path, key))
		if v := r.value(pair.Value, child, join(path, key)); v != nil || child.Kind() == reflect.Pointer {
			out[key] = v
		}
	}
	return out
}

// resolve looks through anchors, aliases and tags.
func (r *reader) resolve(node ast.Node, path string) ast.Node {
	for {
		switch n := node.(type) {
		case *ast.AnchorNode:
			r.anchors[n.Name.GetToken().Value] = n.Value
			node = n.Value
		case *ast.AliasNode:
			name := n.Value.GetToken().Value
			target, ok := r.anchors[name]
			if !ok {
				r.fail(node, path, fmt.Errorf("no anchor &%s before this", name))
				return nil
			}
			node = target
		case *ast.TagNode:
			node = n.Value
		default:
			return node
		}
	}
}

func (r *reader) origin(node ast.Node, path string) {
	o := Origin{Source: r.source}
	if r.inFile {
		o.Line, o.Column = position(node)
	}
	r.origins[path] = o
}

func (r *reader) fail(node ast.Node, path string, err error) {
	o := Origin{Source: r.source}
	if r.inFile && node != nil {
		o.Line, o.Column = position(node)
	}
	r.errs = append(r.errs, &Problem{Origin: o, Path: path, Err: err})
}

func (r *reader) syntax(err error) {
	p := &Problem{Origin: Origin{Source: r.source}, Err: err}
	if positioned, ok := errors.AsType[yaml.Error](err); ok {
		p.Err = errors.New(positioned.GetMessage())
		if r.inFile {
			p.Origin.Line, p.Origin.Column = tokenPosition(positioned.GetToken())
		}
	}
	r.errs = append(r.errs, p)
}

// position is where a node begins. The token of a map is its first colon, which nobody looks for.
func position(node ast.Node) (line, column int) {
	if pairs, ok := mappingPairs(node); ok && len(pairs) > 0 {
		return position(pairs[0].Key)
	}
	return tokenPosition(node.GetToken())
}

func tokenPosition(t *token.Token) (line, column int) {
	if t == nil || t.Position == nil {
		return 0, 0
	}
	return t.Position.Line, t.Position.Column
}

func scalarText(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode, *ast.NullNode:
		return n.GetToken().Value, true // as written: 1.10 stays 1.10
	case *ast.MappingKeyNode:
		return scalarText(n.Value)
	default:
		return "", false
	}
}

func mappingPairs(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	default:
		return nil, false
	}
}

func kindOf(node ast.Node) string {
	switch node.(type) {
	case *ast.SequenceNode:
		return "list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "map"
	default:
		return "single value"
	}
}

// childType is the type of a key in a section or map.
func childType(t reflect.Type, key string) (reflect.Type, bool) {
	if t.Kind() == reflect.Map {
		return t.Elem(), true
	}
	for _, m := range members(t) {
		if m.name == key {
			return m.typ, true
		}
	}
	return nil, false
}

func unknownKey(t reflect.Type, key string) error {
	var names []string
	for _, m := range members(t) {
		if strings.EqualFold(m.name, key) || distance(strings.ToLower(m.name), strings.ToLower(key)) <= 2 {
			return fmt.Errorf("unknown key; did you mean %q?", m.name)
		}
		names = append(names, m.name)
	}
	return fmt.Errorf("unknown key; known are %s", strings.Join(names, ", "))
}

// distance is how many letters have to be changed, added or dropped between two words (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
