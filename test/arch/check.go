package arch

import (
	"fmt"
	"slices"
	"strings"
)

// Violation is an import that the table forbids, with the chain that leads to it.
type Violation struct {
	Chain []string // import paths, from a program or the outermost package to what is forbidden
	Rule  string
}

// String is the chain and the rule, without the module's path.
func (v Violation) String() string {
	short := make([]string, len(v.Chain))
	for i, p := range v.Chain {
		short[i] = strings.TrimPrefix(p, Module+"/")
	}
	return strings.Join(short, " -> ") + ": " + v.Rule
}

// Check finds every forbidden import among the packages of the module.
func Check(graph Graph) []Violation {
	var out []Violation
	for _, from := range graph.own() {
		place, ok := graph.place(from)
		if !ok {
			out = append(out, Violation{graph.chain(from, ""), "is in no layer: name it in test/arch/layers.go"})
			continue
		}
		for _, to := range graph[from].Imports {
			if rule := graph.forbidden(place, to); rule != "" {
				out = append(out, Violation{graph.chain(from, to), rule})
			}
		}
	}
	return out
}

// forbidden says why one package may not import another, or nothing.
func (g Graph) forbidden(place Place, to string) string {
	if _, own := inside(to); !own {
		return forbiddenLibrary(place, to)
	}
	target, ok := g.place(to)
	switch {
	case !ok:
		return "" // told where that package is looked at
	case target.Layer == Generator:
		return "a generator is run, not imported"
	case place.Layer != target.Layer && !slices.Contains(allowed[place.Layer], target.Layer):
		return fmt.Sprintf("%s may not import %s", place.Layer, target.Layer)
	case place.Layer == Core && target.Rank >= place.Rank:
		return "core imports only what is before it in the table of test/arch/layers.go"
	case place.Layer == Loadgen && target.Layer == Core && !slices.Contains(loadgenCore, target.Tree):
		return "loadgen knows no more of the core than a producer outside"
	case apart(place.Layer) && place.Layer == target.Layer && place.Tree != target.Tree:
		return fmt.Sprintf("one %s may not import another", place.Layer)
	}
	return ""
}

// apart are the layers whose trees may not import each other.
func apart(l Layer) bool { return l == Adapter || l == Service || l == Port }

func forbiddenLibrary(place Place, to string) string {
	if place.Layer == Testing {
		return ""
	}
	for _, pattern := range testOnly {
		if matches(to, pattern) {
			return "is for tests only"
		}
	}
	for _, pattern := range banned[place.Layer] {
		if matches(to, pattern) {
			return fmt.Sprintf("%s may not import %s", place.Layer, pattern)
		}
	}
	if host, _, _ := strings.Cut(to, "/"); place.Layer == Core && strings.Contains(host, ".") &&
		!slices.ContainsFunc(coreLibraries, func(pattern string) bool { return matches(to, pattern) }) {
		return "core may import only the libraries that test/arch/layers.go lists"
	}
	return ""
}

func (g Graph) own() []string {
	var out []string
	for path := range g {
		if _, ok := inside(path); ok {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// chain is the shortest way from a program to the import, so that the reader sees what it would end up in. Where no
// program leads there it begins at the package itself.
func (g Graph) chain(from, to string) []string {
	tail := []string{from}
	if to != "" {
		tail = append(tail, to)
	}
	importers := map[string][]string{}
	for _, path := range g.own() {
		for _, imported := range g[path].Imports {
			importers[imported] = append(importers[imported], path)
		}
	}
	type step struct {
		path string
		rest []string
	}
	seen := map[string]bool{from: true}
	for queue := []step{{from, tail}}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if g[s.path].Name == "main" {
			return s.rest
		}
		for _, importer := range importers[s.path] {
			if !seen[importer] {
				seen[importer] = true
				queue = append(queue, step{importer, append([]string{importer}, s.rest...)})
			}
		}
	}
	return tail
}
