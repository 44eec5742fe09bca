package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// clock is what reads or waits for the time, or knows the machine's zone.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Local"}

// seeded is what of math/rand needs a seed from the caller; everything else there is global.
var seeded = []string{"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf"}

// impure says for a package and a name of it what is wrong with that in core, or nothing.
func impure(pkg, name string) string {
	switch {
	case pkg == "time" && slices.Contains(clock, name):
		return "core is told the time, it does not look"
	case (pkg == "math/rand" || pkg == "math/rand/v2") && !slices.Contains(seeded, name):
		return "core is given a seed, global randomness cannot be replayed"
	}
	return ""
}

// Clock finds where the core packages of a graph read the clock or global randomness.
func Clock(graph Graph) ([]string, error) {
	var out []string
	for _, path := range graph.own() {
		if place, ok := graph.place(path); !ok || place.Layer != Core {
			continue
		}
		for _, file := range graph[path].GoFiles {
			found, err := clockIn(filepath.Join(graph[path].Dir, file), nil)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// clockIn looks through one file; src is as for parser.ParseFile.
func clockIn(name string, src any) ([]string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading a core package: %w", err)
	}
	imported := map[string]string{} // local name to path
	var out []string
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || (path != "time" && path != "math/rand" && path != "math/rand/v2") {
			continue
		}
		local := strings.TrimSuffix(path, "/v2")
		local = local[strings.LastIndex(local, "/")+1:]
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." {
			out = append(out, fmt.Sprintf("%s: a dot import of %s hides where the clock is read", files.Position(spec.Pos()), path))
		}
		imported[local] = path
	}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok {
			if why := impure(imported[x.Name], selector.Sel.Name); why != "" {
				out = append(out, fmt.Sprintf("%s: %s.%s: %s", files.Position(n.Pos()), x.Name, selector.Sel.Name, why))
			}
		}
		return true
	})
	return out, nil
}
