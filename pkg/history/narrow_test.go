package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/history/historytest"
	"github.com/pointsman/pointsman/pkg/history/migrate"
	"github.com/pointsman/pointsman/pkg/history/row"
)

// K19: a server that takes fewer partitions in one block than we expect still gets every row, in halves.
func TestAServerThatTakesFewPartitions(t *testing.T) {
	engine := chdbtest.Start(t, chdb.Config{Name: "narrow", Settings: map[string]string{"max_partitions_per_insert_block": "4"}})
	cfg := history.Config{Addr: []string{engine.Addr()}}
	_, err := migrate.Up(t.Context(), cfg)
	require.NoError(t, err)
	db := historytest.Open(t, cfg)
	w := history.NewWriter(db)
	var rows []row.Decision
	for i := range 11 {
		at := now.Add(-time.Duration(i) * 7 * 24 * time.Hour)
		r, err := row.FromDecision(rec(event.TopicDecisions, int64(i), at), event.RouteDecision{
			DecisionID: "d", TaskID: "t" + at.Format(time.DateOnly), Attempt: 1, Kind: event.Route, DecidedAt: at,
		})
		require.NoError(t, err)
		rows = append(rows, r)
	}
	b := batch(row.Decisions(rows), 0, 10)
	for range 2 {
		rejected, err := w.Insert(t.Context(), b)
		require.NoError(t, err)
		require.Empty(t, rejected)
	}
	var n uint64
	require.NoError(t, db.Conn().QueryRow(t.Context(), "SELECT count() FROM decisions").Scan(&n))
	require.EqualValues(t, 11, n)
}
