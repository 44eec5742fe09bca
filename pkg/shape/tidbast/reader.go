package tidbast

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
)

// reader walks over one tree, in the order of the text.
type reader struct {
	d       lex.Dialect
	build   *shape.Builder
	escapes map[uint32]uint32
	named   []*shape.Named            // in scope
	byName  map[string][]*shape.Named // the same; the last of a name hides the others
	windows map[string]*ast.WindowSpec
}

// statement reads a statement, or says that it is of a kind that is left to the tokens.
func (r *reader) statement(stmt ast.StmtNode) bool {
	b := r.build
	switch s := stmt.(type) {
	case *ast.SelectStmt, *ast.SetOprStmt:
		b.Shape.Statement = shape.Select
		b.Outer = r.query(s)
		b.Roots = append(b.Roots, b.Outer)
	case *ast.InsertStmt:
		r.insert(s)
	case *ast.UpdateStmt:
		r.update(s)
	case *ast.DeleteStmt:
		r.delete(s)
	default:
		return false
	}
	return true
}

// query reads a query of any kind.
func (r *reader) query(node ast.Node) *shape.Query {
	switch s := node.(type) {
	case *ast.SelectStmt:
		return r.selects(s)
	case *ast.SetOprStmt:
		scope := len(r.named)
		r.with(s.With)
		q := r.branches(s.SelectList)
		r.tail(q, s.OrderBy, s.Limit)
		r.leave(scope)
		return q
	case *ast.SetOprSelectList:
		scope := len(r.named)
		r.with(s.With)
		q := r.branches(s)
		r.tail(q, s.OrderBy, s.Limit)
		r.leave(scope)
		return q
	case *ast.SubqueryExpr:
		return r.query(s.Query)
	}
	return &shape.Query{Opaque: true}
}

// branches reads the operands of set operations.
func (r *reader) branches(list *ast.SetOprSelectList) *shape.Query {
	q := &shape.Query{}
	ops := &r.build.Shape.SetOps
	for _, s := range list.Selects {
		var after *ast.SetOprType
		switch s := s.(type) {
		case *ast.SelectStmt:
			after = s.AfterSetOperator
		case *ast.SetOprSelectList:
			after = s.AfterSetOperator
		}
		if after != nil {
			switch *after {
			case ast.Union:
				ops.Union++
			case ast.UnionAll:
				ops.UnionAll++
			case ast.Intersect, ast.IntersectAll:
				ops.Intersect++
			case ast.Except, ast.ExceptAll:
				ops.Except++
			}
		}
		q.Kids = append(q.Kids, r.query(s))
	}
	return q
}

// tail reads what orders and bounds a query.
func (r *reader) tail(q *shape.Query, order *ast.OrderByClause, limit *ast.Limit) {
	if order != nil {
		if r.build.Top() {
			r.build.Shape.OrderBy = true
		}
		for _, item := range order.Items {
			r.expr(q, item.Expr)
		}
	}
	if limit != nil {
		q.Limited = true
		q.Limit, q.Offset = r.bound(limit.Count), r.bound(limit.Offset)
	}
}

func (r *reader) bound(e ast.ExprNode) shape.Slot {
	if slot, ok := slotOf(e); ok {
		return shape.SlotOf(slot)
	}
	return shape.Slot{}
}

// selects reads one SELECT.
func (r *reader) selects(s *ast.SelectStmt) *shape.Query {
	scope, windows := len(r.named), r.windows
	defer func() {
		r.leave(scope)
		r.windows = windows
	}()
	r.with(s.With)
	r.windows = windowsOf(s.WindowSpecs)
	b := r.build
	q := &shape.Query{}
	if s.Kind == ast.SelectStmtKindValues {
		q.Opaque = true
		for _, row := range s.Lists {
			r.expr(q, row)
		}
		r.tail(q, s.OrderBy, s.Limit)
		return q
	}
	b.Shape.Distinct = b.Shape.Distinct || s.Distinct && s.Kind == ast.SelectStmtKindSelect
	if s.Fields != nil {
		for _, f := range s.Fields.Fields {
			r.field(q, f)
		}
	}
	if s.From != nil {
		r.join(q, s.From.TableRefs)
	}
	if s.Where != nil {
		r.expr(q, s.Where)
		r.conditions(q, s.Where, bounds{}, false)
	}
	if s.GroupBy != nil {
		r.groupBy(q, s.GroupBy)
	}
	if s.Having != nil {
		r.expr(q, s.Having.Expr)
	}
	r.tail(q, s.OrderBy, s.Limit)
	if s.LockInfo != nil && s.LockInfo.LockType != ast.SelectLockNone {
		b.Locked = true
	}
	if s.SelectIntoOpt != nil && s.SelectIntoOpt.Tp != ast.SelectIntoVars {
		b.Wrote = true
	}
	return q
}

