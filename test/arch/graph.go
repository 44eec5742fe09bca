package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Package is what `go list` says of one.
type Package struct {
	ImportPath string
	Name       string
	Dir        string
	Standard   bool
	GoFiles    []string
	Imports    []string // without those of its tests
}

// Graph is the packages by import path.
type Graph map[string]Package

// List reads the graph of the module around a directory, with everything it depends on. Packages that don't build
// are in it too: that they don't is the compiler's to say.
func List(dir string) (Graph, error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Name,Dir,Standard,GoFiles,Imports", "./...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running go list: %w: %s", err, stderr.String())
	}
	graph := Graph{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return graph, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading what go list wrote: %w", err)
		}
		graph[p.ImportPath] = p
	}
}

// Root is the directory of the module that the working directory is in.
func Root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// inside gives the path inside the module.
func inside(importPath string) (string, bool) {
	if importPath == Module {
		return "", false // the root holds no package that ships
	}
	return strings.CutPrefix(importPath, Module+"/")
}

func (g Graph) place(importPath string) (Place, bool) {
	path, ok := inside(importPath)
	if !ok {
		return Place{}, false
	}
	return place(path, g[importPath].Name == "main")
}
