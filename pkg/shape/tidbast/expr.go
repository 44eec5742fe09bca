package tidbast

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/pointsman/pointsman/pkg/shape"
)

// expr takes note of calls, windows and subqueries in an expression.
func (r *reader) expr(q *shape.Query, e ast.ExprNode) {
	if e != nil {
		e.Accept(&walker{r: r, q: q})
	}
}

// walker visits the nodes of one expression.
type walker struct {
	r *reader
	q *shape.Query
}

// Enter notes a node before its children.
func (w *walker) Enter(n ast.Node) (ast.Node, bool) {
	b := w.r.build
	switch e := n.(type) {
	case *ast.SubqueryExpr:
		b.Enter()
		b.Roots = append(b.Roots, w.r.query(e.Query))
		b.Leave()
		return n, true
	case *ast.FuncCallExpr:
		w.call(e)
	case *ast.AggregateFuncExpr:
		if e.Distinct {
			b.Shape.DistinctAggregates++
		}
		w.q.Aggregates = true
		b.Calls([]string{strings.ToLower(e.F)})
	case *ast.WindowFuncExpr:
		for _, a := range e.Args {
			w.r.expr(w.q, a)
		}
		w.r.window(w.q, e)
		return n, true
	case *ast.PatternRegexpExpr:
		b.Shape.Regex++
	}
	return n, false
}

// Leave does nothing: all is said on the way in.
func (w *walker) Leave(n ast.Node) (ast.Node, bool) { return n, true }

func (w *walker) call(e *ast.FuncCallExpr) {
	name := e.FnName.L
	if strings.ContainsAny(name, ".('`") {
		return // the parser's own name for a typed literal
	}
	if e.Schema.O == "" {
		w.r.build.Calls([]string{name})
		return
	}
	w.r.build.Calls(append(qualifier(e.Schema, ast.CIStr{}), name))
}

// window notes a use of a window function.
func (r *reader) window(q *shape.Query, e *ast.WindowFuncExpr) {
	w := shape.Window{Function: strings.ToLower(e.Name)}
	r.build.Calls([]string{w.Function})
	var cols []shape.Column
	w.PartitionBy, w.Ordered, cols = r.spec(q, &e.Spec, 0)
	if e.Spec.OnlyAlias || e.Spec.Ref.L != "" {
		cols = nil
	}
	q.Windows = append(q.Windows, cols)
	r.build.AddWindow(w)
}

// spec reads a window's definition, through the names that it refers to.
func (r *reader) spec(q *shape.Query, s *ast.WindowSpec, depth int) (keys []string, ordered bool, cols []shape.Column) {
	ref := s.Ref.L
	if s.OnlyAlias {
		ref = s.Name.L
	}
	if w := r.windows[ref]; w != nil && ref != "" && depth < 8 {
		keys, ordered, _ = r.spec(q, w, depth+1)
	}
	if s.PartitionBy != nil && !s.OnlyAlias {
		for _, item := range s.PartitionBy.Items {
			if depth == 0 {
				r.expr(q, item.Expr)
			}
			keys = append(keys, render(item.Expr))
			if c, ok := column(item.Expr); ok {
				cols = append(cols, c)
			}
		}
	}
	if s.OrderBy != nil {
		ordered = true
		for _, item := range s.OrderBy.Items {
			if depth == 0 {
				r.expr(q, item.Expr)
			}
		}
	}
	return keys, ordered, cols
}
