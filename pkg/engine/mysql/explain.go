package mysql

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/pointsman/pointsman/pkg/engine"
)

// Explain plans the statement, over a connection like an attempt's. MySQL says what it costs, TiDB how many rows there are; of
// the others only the text is kept.
func (e *Engine) Explain(ctx context.Context, q engine.Query) (engine.Plan, error) {
	t, err := e.known(ctx)
	if err != nil {
		return engine.Plan{}, fmt.Errorf("explaining a query: %w", e.wrap(err, nil))
	}
	q.ID, q.SQL, q.ReadOnly = "explain-"+uuid.NewString(), t.explain+" "+q.SQL, true
	rows, err := e.Submit(ctx, q)
	if err != nil {
		return engine.Plan{}, fmt.Errorf("explaining a query: %w", err)
	}
	var lines [][]string
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			break
		}
		line := make([]string, len(values))
		for i, v := range values {
			line[i] = fmt.Sprint(v)
		}
		lines = append(lines, line)
	}
	_ = rows.Close()
	if err := rows.Err(); err != nil {
		return engine.Plan{}, fmt.Errorf("explaining a query: %w", err)
	}
	return readPlan(t.flavour, lines), nil
}

func readPlan(f Flavour, lines [][]string) engine.Plan {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.Join(line, "\t") + "\n")
	}
	p := engine.Plan{Text: strings.TrimSuffix(b.String(), "\n")}
	switch f {
	case TiDB:
		readTiDB(lines, &p)
	case MySQL, MariaDB:
		var doc struct {
			Block struct {
				Cost     *float64 `json:"cost"` // MariaDB, from version 11 on
				CostInfo struct {
					QueryCost json.Number `json:"query_cost"` // MySQL writes it as text
				} `json:"cost_info"`
			} `json:"query_block"`
		}
		if json.Unmarshal([]byte(p.Text), &doc) == nil {
			p.Cost = doc.Block.Cost
			if n, err := doc.Block.CostInfo.QueryCost.Float64(); err == nil {
				p.Cost = &n
			}
		}
	case Doris, StarRocks:
	}
	return p
}

// readTiDB reads lines of id, estRows, task, access object, operator info: the first is the result, and scans are what is read.
func readTiDB(lines [][]string, p *engine.Plan) {
	var read float64
	scans := false
	for i, line := range lines {
		if len(line) < 2 {
			return
		}
		n, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			return
		}
		if i == 0 {
			p.ResultRows = &n
		}
		if strings.Contains(line[0], "Scan") || strings.Contains(line[0], "Point_Get") {
			read += n
			scans = true
		}
	}
	if scans {
		p.ReadRows = &read
	}
}

var _ engine.Explainer = (*Engine)(nil)
