package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

// plan is what is read of EXPLAIN (FORMAT JSON).
type plan []struct {
	Plan struct {
		TotalCost *float64 `json:"Total Cost"`
		PlanRows  *float64 `json:"Plan Rows"`
	} `json:"Plan"`
}

// Explain plans the statement, in a session like an attempt's, which may not write. PostgreSQL does not say how many rows a plan
// reads: the figures of a scan are of what it lets through.
func (e *Engine) Explain(ctx context.Context, q engine.Query) (engine.Plan, error) {
	q.ID, q.SQL, q.ReadOnly = "explain-"+uuid.NewString(), "EXPLAIN (FORMAT JSON) "+q.SQL, true
	text, err := wire.Text(e.Submit(ctx, q))
	if err != nil {
		return engine.Plan{}, fmt.Errorf("explaining a query: %w", err)
	}
	out := engine.Plan{Text: text}
	var p plan
	if json.Unmarshal([]byte(out.Text), &p) == nil && len(p) > 0 {
		out.ResultRows, out.Cost = p[0].Plan.PlanRows, p[0].Plan.TotalCost
	}
	return out, nil
}

var _ engine.Explainer = (*Engine)(nil)
