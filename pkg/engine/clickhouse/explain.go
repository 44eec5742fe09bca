package clickhouse

import (
	"context"
	"fmt"
	"strings"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/pointsman/pointsman/pkg/engine"
)

// Explain plans the statement on the control lane. Of MergeTree tables the server says how many rows it would read, by their
// indexes; of others it says nothing, and servers before version 21 can't explain.
func (e *Engine) Explain(ctx context.Context, q engine.Query) (engine.Plan, error) {
	sql := strings.TrimRight(q.SQL, "; \t\r\n")
	ctx = driver.Context(ctx, driver.WithSettings(e.settings(q, false)))
	lines, err := e.column(ctx, "EXPLAIN "+sql)
	if err != nil {
		return engine.Plan{}, fmt.Errorf("explaining a query: %w", e.wrap(err, nil))
	}
	plan := engine.Plan{Text: strings.Join(lines, "\n")}
	rows, err := e.control.Query(ctx, "SELECT toFloat64(sum(rows)), count() FROM (EXPLAIN ESTIMATE "+sql+")")
	if err != nil {
		return plan, nil // it can plan the statement, and not say more
	}
	defer func() { _ = rows.Close() }()
	var (
		read   float64
		tables uint64
	)
	found := rows.Next() && rows.Scan(&read, &tables) == nil && tables > 0
	if rows.Err() == nil && found {
		plan.ReadRows = &read
	}
	return plan, nil
}

// column reads a result of one column of text.
func (e *Engine) column(ctx context.Context, sql string) ([]string, error) {
	rows, err := e.control.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		out = append(out, line)
	}
	return out, rows.Err()
}

var _ engine.Explainer = (*Engine)(nil)
