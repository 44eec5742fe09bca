package history_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/history/historytest"
	"github.com/pointsman/pointsman/pkg/history/row"
)

func TestMain(m *testing.M) { os.Exit(historytest.Main(m)) }

// fixture is a migrated history with a writer and a reader.
type fixture struct {
	t   *testing.T
	cfg history.Config
	db  *history.DB
	w   *history.Writer
	r   *history.Reader
}

func setup(t *testing.T) fixture {
	t.Helper()
	cfg := historytest.Migrated(t)
	db := historytest.Open(t, cfg)
	return fixture{t, cfg, db, history.NewWriter(db), history.NewReader(db, 0)}
}

func (f fixture) count(query string, args ...any) uint64 {
	f.t.Helper()
	var n uint64
	require.NoError(f.t, f.db.Conn().QueryRow(f.t.Context(), query, args...).Scan(&n))
	return n
}

// now is recent, because a row older than its table's TTL is gone before it is stored; it lies well inside an hour.
var now = time.Now().UTC().Truncate(time.Hour).Add(30 * time.Minute)

func rec(topic string, offset int64, at time.Time) row.Record {
	return row.Record{Topic: topic, Offset: offset, At: at}
}

func outcome(id int, at time.Time) event.Outcome {
	return event.Outcome{
		TaskID: fmt.Sprintf("task-%d", id), Status: event.Succeeded, Tenant: "tenant_a", Fingerprint: fmt.Sprintf("fp%d", id%3),
		Target: event.Target{Engine: "interactive", Cluster: "i1", Queue: "q"}, Attempts: 1,
		SubmittedAt: at.Add(-time.Second), FinishedAt: at, TotalMs: 1000, SLAMs: 10_000, SLAHit: id%4 != 0,
		Stats: event.Stats{QueueMs: new(int64(id % 50)), ExecMs: new(int64(500 + id))},
	}
}

// outcomes makes rows with offsets from first on.
func outcomes(t *testing.T, first, n int, at time.Time) row.Set {
	t.Helper()
	rows := make([]row.Outcome, n)
	for i := range rows {
		id := first + i
		r, err := row.FromOutcome(rec(event.TopicOutcomes, int64(id), at), outcome(id, at.Add(-time.Duration(id)*time.Millisecond)))
		require.NoError(t, err)
		rows[i] = r
	}
	return row.Outcomes(rows)
}

func batch(rows row.Set, first, last int) history.Batch {
	return history.Batch{Rows: rows, Ranges: []history.Range{{TopicID: "topic-1", First: int64(first), Last: int64(last)}}}
}

func (f fixture) insert(b history.Batch) {
	f.t.Helper()
	rejected, err := f.w.Insert(f.t.Context(), b)
	require.NoError(f.t, err)
	require.Empty(f.t, rejected)
}

// end makes an attempt's end.
func end(task string, n int, state, class, engine, fingerprint string, at time.Time) event.Attempt {
	a := event.Attempt{
		AttemptID: fmt.Sprintf("%s/%d", task, n), TaskID: task, Number: n, Seq: 4, State: state, At: at, Tenant: "tenant_a",
		Fingerprint: fingerprint, Target: event.Target{Engine: engine, Cluster: engine + "-1", Queue: "q"},
		Stats: &event.Stats{QueueMs: new(int64(5))},
	}
	if class != "" {
		a.Failure = &event.Failure{Class: class, Code: "241"}
	}
	return a
}

// attempts inserts attempt events, one offset each from first on.
func (f fixture) attempts(first int, events ...event.Attempt) {
	f.t.Helper()
	rows := make([]row.Attempt, len(events))
	for i, e := range events {
		r, err := row.FromAttempt(rec(event.TopicAttempts, int64(first+i), e.At), e)
		require.NoError(f.t, err)
		rows[i] = r
	}
	f.insert(batch(row.Attempts(rows), first, first+len(events)-1))
}
