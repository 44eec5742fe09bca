package clickhouse

import (
	"context"
	"regexp"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
)

// selects is a statement that may have an empty result, behind comments and brackets.
var selects = regexp.MustCompile(`(?is)^(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:SELECT|WITH)\b`)

const describeWithin = 2 * time.Second

// describe names the columns of a result without rows: over HTTP the engine then sends nothing at all. It asks for the
// columns only and runs nothing; when it can't tell, the columns stay unknown.
func (e *Engine) describe(ctx context.Context, q engine.Query) []event.Column {
	if e.cfg.Protocol != HTTP || !selects.MatchString(q.SQL) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	settings := driver.Settings{}
	if q.Database != "" {
		settings["database"] = q.Database
	}
	rows, err := e.control.Query(driver.Context(ctx, driver.WithSettings(settings)), "DESCRIBE TABLE (\n"+strings.TrimRight(q.SQL, "; \t\r\n")+"\n)")
	if err != nil {
		return nil
	}
	defer func() { _ = rows.Close() }()
	var columns []event.Column
	for rows.Next() {
		dest := make([]any, len(rows.Columns()))
		var c event.Column
		for i := range dest {
			dest[i] = new(string)
		}
		if len(dest) < 2 {
			return nil
		}
		dest[0], dest[1] = &c.Name, &c.Type
		if rows.Scan(dest...) != nil {
			return nil
		}
		columns = append(columns, c)
	}
	if rows.Err() != nil {
		return nil
	}
	return columns
}
