package contracts

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// packages are where the payloads' types are declared, below the module's root.
var packages = []string{
	"pkg/query", "pkg/signal", "pkg/event", "pkg/ledger", "pkg/shape", "pkg/profile", "pkg/budget", "pkg/policy", "pkg/route",
}

// Comments are what the source says about types and fields, and which values an enum has there.
type Comments struct {
	types  map[string]string            // "event.Outcome" -> comment
	fields map[string]map[string]string // "event.Outcome" -> "SLAHit" -> comment
	values map[string][]string          // "event.Status" -> "succeeded", …
}

// ReadComments parses the source of the payload types. root is the module's root directory.
func ReadComments(root fs.FS) (Comments, error) {
	c := Comments{types: map[string]string{}, fields: map[string]map[string]string{}, values: map[string][]string{}}
	for _, dir := range packages {
		files, err := fs.Glob(root, dir+"/*.go")
		if err != nil || len(files) == 0 {
			return c, fmt.Errorf("reading the comments of %s: %d files, %w", dir, len(files), err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			src, err := fs.ReadFile(root, name)
			if err != nil {
				return c, fmt.Errorf("reading the comments of %s: %w", dir, err)
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments)
			if err != nil {
				return c, fmt.Errorf("reading the comments of %s: %w", dir, err)
			}
			for _, decl := range file.Decls {
				if gen, ok := decl.(*ast.GenDecl); ok {
					c.declaration(path.Base(dir), gen)
				}
			}
		}
	}
	return c, nil
}

func (c Comments) declaration(pkg string, gen *ast.GenDecl) {
	for _, spec := range gen.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			name := pkg + "." + s.Name.Name
			doc := s.Doc
			if doc == nil {
				doc = gen.Doc
			}
			c.types[name] = text(doc)
			if st, ok := s.Type.(*ast.StructType); ok {
				c.fields[name] = structFields(st)
			}
		case *ast.ValueSpec:
			c.constant(pkg, s)
		}
	}
}

// structFields gives each field its comment. A comment above several fields in one block belongs to the first alone.
func structFields(st *ast.StructType) map[string]string {
	out := map[string]string{}
	for _, f := range st.Fields.List {
		doc := text(f.Doc)
		if doc == "" {
			doc = text(f.Comment)
		}
		for _, n := range f.Names {
			out[n.Name] = doc
		}
	}
	return out
}

// constant notes the value of a typed string constant.
func (c Comments) constant(pkg string, s *ast.ValueSpec) {
	typ, ok := s.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, v := range s.Values {
		if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if value, err := strconv.Unquote(lit.Value); err == nil && value != "" {
				name := pkg + "." + typ.Name
				c.values[name] = append(c.values[name], value)
			}
		}
	}
}

// text is a comment in one line.
func text(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	return strings.Join(strings.Fields(doc.Text()), " ")
}