func (r *reader) field(q *shape.Query, f *ast.SelectField) {
	q.Columns++
	if f.WildCard != nil {
		q.Star = true
		q.Outs = append(q.Outs, shape.Output{Star: true, Column: shape.Column{Qualifier: qualifier(f.WildCard.Schema, f.WildCard.Table)}})
		return
	}
	r.expr(q, f.Expr)
	alias := f.AsName.O
	out := shape.Output{Name: alias}
	col, plain := column(f.Expr)
	if plain {
		out.Column = col
		if alias == "" {
			out.Name = col.Name
		}
	}
	if alias != "" && r.d.AliasesInWhere() && !(plain && alias == col.Name) {
		q.Aliases = append(q.Aliases, alias)
	}
	q.Outs = append(q.Outs, out)
}

func (r *reader) groupBy(q *shape.Query, g *ast.GroupByClause) {
	b := r.build
	q.Grouped, b.Shape.GroupBy = true, true
	q.Renamed = q.Renamed || g.Rollup
	for _, item := range g.Items {
		r.expr(q, item.Expr)
		if col, ok := column(item.Expr); ok {
			q.Keys = append(q.Keys, col)
		}
	}
	if b.Shape.GroupKeys == 0 || b.Top() {
		b.Shape.GroupKeys = len(g.Items)
	}
}

// with reads named queries.
func (r *reader) with(w *ast.WithClause) {
	if w == nil {
		return
	}
	b := r.build
	b.Shape.Recursive = b.Shape.Recursive || w.IsRecursive
	for _, c := range w.CTEs {
		n := &shape.Named{Name: c.Name.O, Recursive: w.IsRecursive}
		b.Shape.CTEs++
		if w.IsRecursive {
			r.enter(n)
		}
		b.Enter()
		n.Query = r.query(c.Query)
		b.Leave()
		if len(c.ColNameList) > 0 {
			n.Query = &shape.Query{Kids: []*shape.Query{n.Query}, Opaque: true, Limited: true} // columns are renamed
		}
		if !w.IsRecursive {
			r.enter(n)
		}
		b.Named = append(b.Named, n)
	}
}

// enter puts a named query into scope.
func (r *reader) enter(n *shape.Named) {
	r.named = append(r.named, n)
	r.byName[n.Name] = append(r.byName[n.Name], n)
}

// leave takes the named queries from the n-th on out of scope.
func (r *reader) leave(n int) {
	for _, v := range r.named[n:] {
		r.byName[v.Name] = r.byName[v.Name][:len(r.byName[v.Name])-1]
	}
	r.named = r.named[:n]
}

// windowsOf finds the definitions of a WINDOW clause by their names; the first of a name counts.
func windowsOf(specs []ast.WindowSpec) map[string]*ast.WindowSpec {
	if len(specs) == 0 {
		return nil
	}
	out := make(map[string]*ast.WindowSpec, len(specs))
	for i := range specs {
		if name := specs[i].Name.L; out[name] == nil {
			out[name] = &specs[i]
		}
	}
	return out
}

// column is a plain column.
func column(e ast.ExprNode) (shape.Column, bool) {
	c, ok := e.(*ast.ColumnNameExpr)
	if !ok {
		return shape.Column{}, false
	}
	return shape.Column{Qualifier: qualifier(c.Name.Schema, c.Name.Table), Name: c.Name.Name.O}, true
}

// qualifier splits what the shim joined.
func qualifier(schema, table ast.CIStr) []string {
	var out []string
	if schema.O != "" {
		out = strings.Split(schema.O, joint)
	}
	if table.O != "" {
		out = append(out, strings.Split(table.O, joint)...)
	}
	return out
}
