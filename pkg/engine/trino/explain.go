package trino

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

var _ engine.Explainer = (*Engine)(nil)

// planNode is a step of a plan. Each has one estimate for every step that was fused into it, the innermost first; what the
// optimizer does not know is the text "NaN".
type planNode struct {
	Name      string     `json:"name"`
	Estimates []estimate `json:"estimates"`
	Children  []planNode `json:"children"`
}

type estimate struct {
	Rows rowCount `json:"outputRowCount"`
}

// rowCount is a number that may be unknown.
type rowCount struct {
	known bool
	n     float64
}

// UnmarshalJSON reads a number, or a text that holds none.
func (r *rowCount) UnmarshalJSON(raw []byte) error {
	n, err := strconv.ParseFloat(string(raw), 64)
	*r = rowCount{known: err == nil, n: n}
	return nil
}

// Explain plans the statement over all nodes. A scan whose rows the optimizer does not know leaves the rows that are read
// unknown as a whole. Trino's costs are of processor, memory and network, and there is none of all three.
func (e *Engine) Explain(ctx context.Context, q engine.Query) (engine.Plan, error) {
	q.ID, q.SQL = "", "EXPLAIN (TYPE DISTRIBUTED, FORMAT JSON)\n"+q.SQL
	text, err := wire.Text(e.submit(ctx, q, false))
	if err != nil {
		return engine.Plan{}, fmt.Errorf("explaining a query: %w", err)
	}
	plan := engine.Plan{Text: text}
	plan.ResultRows, plan.ReadRows = planned(plan.Text)
	return plan, nil
}

// planned reads the estimates of a plan: of its last step, and of its scans.
func planned(text string) (result, read *float64) {
	var fragments map[string]planNode
	if json.Unmarshal([]byte(text), &fragments) != nil {
		return nil, nil
	}
	if root := fragments["0"]; len(root.Estimates) > 0 {
		result = root.Estimates[len(root.Estimates)-1].Rows.value()
	}
	var total rowCount
	scans, known := 0, true
	for _, f := range fragments {
		f.walk(func(n planNode) {
			if !strings.HasPrefix(n.Name, "TableScan") && !strings.HasPrefix(n.Name, "Scan") {
				return
			}
			scans++
			if len(n.Estimates) == 0 || !n.Estimates[0].Rows.known {
				known = false
				return
			}
			total = rowCount{known: true, n: total.n + n.Estimates[0].Rows.n}
		})
	}
	if scans > 0 && known {
		read = total.value()
	}
	return result, read
}

func (n planNode) walk(visit func(planNode)) {
	visit(n)
	for _, c := range n.Children {
		c.walk(visit)
	}
}

func (r rowCount) value() *float64 {
	if !r.known {
		return nil
	}
	return &r.n
}
