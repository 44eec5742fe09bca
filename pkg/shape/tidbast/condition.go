package tidbast

import (
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"github.com/pointsman/pointsman/pkg/shape"
)

// conditions notes what must hold of an expression, as far as it compares one column with constants.
func (r *reader) conditions(q *shape.Query, e ast.ExprNode, b bounds, not bool) {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		r.conditions(q, e.Expr, b, not)
	case *ast.UnaryOperationExpr:
		if e.Op == opcode.Not {
			r.conditions(q, e.V, b, !not)
		}
	case *ast.BinaryOperationExpr:
		r.binary(q, e, b, not)
	case *ast.BetweenExpr:
		r.between(q, e, b, not)
	case *ast.PatternInExpr:
		r.in(q, e, b, not)
	case *ast.PatternLikeOrIlikeExpr:
		r.like(q, e, b, not)
	case *ast.IsNullExpr:
		if col, ok := column(e.Expr); ok {
			q.Where(b.of(col, shape.Test{Op: shape.IsNull}), not != e.Not)
		}
	case *ast.FuncCallExpr:
		if name := e.FnName.L; (name == "starts_with" || name == "startswith") && len(e.Args) == 2 && !not {
			col, ok := column(e.Args[0])
			slot, literal := slotOf(e.Args[1])
			if ok && literal {
				q.Where(b.of(col, shape.Test{Op: shape.StartsWith, Slots: []uint32{slot}}), false)
			}
		}
	}
}

func (b bounds) of(c shape.Column, t shape.Test) shape.Condition {
	return shape.Condition{Column: c, Test: t, From: b.from, To: b.to}
}

func (r *reader) binary(q *shape.Query, e *ast.BinaryOperationExpr, b bounds, not bool) {
	if e.Op == opcode.LogicAnd || e.Op == opcode.LogicOr {
		// NOT (a OR b) is NOT a AND NOT b; a negated AND is neither.
		switch both := (e.Op == opcode.LogicAnd) != not; {
		case both:
			r.conditions(q, e.L, b, not)
			r.conditions(q, e.R, b, not)
		case !not:
			r.oneOf(q, e, b)
		}
		return
	}
	op, ok := operators[e.Op]
	if !ok {
		return
	}
	if col, ok := column(e.L); ok {
		if slot, made, ok := constant(e.R); ok {
			if e.Op != opcode.NullEQ || !not {
				q.Where(b.of(col, shape.Test{Op: op, Slots: []uint32{slot}, Made: made}), not)
			}
		} else if !not && (op == shape.Ge || op == shape.Gt) {
			r.since(e.R)
		}
		return
	}
	if slot, made, ok := constant(e.L); ok && e.Op != opcode.NullEQ {
		if col, ok := column(e.R); ok {
			q.Where(b.of(col, shape.Test{Op: op.Mirror(), Slots: []uint32{slot}, Made: made}), not)
		}
	}
}

var operators = map[opcode.Op]shape.Op{
	opcode.EQ: shape.Eq, opcode.NE: shape.Ne, opcode.LT: shape.Lt, opcode.LE: shape.Le, opcode.GT: shape.Gt, opcode.GE: shape.Ge,
	opcode.NullEQ: shape.Eq,
}

// oneOf notes a = 1 OR a = 2 as one list.
func (r *reader) oneOf(q *shape.Query, e ast.ExprNode, b bounds) {
	branches := disjuncts(e, nil)
	var all shape.Condition
	for i, branch := range branches {
		one := &shape.Query{}
		if inner, ok := branch.(*ast.BinaryOperationExpr); ok && (inner.Op == opcode.LogicAnd || inner.Op == opcode.LogicXor) {
			return
		}
		r.conditions(one, branch, b, false)
		if len(one.Conds) != 1 {
			return
		}
		c := one.Conds[0]
		if c.Op != shape.Eq && c.Op != shape.In {
			return
		}
		if i == 0 {
			all = c
			all.Op, all.Slots = shape.In, nil
		} else if !c.Column.Equal(all.Column) {
			return
		}
		all.Slots, all.Made = append(all.Slots, c.Slots...), max(all.Made, c.Made)
	}
	q.Where(all, false)
}

