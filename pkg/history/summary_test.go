package history_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history/row"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
)

func TestSummaryAndViews(t *testing.T) {
	f := setup(t)
	ctx := t.Context()
	empty, err := f.r.Summary(ctx, now.Add(-time.Hour), now.Add(time.Hour))
	require.NoError(t, err)
	require.Nil(t, empty.SLA.Rate, "no sample, no rate")
	text, err := json.Marshal(empty)
	require.NoError(t, err)
	require.Contains(t, string(text), `"sla":{"n":"0","hits":"0","rate":null`)

	// One Task is rescued, the next of its kind is routed by history, a third is rejected, a fourth is still open.
	task := func(id string) query.Task {
		return query.Task{ID: id, Tenant: "ten", SQL: "SELECT " + id, SubmittedAt: &now}
	}
	var requests []row.Request
	for i, id := range []string{"rescued", "second", "rejected", "open"} {
		r, err := row.FromTask(rec(event.TopicRequests, int64(i), now), task(id))
		require.NoError(t, err)
		requests = append(requests, r)
	}
	f.insert(batch(row.Requests(requests), 0, 3))
	decide := func(offset int64, id string, n int, cluster, reason string, kind event.DecisionKind) row.Decision {
		tk := task(id)
		d := event.RouteDecision{
			DecisionID: id + string(rune('0'+n)), TaskID: id, Attempt: n, Kind: kind, Task: &tk, DecidedAt: now, Fingerprint: "fp",
			Target: event.Target{Engine: cluster, Cluster: cluster + "-1", Queue: "q"}, Verdict: "light", Reasons: []event.Reason{{Code: reason}},
		}
		if kind == event.Reject {
			d.Target, d.Rejection = event.Target{}, &event.Rejection{Code: "session_budget", Message: "no more", Suggestion: "wait"}
		} else {
			d.Candidates = []event.Candidate{
				{Target: d.Target, Rank: 1, Estimate: &event.CandidateEstimate{QueueMs: signal.Num(7)}},
				{Target: event.Target{Engine: "x", Cluster: "x-1"}, Filtered: &event.Filtered{Reason: event.Reason{Code: "cluster_unhealthy"}}},
			}
		}
		r, err := row.FromDecision(rec(event.TopicDecisions, offset, now), d)
		require.NoError(t, err)
		return r
	}
	f.insert(batch(row.Decisions([]row.Decision{
		decide(0, "rescued", 1, "interactive", "lower_cost", event.Route), decide(1, "rescued", 2, "batch", "rerouted_after_failure", event.Route),
		decide(2, "second", 1, "batch", "history_memory_kill", event.Route), decide(3, "rejected", 1, "", "session_budget", event.Reject),
		decide(4, "open", 1, "batch", "lower_cost", event.Route),
	}), 0, 4))
	f.attempts(0, end("rescued", 1, "failed", "memory_limit", "interactive", "fp", now), end("rescued", 2, "succeeded", "", "batch", "fp", now.Add(time.Second)),
		end("second", 1, "succeeded", "", "batch", "fp", now.Add(2*time.Second)))
	var outs []row.Outcome
	for i, o := range []event.Outcome{
		{TaskID: "rescued", Status: event.Succeeded, Attempts: 2, Rerouted: true, SLAHit: true, Reasons: []string{"rerouted_after_failure"}, Stats: event.Stats{ReadBytes: new(int64(9007199254740993)), QueueMs: new(int64(3))}},
		{TaskID: "second", Status: event.Succeeded, Attempts: 1, Reasons: []string{"history_memory_kill"}},
		{TaskID: "rejected", Status: event.Rejected, Reasons: []string{"session_budget"}, Rejection: &event.Rejection{Code: "session_budget"}},
	} {
		o.Tenant, o.Fingerprint, o.SubmittedAt, o.FinishedAt, o.SLAMs, o.TotalMs, o.Verdict = "ten", "fp", now, now.Add(3*time.Second), 10_000, 3000, "light"
		if o.Status != event.Rejected {
			o.Target = event.Target{Engine: "batch", Cluster: "batch-1", Queue: "q"}
		}
		r, err := row.FromOutcome(rec(event.TopicOutcomes, int64(i), now), o)
		require.NoError(t, err)
		outs = append(outs, r)
	}
	f.insert(batch(row.Outcomes(outs), 0, 2))
	require.NoError(t, f.w.Rollup(ctx, []time.Time{now.Truncate(time.Hour)}))

	s, err := f.r.Summary(ctx, now.Add(-time.Hour), now.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, [4]int64{4, 3, 1, 1}, [4]int64{s.Submitted, s.Ended, s.Rescued, s.RoutedByHistory})
	require.Equal(t, [2]int64{2, 1}, [2]int64{s.SLA.N, s.SLA.Hits})
	require.Len(t, s.Targets, 3)
	text, err = json.Marshal(s)
	require.NoError(t, err)
	require.Contains(t, string(text), `"readBytes":"9007199254740993"`, "K22")
	require.Contains(t, string(text), `"rejections":[{"name":"session_budget","n":"1"}]`)

	hours, err := f.r.QueueHours(ctx, now.Add(-24*time.Hour))
	require.NoError(t, err)
	require.Len(t, hours, 2)
	require.EqualValues(t, 2, hours[0].Ms.N)
	require.Equal(t, 7.0, *hours[0].Estimated.P50)

	for query, want := range map[string]uint64{
		"SELECT count() FROM v_tasks": 4,
		"SELECT count() FROM v_tasks WHERE status = 'open' AND task_id = 'open' AND sla_hit IS NULL AND finished_at IS NULL AND first_cluster = 'batch-1'":                               1,
		"SELECT count() FROM v_tasks WHERE task_id = 'rescued' AND attempts = 2 AND first_cluster = 'interactive-1' AND cluster = 'batch-1' AND sla_hit AND sql_text = 'SELECT rescued'": 1,
		"SELECT count() FROM v_tasks WHERE rejection_code = 'session_budget' AND status = 'rejected'":                                                                                    1,
		"SELECT count() FROM v_attempts WHERE task_id = 'rescued'":                                                                                                                       2,
		"SELECT count() FROM v_attempts WHERE memory_kill AND state = 'failed' AND error_class = 'memory_limit' AND queue_ms = 5":                                                        1,
		"SELECT count() FROM v_rescued WHERE killed_cluster = 'interactive-1' AND rescued_cluster = 'batch-1' AND rescued_attempt = 2":                                                   1,
		"SELECT count() FROM v_routed_by_history WHERE task_id = 'second' AND has(history_codes, 'history_memory_kill')":                                                                 1,
		"SELECT count() FROM v_rejections WHERE rejection_code = 'session_budget' AND suggestion = 'wait'":                                                                               1,
		"SELECT sum(n) FROM v_filtered_candidates WHERE filter_code = 'cluster_unhealthy'":                                                                                               4,
		"SELECT count() FROM v_attempt_gaps":                                         0,
		"SELECT sum(rescued) FROM v_misroutes":                                       1,
		"SELECT sum(under_routed) FROM v_misroutes":                                  2,
		"SELECT toUInt64(sum(duplicates) + sum(conflicting)) FROM v_pipeline_health": 0,
		"SELECT final_rows FROM v_pipeline_health WHERE name = 'outcomes'":           3,
	} {
		require.Equal(t, want, f.count(query), query)
	}
}

func TestAttemptGaps(t *testing.T) {
	f := setup(t)
	change := func(seq int, prev, state string) event.Attempt {
		a := end("t1", 1, state, "", "e", "fp", now)
		a.Seq, a.Prev = seq, prev
		return a
	}
	f.attempts(0, change(1, "", "awaiting_slot"), change(2, "awaiting_slot", "claimed"), change(3, "claimed", "running"), change(4, "delivering", "succeeded"))
	require.EqualValues(t, 1, f.count("SELECT count() FROM v_attempt_gaps"))
	require.EqualValues(t, 1, f.count("SELECT count() FROM v_attempt_gaps WHERE seq = 4 AND recorded_before = 'running' AND prev_state = 'delivering'"))
}
