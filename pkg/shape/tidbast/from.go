package tidbast

import (
	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/pointsman/pointsman/pkg/shape"
)

// bounds are the items of FROM that a condition may be applied to; all, if to is zero.
type bounds struct{ from, to int }

// join reads a join and what it joins, and adds the items to the query.
func (r *reader) join(q *shape.Query, j *ast.Join) {
	first := len(q.Items)
	r.item(q, j.Left)
	if j.Right == nil {
		return
	}
	left := len(q.Items)
	r.item(q, j.Right)
	right := len(q.Items)
	conditioned := j.On != nil || len(j.Using) > 0 || j.NaturalJoin
	at := bounds{first, right}
	joins := &r.build.Shape.Joins
	switch {
	case j.Tp == ast.LeftJoin:
		joins.Left++
		nullable(q.Items[left:right])
		at.from = left
	case j.Tp == ast.RightJoin:
		joins.Right++
		nullable(q.Items[first:left])
		at.to = left
	case conditioned:
		joins.Inner++
	default:
		joins.Cross++
	}
	if j.On != nil {
		r.expr(q, j.On.Expr)
		r.conditions(q, j.On.Expr, at, false)
	}
}

func nullable(items []*shape.Item) {
	for _, it := range items {
		it.Nullable = true
	}
}

// item reads one operand of a join.
func (r *reader) item(q *shape.Query, node ast.ResultSetNode) {
	switch s := node.(type) {
	case *ast.Join:
		r.join(q, s)
	case *ast.TableSource:
		r.source(q, s)
	}
}

func (r *reader) source(q *shape.Query, s *ast.TableSource) {
	if j, ok := s.Source.(*ast.Join); ok {
		r.join(q, j)
		return
	}
	it := &shape.Item{Alias: s.AsName.O}
	q.Items = append(q.Items, it)
	b := r.build
	if t, ok := s.Source.(*ast.TableName); ok {
		parts := qualifier(t.Schema, t.Name)
		it.Fixed = t.TableSample != nil
		if n := r.lookup(parts); n != nil {
			n.Uses++
			it.Named, it.Query = n, n.Query
			it.Fixed = it.Fixed || n.Query == nil
			if it.Alias == "" {
				it.Alias = n.Name
			}
			return
		}
		it.Parts, it.Table = parts, b.Reads(parts)
		b.Shape.JoinTables++
		return
	}
	b.Enter()
	it.Query = r.query(s.Source)
	b.Leave()
	if len(s.ColumnNames) > 0 {
		it.Fixed, it.Closed = true, true
		for _, c := range s.ColumnNames {
			it.Columns = append(it.Columns, c.O)
		}
	}
}

// lookup finds the named query in scope that a name means.
func (r *reader) lookup(parts []string) *shape.Named {
	if len(parts) != 1 {
		return nil
	}
	if all := r.byName[parts[0]]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// insert reads INSERT and REPLACE.
func (r *reader) insert(s *ast.InsertStmt) {
	b := r.build
	b.Wrote, b.Shape.Statement = true, shape.Insert
	if s.IsReplace {
		b.Shape.Statement = shape.Replace
	}
	if src, ok := s.Table.TableRefs.Left.(*ast.TableSource); ok {
		if t, ok := src.Source.(*ast.TableName); ok {
			b.Writes(shape.TableOf(qualifier(t.Schema, t.Name)))
		}
	}
	q := &shape.Query{}
	for _, row := range s.Lists {
		for _, e := range row {
			r.expr(q, e)
		}
	}
	if s.Select != nil {
		b.Outer = r.query(s.Select)
		b.Roots = append(b.Roots, b.Outer)
	}
	for _, a := range s.OnDuplicate {
		r.expr(q, a.Expr)
	}
}

// update reads UPDATE of one table or of joined ones.
func (r *reader) update(s *ast.UpdateStmt) {
	b := r.build
	b.Wrote, b.Shape.Statement = true, shape.Update
	r.with(s.With)
	q := &shape.Query{}
	joins := b.Shape.JoinTables
	r.join(q, s.TableRefs.TableRefs)
	if len(q.Items) == 1 {
		b.Target(q.Items[0])
		b.Shape.JoinTables = joins // UPDATE t is no reference behind FROM
	}
	var qualifiers [][]string
	for _, a := range s.List {
		r.expr(q, a.Expr)
		if qual := qualifier(a.Column.Schema, a.Column.Table); len(qual) > 0 {
			qualifiers = append(qualifiers, qual)
		}
	}
	b.Assigns(q, qualifiers)
	b.Roots = append(b.Roots, q)
	r.rows(q, s.Where, s.Order, s.Limit)
}

// delete reads DELETE in its single and multiple forms.
func (r *reader) delete(s *ast.DeleteStmt) {
	b := r.build
	b.Wrote, b.Shape.Statement = true, shape.Delete
	r.with(s.With)
	q := &shape.Query{}
	b.Roots = append(b.Roots, q)
	r.join(q, s.TableRefs.TableRefs)
	switch s.Tables {
	case nil:
		if len(q.Items) == 1 {
			b.Target(q.Items[0])
		}
		if len(q.Items) > 0 && q.Items[0].Parts != nil {
			b.Writes(q.Items[0].Table)
		}
	default:
		names := make([][]string, len(s.Tables.Tables))
		for i, t := range s.Tables.Tables {
			names[i] = qualifier(t.Schema, t.Name)
		}
		b.Deletes(q, names)
	}
	r.rows(q, s.Where, s.Order, s.Limit)
}

// rows reads which rows a statement changes.
func (r *reader) rows(q *shape.Query, where ast.ExprNode, order *ast.OrderByClause, limit *ast.Limit) {
	if where != nil {
		r.expr(q, where)
		r.conditions(q, where, bounds{}, false)
	}
	if order != nil {
		for _, item := range order.Items {
			r.expr(q, item.Expr)
		}
	}
	_ = limit // bounds the change, not a result
}
