package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/interpreter"
	"github.com/goccy/go-yaml/ast"
)

// Bounds of an expression: its cost, in CEL's units, estimated at load and enforced when it runs; and the sizes that the
// estimate assumes.
const (
	maxCost       = 10_000
	maxExpression = 4096
	assumedWords  = 64
	assumedLetter = 256
)

// thresholdPrefix is how expressions write named thresholds.
const thresholdPrefix = "thresholds."

// expressions compiles the CEL expressions of one policy.
type expressions struct {
	env  *cel.Env
	vars map[string]variable
}

// variable is what a name of an expression stands for: a fact, or whether it is known, or a threshold.
type variable struct {
	fact      int
	known     bool
	threshold string

	slot int
	kind Kind
}

// expression is one compiled expression.
type expression struct {
	text    string
	program cel.Program
	vars    map[string]variable
}

// celBase is what all policies' expressions share. It is costly to make and never changes.
var celBase = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.CrossTypeNumericComparisons(true), // estimated_bytes > 5 needs no 5.0
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(50),
		ext.Strings(ext.StringsVersion(2)),
	)
})

func newExpressions(names *vocabulary, numbers *Thresholds) (*expressions, error) {
	base, err := celBase()
	if err != nil {
		return nil, err
	}
	e := &expressions{vars: make(map[string]variable, 2*len(names.specs))}
	opts := make([]cel.EnvOption, 0, 2*len(names.specs))
	declare := func(name string, typ *cel.Type, v variable) {
		if _, ok := e.vars[name]; ok {
			return
		}
		e.vars[name] = v
		opts = append(opts, cel.Variable(name, typ))
	}
	for i, s := range names.specs {
		name := inExpressions(s.Name)
		declare(name, celTypes[s.Kind], variable{fact: i, kind: s.Kind})
		declare(name+"_"+string(IsKnown), cel.BoolType, variable{fact: i, known: true})
	}
	for _, name := range numbers.Names() {
		declare(thresholdPrefix+name, cel.DoubleType, variable{threshold: name})
	}
	e.env, err = base.Extend(opts...)
	return e, err
}

// inExpressions is how expressions write a name: a pool may have a dash in its name, a CEL variable may not.
func inExpressions(name string) string { return strings.ReplaceAll(name, "-", "_") }

var celTypes = map[Kind]*cel.Type{
	NumberKind: cel.DoubleType, BoolKind: cel.BoolType, WordKind: cel.StringType, WordsKind: cel.ListType(cel.StringType),
}

// expression compiles the text of an `expr` key. With a fault it is nil.
func (r *reader) expression(f field) *expression {
	before := len(r.faults)
	text := r.text(f)
	if len(r.faults) > before {
		return nil
	}
	if r.expressions == nil {
		e, err := newExpressions(r.names, r.numbers)
		if err != nil {
			r.fault(f.value, f.path, "expressions can't be used: "+err.Error())
			return nil
		}
		r.expressions = e
	}
	tree, issues := r.expressions.env.Compile(text)
	if issues != nil && issues.Err() != nil {
		for _, issue := range issues.Errors() {
			line, column := issue.Location.Line(), issue.Location.Column()
			r.faultAt(inExpression(f.value, line, column), f.path, r.expressions.explain(issue.Message))
		}
		return nil
	}
	if tree.OutputType() != cel.BoolType {
		r.fault(f.value, f.path, fmt.Sprintf("the expression is %s, it must be true or false (bool)", tree.OutputType()))
		return nil
	}
	units, err := r.expressions.env.EstimateCost(tree, sizes{})
	if err == nil && units.Max > maxCost {
		r.fault(f.value, f.path, fmt.Sprintf("the expression may cost up to %d, the most is %d: make it simpler", units.Max, maxCost))
		return nil
	}
	program, err := r.expressions.env.Program(tree, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost))
	if err != nil {
		r.fault(f.value, f.path, err.Error())
		return nil
	}
	out := &expression{text: strings.TrimSpace(text), program: program, vars: map[string]variable{}}
	for _, ref := range tree.NativeRep().ReferenceMap() {
		v, ok := r.expressions.vars[ref.Name]
		switch {
		case !ok:
			continue
		case v.threshold != "":
			r.usedThresholds[v.threshold] = true
		default:
			v.slot = r.names.use(v.fact)
		}
		out.vars[ref.Name] = v
	}
	return out
}

var undeclared = regexp.MustCompile(`^undeclared reference to '([^']+)'`)

// explain adds to CEL's message what may have been meant.
func (e *expressions) explain(message string) string {
	message, _, _ = strings.Cut(message, " (in container")
	if m := undeclared.FindStringSubmatch(message); m != nil {
		names := make([]string, 0, len(e.vars))
		for name := range e.vars {
			names = append(names, name)
		}
		slices.Sort(names)
		return fmt.Sprintf("no such fact as %q%s", m[1], slip(m[1], names))
	}
	return message
}

// inExpression is the place in the file of a place in an expression, as far as it can be told.
func inExpression(n ast.Node, line, column int) place {
	at := placeOf(n)
	s, ok := n.(*ast.StringNode)
	if !ok || line != 1 || strings.Contains(s.Value, "\n") {
		return at
	}
	if origin := strings.TrimSpace(s.Token.Origin); strings.HasPrefix(origin, `"`) || strings.HasPrefix(origin, `'`) {
		at.column++
	}
	at.column += column
	return at
}

// eval is unknown when the expression can't be evaluated without a fact that is missing. CEL's `||` and `&&` need only one
// side where that decides.
func (e *expression) eval(f *Facts, t *Thresholds) truth {
	out, _, err := e.program.Eval(activation{e, f, t})
	if err != nil {
		return unknown
	}
	b, ok := out.(types.Bool)
	if !ok {
		return unknown
	}
	return truthOf(bool(b))
}

// activation gives an expression the values of its names.
type activation struct {
	e *expression
	f *Facts
	t *Thresholds
}

// ResolveName implements CEL's Activation. A fact that is missing is a name that can't be found.
func (a activation) ResolveName(name string) (any, bool) {
	v, ok := a.e.vars[name]
	if !ok {
		return nil, false
	}
	if v.threshold != "" {
		return a.t.Get(v.threshold)
	}
	fact := &a.f.values[v.slot]
	switch {
	case v.known:
		return fact.Known, true
	case !fact.Known:
		return nil, false
	}
	switch v.kind {
	case NumberKind:
		return fact.Number, true
	case BoolKind:
		return fact.Number != 0, true
	case WordKind:
		return fact.Word, true
	default:
		return fact.Words, true
	}
}

// Parent implements CEL's Activation.
func (activation) Parent() interpreter.Activation { return nil }

// sizes tells CEL's estimate of costs how large a fact may be.
type sizes struct{}

// EstimateSize implements CEL's CostEstimator.
func (sizes) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	switch {
	case n.Type().Kind() == types.ListKind && len(n.Path()) == 1:
		return &cost.SizeEstimate{Max: assumedWords}
	case n.Type().Kind() == types.StringKind && len(n.Path()) > 0:
		return &cost.SizeEstimate{Max: assumedLetter}
	default:
		return nil
	}
}

// EstimateCallCost implements CEL's CostEstimator: calls cost what CEL thinks.
func (sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}
