package history_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/history/historytest"
	"github.com/pointsman/pointsman/pkg/history/row"
)

const benchRows = 10_000

// values catches what a row set hands over, column by column.
type values struct{ column any }

func (v *values) Append(x any) error {
	v.column = x
	return nil
}

func benchOutcomes(b *testing.B, first int) row.Set {
	rows := make([]row.Outcome, benchRows)
	for i := range rows {
		r, err := row.FromOutcome(rec(event.TopicOutcomes, int64(first+i), now), outcome(first+i, now))
		require.NoError(b, err)
		rows[i] = r
	}
	return row.Outcomes(rows)
}

// BenchmarkInsert is the writer: mapped rows, checked, with their token. Compare with BenchmarkRawInsert in one run.
func BenchmarkInsert(b *testing.B) {
	w := history.NewWriter(historytest.Open(b, historytest.Migrated(b)))
	n := 0
	for b.Loop() {
		s := benchOutcomes(b, n)
		_, err := w.Insert(b.Context(), history.Batch{Rows: s, Ranges: []history.Range{{TopicID: "t", First: int64(n), Last: int64(n + benchRows - 1)}}})
		require.NoError(b, err)
		n += benchRows
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkRawInsert is a plain batch of the driver, row by row, of the same rows into the same table.
func BenchmarkRawInsert(b *testing.B) {
	db := historytest.Open(b, historytest.Migrated(b))
	n := 0
	for b.Loop() {
		s := benchOutcomes(b, n)
		columns := s.Columns()
		names := make([]string, len(columns))
		cells := make([][]any, s.Len())
		for i := range cells {
			cells[i] = make([]any, len(columns))
		}
		for i, c := range columns {
			names[i] = c.Name
			var v values
			require.NoError(b, s.AppendColumn(i, &v))
			for j, x := range spread(v.column) {
				cells[j][i] = x
			}
		}
		batch, err := db.Conn().PrepareBatch(b.Context(), "INSERT INTO outcomes ("+strings.Join(names, ", ")+")")
		require.NoError(b, err)
		for _, row := range cells {
			require.NoError(b, batch.Append(row...))
		}
		require.NoError(b, batch.Send())
		n += benchRows
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}

func spread(column any) []any {
	switch c := column.(type) {
	case []string:
		return each(c)
	case []bool:
		return each(c)
	case []uint16:
		return each(c)
	case []int32:
		return each(c)
	case []uint64:
		return each(c)
	case []*uint64:
		return each(c)
	case []*float64:
		return each(c)
	case []time.Time:
		return each(c)
	case []*time.Time:
		return each(c)
	case [][]string:
		return each(c)
	case []map[string]float64:
		return each(c)
	default:
		panic(fmt.Sprintf("a column of %T", column))
	}
}

func each[T any](c []T) []any {
	out := make([]any, len(c))
	for i, v := range c {
		out[i] = v
	}
	return out
}

// BenchmarkProfiles reads 50 fingerprints of a history of a week.
func BenchmarkProfiles(b *testing.B) {
	cfg := historytest.Migrated(b)
	db := historytest.Open(b, cfg)
	ctx := b.Context()
	require.NoError(b, db.Conn().Exec(ctx, `INSERT INTO attempts (task_id, attempt, seq, state, ended, ok, memory_kill, engine, cluster, fingerprint, queue_ms, exec_ms, at, k_offset)
		SELECT concat('t', toString(number)), 1, 3, if(k, 'failed', 'succeeded'), true, NOT k, k, ['i','b'][1+number%2], ['i1','b1'][1+number%2], concat('fp', toString(number%1000)),
		number%5000, if(k, NULL, number%10000), now64(3) - toIntervalSecond(intDiv(number, 1)), number FROM (SELECT number, number%7=0 AS k FROM numbers(500000))`))
	w, r := history.NewWriter(db), history.NewReader(db, 0)
	var hours []time.Time
	for h := range 150 {
		hours = append(hours, time.Now().UTC().Truncate(time.Hour).Add(-time.Duration(h)*time.Hour))
	}
	require.NoError(b, w.Rollup(ctx, hours))
	var fps []string
	for i := range 50 {
		fps = append(fps, fmt.Sprint("fp", i*7))
	}
	for b.Loop() {
		got, err := r.Profiles(ctx, fps, time.Now())
		require.NoError(b, err)
		require.NotEmpty(b, got)
	}
}
