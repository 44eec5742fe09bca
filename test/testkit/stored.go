package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
)

var decisionTypes = []event.Type{event.DecisionRouted, event.DecisionRejected, event.DecisionCancel}

// stored are the tables that hold a topic each, with the id that their rows have.
var stored = []struct {
	topic, sql string
	id         func(*kgo.Record, stream.Envelope) string
}{
	{event.TopicRequests, "SELECT concat(task_id, ' ', kind), k_offset FROM requests FINAL", RequestID},
	{event.TopicDecisions, "SELECT decision_id, k_offset FROM decisions FINAL", func(_ *kgo.Record, env stream.Envelope) string {
		var d event.RouteDecision
		if json.Unmarshal(env.Data, &d) != nil || !slices.Contains(decisionTypes, env.Type) {
			return ""
		}
		return d.DecisionID
	}},
	{event.TopicAttempts, "SELECT concat(attempt_id, '#', toString(seq)), k_offset FROM attempts FINAL", func(_ *kgo.Record, env stream.Envelope) string {
		var a event.Attempt
		if json.Unmarshal(env.Data, &a) != nil || !env.Type.IsAttempt() || a.AttemptID == "" {
			return ""
		}
		return fmt.Sprintf("%s#%d", a.AttemptID, a.Seq)
	}},
	{event.TopicOutcomes, "SELECT task_id, k_offset FROM outcomes FINAL", func(_ *kgo.Record, env stream.Envelope) string {
		var o event.Outcome
		if json.Unmarshal(env.Data, &o) != nil || env.Type != event.TaskEnded {
			return ""
		}
		return o.TaskID
	}},
}

// storeTime is how long the profiler may take to catch up with the topics.
const storeTime = 2 * time.Minute

// judgeHistory holds ClickHouse against the topics, by id: the same ids, and of each the record with the lowest offset.
func (w *World) judgeHistory(f *Findings) {
	w.T.Helper()
	for _, s := range stored {
		want, records := w.firsts(s.topic, s.id)
		if s.topic == event.TopicDecisions {
			f.Decisions, f.DecisionRecords = len(want), records
		}
		var have map[string]uint64
		for late := time.Now().Add(storeTime); ; time.Sleep(250 * time.Millisecond) {
			have = w.Rows(s.sql)
			if cmp.Equal(want, have) || time.Now().After(late) {
				break
			}
		}
		require.Empty(w.T, cmp.Diff(want, have), "ClickHouse differs from the topic %s (-topic +ClickHouse)", s.topic)
	}
	w.judgeValues()
	began := time.Now()
	w.judgeRollups()
	f.Rolling = time.Since(began)
}

// judgeValues compares what ClickHouse says of every Outcome with the record.
func (w *World) judgeValues() {
	w.T.Helper()
	type row struct {
		Status  string
		Cluster string
		TotalMs uint64
		SLAHit  bool
		At      int64 // Unix milliseconds: the same instant, whatever the zone of whoever wrote it
	}
	want, have := map[string]row{}, map[string]row{}
	unbelievable := map[string]bool{} // a producer's clock was off: the history says so, and gives no time
	for _, rec := range w.Log.Records(event.TopicOutcomes) {
		o, ok := outcomeOf(rec)
		if !ok {
			continue
		}
		if _, ok := want[o.TaskID]; !ok {
			want[o.TaskID] = row{string(o.Status), o.Cluster, uint64(o.TotalMs), o.SLAHit, o.FinishedAt.UnixMilli()}
			if o.FinishedAt.Sub(o.SubmittedAt) > 24*time.Hour {
				unbelievable[o.TaskID] = true
			}
		}
	}
	rows, err := w.DB.Conn().Query(context.Background(), "SELECT task_id, status, cluster, total_ms, sla_hit, toUnixTimestamp64Milli(finished_at_event), ts_clamped FROM outcomes FINAL")
	require.NoError(w.T, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id string
		var r row
		var clamped bool
		require.NoError(w.T, rows.Scan(&id, &r.Status, &r.Cluster, &r.TotalMs, &r.SLAHit, &r.At, &clamped))
		if clamped && unbelievable[id] {
			r.TotalMs = want[id].TotalMs
		}
		require.False(w.T, clamped && !unbelievable[id], "nothing is wrong with the clocks of %s", id)
		have[id] = r
	}
	require.NoError(w.T, rows.Err())
	require.Empty(w.T, cmp.Diff(want, have), "outcomes in ClickHouse differ from the topic (-topic +ClickHouse)")
}

// judgeRollups waits until the hourly rollups say what the topic says, hour by hour. The hours are UTC's, whatever the zone of the
// profiler, of the engine and of this test.
func (w *World) judgeRollups() {
	w.T.Helper()
	const rollup = `SELECT concat(toString(toUnixTimestamp(hour)), ' ', part), n FROM
(SELECT hour, [('n', toUInt64(sum(n))), ('hits', toUInt64(sum(hits)))] AS parts FROM sla_1h FINAL
 WHERE (hour, rev) IN (SELECT hour, max(rev) FROM rollup_rev GROUP BY hour) GROUP BY hour)
ARRAY JOIN parts.1 AS part, parts.2 AS n`
	want := map[string]uint64{}
	seen := map[string]bool{}
	for _, rec := range w.Log.Records(event.TopicOutcomes) {
		o, ok := outcomeOf(rec)
		if !ok || seen[o.TaskID] {
			continue
		}
		seen[o.TaskID] = true
		hour := o.FinishedAt.Unix() / 3600 * 3600
		want[fmt.Sprintf("%d n", hour)]++
		want[fmt.Sprintf("%d hits", hour)] += 0
		if o.SLAHit {
			want[fmt.Sprintf("%d hits", hour)]++
		}
	}
	var have map[string]uint64
	for late := time.Now().Add(storeTime); ; time.Sleep(250 * time.Millisecond) {
		if have = w.Rows(rollup); cmp.Equal(want, have) || time.Now().After(late) {
			break
		}
	}
	require.Empty(w.T, cmp.Diff(want, have), "the hourly rollups are not those of the topic (-topic +ClickHouse)")
}

// Rows are the rows of a query of an id and a number.
func (w *World) Rows(sql string) map[string]uint64 {
	w.T.Helper()
	rows, err := w.DB.Conn().Query(context.Background(), sql)
	require.NoError(w.T, err)
	defer func() { _ = rows.Close() }()
	out := map[string]uint64{}
	for rows.Next() {
		var id string
		var n uint64
		require.NoError(w.T, rows.Scan(&id, &n))
		_, twice := out[id]
		require.False(w.T, twice, "two rows of %s", id)
		out[id] = n
	}
	require.NoError(w.T, rows.Err())
	return out
}

// Count is the number that a query gives.
func (w *World) Count(sql string, args ...any) (n uint64) {
	w.T.Helper()
	require.NoError(w.T, w.DB.Conn().QueryRow(context.Background(), sql, args...).Scan(&n))
	return n
}
