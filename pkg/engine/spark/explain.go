package spark

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

var _ engine.Explainer = (*Engine)(nil)

// Explain plans the statement by EXPLAIN COST. Spark's call for plans is not used, since it runs what is no query. Spark has no cost,
// and counts rows of tables with statistics, and of ranges.
func (e *Engine) Explain(ctx context.Context, q engine.Query) (engine.Plan, error) {
	q.ID, q.SQL = "", "EXPLAIN COST\n"+q.SQL
	text, err := wire.Text(e.Submit(ctx, q))
	if err != nil {
		return engine.Plan{}, fmt.Errorf("explaining a query: %w", err)
	}
	plan := engine.Plan{Text: text}
	if !strings.HasPrefix(strings.TrimSpace(plan.Text), "==") {
		return engine.Plan{}, fmt.Errorf("explaining a query: %w", unplanned(plan.Text))
	}
	plan.ResultRows, plan.ReadRows = planned(plan.Text)
	return plan, nil
}

var (
	classInFront = regexp.MustCompile(`^(?:Error occurred during query planning:\s*)?(?:[\w.$]+: )?(\[([A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\].*)`)
	stateBehind  = regexp.MustCompile(`SQLSTATE: ([0-9A-Z]{5})`)
)

// unplanned is why a statement can't be planned, which the server tells in the place of each part of the plan.
func unplanned(text string) *engine.Error {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n== ")
	at := classInFront.FindStringSubmatchIndex(text)
	if at == nil {
		return &engine.Error{Engine: Kind, Phase: engine.Answered, Err: errors.New(text)}
	}
	f := fault{class: text[at[4]:at[5]], message: text[at[2]:]}
	if m := stateBehind.FindStringSubmatch(text); m != nil {
		f.state = m[1]
	}
	return f.error(engine.Answered)
}

var counted = regexp.MustCompile(`^([:|+\- ]*)([A-Za-z]+).*Statistics\(sizeInBytes=[^)]*?(?:, rowCount=([0-9.E+]+))?(?:, [^)]*)?\)$`)

// planned reads the estimates of a plan: of its first line, and of those that have nothing below them, which read.
func planned(text string) (result, read *float64) {
	_, logical, found := strings.Cut(text, "== Optimized Logical Plan ==\n")
	if !found {
		return nil, nil
	}
	logical, _, _ = strings.Cut(logical, "\n\n")
	type line struct {
		depth int
		rows  *float64
	}
	var lines []line
	for text := range strings.SplitSeq(logical, "\n") {
		m := counted.FindStringSubmatch(text)
		if m == nil {
			return nil, nil // a line that is not understood may be one that reads
		}
		one := line{depth: len(m[1])}
		if n, err := strconv.ParseFloat(m[3], 64); err == nil {
			one.rows = &n
		}
		lines = append(lines, one)
	}
	var total float64
	known := len(lines) > 0
	for i, l := range lines {
		if i+1 < len(lines) && lines[i+1].depth > l.depth {
			continue // it has something below it
		}
		if l.rows == nil {
			known = false
			continue
		}
		total += *l.rows
	}
	if known {
		read = &total
	}
	if len(lines) > 0 {
		result = lines[0].rows
	}
	return result, read
}
