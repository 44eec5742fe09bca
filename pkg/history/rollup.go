package history

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// hoursAtOnce bounds what one recompute reads.
const hoursAtOnce = 24

// rollups are the statements of a recompute, in order. The last one makes its revision count.
var rollups = []string{"rollup_sla_1h", "rollup_sla_bucket_1h", "rollup_attempt_1h", "rollup_attempt_bucket_1h", "rollup_qwait_1h", "rollup_rev"}

// DirtyHours are the hours that were marked since their rollups were last computed, oldest first.
func (w *Writer) DirtyHours(ctx context.Context) ([]time.Time, error) {
	rows, err := w.db.conn.Query(ctx, statement("dirty_hours"))
	if err != nil {
		return nil, fmt.Errorf("reading dirty hours: %w", err)
	}
	defer rows.Close()
	var hours []time.Time
	for rows.Next() {
		var h time.Time
		if err := rows.Scan(&h); err != nil {
			return nil, fmt.Errorf("reading dirty hours: %w", err)
		}
		hours = append(hours, h.UTC())
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading dirty hours: %w", err)
	}
	return hours, nil
}

// Rollup computes hours anew from the rows, whole, under a new revision. It may be repeated and interrupted at any point: until
// its last statement the old numbers count. Two that run at once both are right, the later revision counts.
func (w *Writer) Rollup(ctx context.Context, hours []time.Time) error {
	for some := range slices.Chunk(hours, hoursAtOnce) {
		if err := w.rollup(ctx, some); err != nil {
			return fmt.Errorf("rolling up %d hours: %w", len(some), err)
		}
	}
	return nil
}

func (w *Writer) rollup(ctx context.Context, hours []time.Time) error {
	// The revision is the server's clock before anything is read. An hour that is marked later has rows that this recompute may
	// not have seen; one that was marked before has none.
	var rev uint64
	if err := w.db.conn.QueryRow(ctx, "SELECT toUInt64(toUnixTimestamp64Nano(now64(9)))").Scan(&rev); err != nil {
		return fmt.Errorf("taking a revision: %w", err)
	}
	ctx = w.parameters(ctx, clickhouse.Parameters{"hours": hourList(hours), "rev": strconv.FormatUint(rev, 10), "stops": stops()})
	for _, name := range rollups {
		if err := w.db.conn.Exec(ctx, statement(name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// parameters passes values beside the statement, never inside it, and keeps the server from taking the result of a recompute for
// a repeat.
func (w *Writer) parameters(ctx context.Context, p clickhouse.Parameters) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithParameters(p), clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0}))
}

// hourList writes hours as an Array(DateTime) parameter.
func hourList(hours []time.Time) string {
	texts := make([]string, len(hours))
	for i, h := range hours {
		texts[i] = "'" + h.UTC().Format(time.DateTime) + "'"
	}
	return "[" + strings.Join(texts, ",") + "]"
}