// disjuncts are the operands of OR.
func disjuncts(e ast.ExprNode, out []ast.ExprNode) []ast.ExprNode {
	for {
		switch x := e.(type) {
		case *ast.BinaryOperationExpr:
			if x.Op == opcode.LogicOr {
				out = disjuncts(x.L, out)
				e = x.R
				continue
			}
		case *ast.ParenthesesExpr:
			if inner, ok := x.Expr.(*ast.BinaryOperationExpr); !ok || inner.Op != opcode.LogicOr {
				e = x.Expr
				continue
			}
		}
		return append(out, e)
	}
}

func (r *reader) between(q *shape.Query, e *ast.BetweenExpr, b bounds, not bool) {
	col, ok := column(e.Expr)
	if !ok || not != e.Not {
		return
	}
	low, lowMade, ok1 := constant(e.Left)
	high, highMade, ok2 := constant(e.Right)
	if ok1 && ok2 {
		q.Where(b.of(col, shape.Test{Op: shape.Ge, Slots: []uint32{low}, Made: lowMade}), false)
		q.Where(b.of(col, shape.Test{Op: shape.Le, Slots: []uint32{high}, Made: highMade}), false)
	}
}

func (r *reader) in(q *shape.Query, e *ast.PatternInExpr, b bounds, not bool) {
	col, ok := column(e.Expr)
	if !ok || e.Sel != nil || len(e.List) == 0 {
		return
	}
	t := shape.Test{Op: shape.In}
	for _, item := range e.List {
		slot, made, ok := constant(item)
		if !ok {
			return
		}
		t.Slots, t.Made = append(t.Slots, slot), max(t.Made, made)
	}
	q.Where(b.of(col, t), not != e.Not)
}

func (r *reader) like(q *shape.Query, e *ast.PatternLikeOrIlikeExpr, b bounds, not bool) {
	col, ok := column(e.Expr)
	if !ok || !e.IsLike || not != e.Not {
		return
	}
	slot, _, ok := constant(e.Pattern)
	if !ok {
		return
	}
	t := shape.Test{Op: shape.Like, Slots: []uint32{slot}}
	if esc, ok := r.escapes[slot]; ok {
		t.HasEscape, t.Escape = true, shape.SlotOf(esc)
	}
	q.Where(b.of(col, t), false)
}

// since notes how far back from now a comparison reaches.
func (r *reader) since(e ast.ExprNode) {
	f, ok := e.(*ast.FuncCallExpr)
	if !ok || len(f.Args) < 3 {
		return
	}
	unit, ok := f.Args[2].(*ast.TimeUnitExpr)
	if !ok {
		return
	}
	if slot, ok := slotOf(f.Args[1]); ok {
		r.build.Ranges = append(r.build.Ranges, shape.Range{Interval: shape.SlotOf(slot), Unit: strings.ToLower(unit.Unit.String())})
	}
}

// constant is the slot of a literal, plain or typed, and what is made of it before it is compared.
func constant(e ast.ExprNode) (slot uint32, made shape.Conversion, ok bool) {
	arg := e
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		if len(e.Args) != 1 {
			return 0, made, false
		}
		arg = e.Args[0]
		switch e.FnName.L {
		case ast.DateLiteral, "date", "to_date", "todate":
			made = shape.ToDate
		case "timestamp", "to_timestamp", "todatetime":
			made = shape.ToTime
		case ast.TimestampLiteral, ast.TimeLiteral:
		default:
			return 0, made, false
		}
	case *ast.FuncCastExpr:
		if e.FunctionType != ast.CastFunction {
			return 0, made, false
		}
		arg = e.Expr
		switch e.Tp.GetType() {
		case mysql.TypeDate:
			made = shape.ToDate
		case mysql.TypeDatetime, mysql.TypeTimestamp:
			made = shape.ToTime
		default:
			return 0, made, false
		}
	}
	slot, ok = slotOf(arg)
	return slot, made, ok
}

// slotOf is the slot that a constant of the shim stands for.
func slotOf(e ast.ExprNode) (uint32, bool) {
	v, ok := e.(ast.ValueExpr)
	if !ok {
		return 0, false
	}
	switch x := v.GetValue().(type) {
	case int64:
		if x >= slotBase {
			return uint32(x - slotBase), true
		}
	case uint64:
		if x >= slotBase {
			return uint32(x - slotBase), true
		}
	case string:
		if digits, ok := strings.CutPrefix(x, slotMark); ok {
			n, err := strconv.ParseUint(digits, 10, 32)
			return uint32(n), err == nil
		}
	}
	return 0, false
}
