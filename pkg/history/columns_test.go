package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history/row"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Every column that we send is in its table with the type we say, and no column of a table is forgotten.
func TestColumnsAreThoseOfTheTables(t *testing.T) {
	f := setup(t)
	for _, s := range []row.Set{row.Requests(nil), row.Decisions(nil), row.Attempts(nil), row.Outcomes(nil), row.Samples(nil)} {
		want := map[string]string{}
		rows, err := f.db.Conn().Query(t.Context(),
			"SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = $1 AND default_kind = ''", s.Table())
		require.NoError(t, err)
		for rows.Next() {
			var name, typ string
			require.NoError(t, rows.Scan(&name, &typ))
			want[name] = typ
		}
		require.NoError(t, rows.Close())
		have := map[string]string{}
		for _, c := range s.Columns() {
			require.NotContains(t, have, c.Name)
			have[c.Name] = c.Type
		}
		require.Equal(t, want, have, s.Table())
	}
}

// K22 and the rest: every kind of value comes back as it was sent, 64-bit integers exact.
func TestValuesComeBackAsTheyWereSent(t *testing.T) {
	f := setup(t)
	ctx := t.Context()
	const big = int64(9007199254740993)
	d := event.RouteDecision{
		DecisionID: "t/1", TaskID: "t", Attempt: 1, Kind: event.Route, DecidedAt: now, Deadline: now.Add(time.Hour), Fingerprint: "fp",
		Task:    &query.Task{Tenant: "ten", User: "u", SLASeconds: new(10.0), Session: &query.Session{ID: "s", Class: query.Agent}},
		Target:  event.Target{Engine: "batch", Cluster: "b1", Queue: "q", Resource: "large"},
		Reasons: []event.Reason{{Code: "history_memory_kill", Text: "it was killed"}, {Code: "lower_cost"}},
		Candidates: []event.Candidate{
			{Target: event.Target{Engine: "batch", Cluster: "b1", Queue: "q", Resource: "large"}, Rank: 1, Propensity: 1, Estimate: &event.CandidateEstimate{
				QueueMs: signal.Num(0), TotalMs: signal.Num(12.5), Evidence: event.Evidence{Level: "fingerprint", N: big},
			}},
			{Target: event.Target{Engine: "interactive", Cluster: "i1"}, Filtered: &event.Filtered{Reason: event.Reason{Code: "history_memory_kill", Text: "no"}}},
		},
		Estimates: map[string]signal.Value{"scanBytes": signal.Of(1e9, signal.Bytes, "files", now), "memoryBytes": signal.Missing("history")},
		Signals: signal.Seen{{Cluster: "b1", Facts: []signal.Fact{
			{Name: signal.Queued, Value: signal.Of(0, signal.Count, "engine", now)},
			{Name: signal.Running, Value: signal.Missing("engine")},
			{Name: signal.Slots, Value: signal.Of(4, signal.Count, "engine", now).Aged(now.Add(time.Hour), time.Second)},
		}}},
		Unknown: []string{"memoryBytes"}, Excluded: []event.Target{{Engine: "interactive", Cluster: "i1"}},
	}
	dr, err := row.FromDecision(rec(event.TopicDecisions, 3, now), d)
	require.NoError(t, err)
	f.insert(batch(row.Decisions([]row.Decision{dr}), 3, 3))
	require.EqualValues(t, 1, f.count(`SELECT count() FROM decisions WHERE tenant = 'ten' AND session_class = 'agent' AND sla_ms = 10000
		AND reasons = ['history_memory_kill','lower_cost'] AND reason_texts = ['it was killed',''] AND resource = 'large'
		AND candidates.cluster = ['b1','i1'] AND candidates.filter_code = ['','history_memory_kill'] AND candidates.rank = [1,0]
		AND candidates.est_queue_ms[1] = 0 AND candidates.est_queue_ms[2] IS NULL AND candidates.n[1] = 9007199254740993 AND candidates.n[2] IS NULL
		AND est_queue_ms = 0 AND est_total_ms = 12.5 AND est_exec_ms IS NULL AND evidence_n = 9007199254740993 AND propensity = 1
		AND est_scan_bytes = 1e9 AND est_memory_bytes IS NULL AND mapKeys(estimates) = ['scanBytes']
		AND signals = map('b1.queued', 0) AND signals_stale = map('b1.slots', 4) AND signals_missing = ['b1.running']
		AND excluded = ['interactive/i1'] AND unknown = ['memoryBytes'] AND submitted_at IS NULL AND deadline = decided_at + INTERVAL 1 HOUR`))

	o := outcome(1, now)
	o.Stats = event.Stats{ReadBytes: new(big)}
	or, err := row.FromOutcome(rec(event.TopicOutcomes, 4, now), o)
	require.NoError(t, err)
	f.insert(batch(row.Outcomes([]row.Outcome{or}), 4, 4))
	require.EqualValues(t, big, f.count("SELECT assumeNotNull(read_bytes) FROM outcomes"))
	require.EqualValues(t, 1, f.count("SELECT count() FROM outcomes WHERE queue_ms IS NULL AND exec_ms IS NULL AND started_at IS NULL AND est_scan_bytes IS NULL"))

	s := signal.Observation{Cluster: "c", Source: "engine", At: now, Values: map[signal.Name]signal.Value{
		signal.Healthy: signal.OfFlag(false, "engine", now), signal.Queued: signal.Of(0, signal.Count, "engine", now), signal.Running: signal.Missing("engine"),
		"backends": signal.Of(3, signal.Count, "engine", now),
	}}
	sr, err := row.FromObservation(rec(event.TopicSignals, 5, now), s)
	require.NoError(t, err)
	f.insert(batch(row.Samples([]row.Sample{sr}), 5, 5))
	require.EqualValues(t, 1, f.count("SELECT count() FROM queue_samples WHERE healthy = false AND ready IS NULL AND queued = 0 AND running IS NULL AND other = map('backends', 3)"))

	task := query.Task{ID: "t", Tenant: "ten", SQL: "SELECT 'ü\n\n;'", CommitTS: new(-big), Tags: []string{"a", "b"}, Priority: -3}
	tr, err := row.FromTask(rec(event.TopicRequests, 6, now), task)
	require.NoError(t, err)
	cr, err := row.FromCancel(rec(event.TopicRequests, 7, now), event.Cancel{TaskID: "t", Reason: "no longer"})
	require.NoError(t, err)
	f.insert(batch(row.Requests([]row.Request{tr, cr}), 6, 7))
	var sql string
	var commit *int64
	var priority int32
	require.NoError(t, f.db.Conn().QueryRow(ctx, "SELECT sql_text, commit_ts, priority FROM requests FINAL WHERE kind = 'request' AND sla_ms IS NULL").Scan(&sql, &commit, &priority))
	require.Equal(t, task.SQL, sql)
	require.Equal(t, -big, *commit)
	require.EqualValues(t, -3, priority)
	require.EqualValues(t, 1, f.count("SELECT count() FROM requests FINAL WHERE kind = 'cancel' AND reason = 'no longer'"))
}
