package policy

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Limits of a policy's text. The parser recurses, so what would exhaust its stack has to be refused before it runs.
const (
	maxText    = 4 << 20
	maxDepth   = 200
	maxLine    = 64 << 10
	maxSize    = 200_000 // nodes, with all aliases written out
	indentStep = "- "
)

// checkText refuses what is too large to be a policy, or nests too deep to be parsed. It returns "" when there is nothing.
func checkText(text []byte) string {
	if len(text) > maxText {
		return fmt.Sprintf("the policy has %d bytes, more than %d", len(text), maxText)
	}
	depth := 0
	for i, b := range text {
		switch b {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case 0:
			return fmt.Sprintf("byte %d is zero: this is no text", i)
		}
		if depth > maxDepth {
			return fmt.Sprintf("it nests deeper than %d", maxDepth)
		}
	}
	for line := range bytes.Lines(text) {
		if len(line) > maxLine {
			return fmt.Sprintf("a line is longer than %d bytes", maxLine)
		}
		if bytes.Count(line, []byte(indentStep)) > maxDepth && len(bytes.Trim(line, "-? \t\r\n")) < len(line)/2 {
			return fmt.Sprintf("it nests deeper than %d", maxDepth)
		}
	}
	return ""
}

// resolve follows anchors, aliases and tags to what they stand for.
func (r *reader) resolve(n ast.Node) ast.Node {
	for {
		switch v := n.(type) {
		case *ast.AnchorNode:
			n = v.Value
		case *ast.AliasNode:
			n = r.anchors[aliasName(v.Value)]
		case *ast.TagNode:
			n = v.Value
		default:
			return n
		}
	}
}

func aliasName(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return strings.TrimSpace(n.GetToken().Value)
}

// aliases checks the anchors and aliases of the tree and remembers what each anchor stands for. An alias stands for the whole
// of what its anchor marks, so a few lines can grow without bound: they are counted before they are followed.
type aliases struct {
	r      *reader
	sizes  map[string]int
	inside map[string]bool
}

// collect returns the size of a node with its aliases written out.
func (a *aliases) collect(n ast.Node) int {
	size := 1
	add := func(n ast.Node) {
		if n != nil {
			size = min(size+a.collect(n), maxSize+1)
		}
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		for _, m := range v.Values {
			add(m)
		}
	case *ast.MappingValueNode:
		add(v.Key)
		add(v.Value)
	case *ast.MappingKeyNode:
		add(v.Value)
	case *ast.SequenceNode:
		for _, m := range v.Values {
			add(m)
		}
	case *ast.TagNode:
		a.r.fault(v, "$", fmt.Sprintf("YAML tags such as %s are not supported: leave it out", v.Start.Value))
		add(v.Value)
	case *ast.AnchorNode:
		size = a.anchor(v)
	case *ast.AliasNode:
		size = a.alias(v)
	}
	return size
}

func (a *aliases) anchor(v *ast.AnchorNode) int {
	name := aliasName(v.Name)
	if _, ok := a.sizes[name]; ok || a.inside[name] {
		a.r.fault(v, "$", fmt.Sprintf("the anchor &%s stands here twice", name))
	}
	a.inside[name] = true
	size := 1
	if v.Value != nil {
		size += a.collect(v.Value)
	}
	delete(a.inside, name)
	a.sizes[name], a.r.anchors[name] = size, v.Value
	return size
}

func (a *aliases) alias(v *ast.AliasNode) int {
	name := aliasName(v.Value)
	size, ok := a.sizes[name]
	switch {
	case a.inside[name]:
		a.r.fault(v, "$", fmt.Sprintf("*%s stands inside of what it stands for", name))
	case !ok:
		a.r.fault(v, "$", fmt.Sprintf("*%s refers to no anchor above it: write &%s where it is first said", name, name))
	}
	return size
}

// collectAliases reports whether the tree's aliases can be followed.
func (r *reader) collectAliases(root ast.Node) bool {
	a := aliases{r: r, sizes: map[string]int{}, inside: map[string]bool{}}
	if a.collect(root) > maxSize {
		r.fault(root, "$", fmt.Sprintf("with its aliases written out it has more than %d values", maxSize))
		return false
	}
	return len(r.faults) == 0
}
