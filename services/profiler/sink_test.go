package profiler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
)

// Counts in the history equal the topics by id, repeats and all.
func TestCountsEqualTheTopics(t *testing.T) {
	b := newBench(t)
	b.live(0, 60)
	b.live(20, 20) // written again, as after a crash
	b.start(b.cfg)
	b.caughtUp()
	for query, want := range map[string]uint64{
		"SELECT count() FROM requests FINAL":                              60,
		"SELECT count() FROM decisions FINAL":                             60 + 12,
		"SELECT count() FROM attempts FINAL":                              3 * (60 + 12),
		"SELECT count() FROM attempt_ends FINAL":                          60 + 12,
		"SELECT count() FROM outcomes FINAL":                              60,
		"SELECT uniqExact(task_id) FROM outcomes":                         60,
		"SELECT count() FROM v_rescued":                                   12,
		"SELECT toUInt64(sum(conflicting)) FROM v_pipeline_health":        0,
		"SELECT count() FROM v_tasks WHERE status = 'succeeded'":          60,
		"SELECT count() FROM v_tasks WHERE attempts = 2 AND cluster='b1'": 12,
	} {
		require.Equal(t, want, b.count(query), query)
	}
	b.eventually(60, "SELECT sum(n30) FROM v_sla_hit_rate")
	b.eventually(45, "SELECT sum(hits30) FROM v_sla_hit_rate")
	b.eventually(12, "SELECT sum(memory_kills) FROM attempt_1h FINAL")
	require.Empty(t, b.deadLetters())
}

// K18: replaying any range with other batch limits changes no number, to the digit.
func TestReplaysChangeNoNumber(t *testing.T) {
	b := newBench(t)
	b.live(0, 300)
	_, stop := b.start(b.cfg)
	b.caughtUp()
	b.eventually(300, "SELECT sum(n30) FROM v_sla_hit_rate")
	numbers := func() string {
		var s string
		require.NoError(t, b.db.Conn().QueryRow(t.Context(), `SELECT toString((
			(SELECT (sum(n7), sum(hits7), avg(rate7), avg(low7), sum(n30)) FROM v_sla_hit_rate),
			(SELECT (sum(runs), sum(successes), sum(memory_kills), sum(exec_sum), max(peak_max)) FROM attempt_1h FINAL),
			(SELECT (sum(n), sum(waited)) FROM qwait_1h FINAL),
			(SELECT count() FROM outcomes FINAL), (SELECT count() FROM attempts FINAL), (SELECT count() FROM requests FINAL), (SELECT count() FROM decisions FINAL)))`).Scan(&s))
		return s
	}
	before := numbers()
	stop()
	for _, rows := range []int{7, 40, 10_000} {
		b.rewind(50)
		cfg := b.cfg
		cfg.Sink.BatchRows = rows
		last := b.count("SELECT max(rev) FROM rollup_rev")
		_, stop := b.start(cfg)
		b.caughtUp()
		require.Eventually(t, func() bool { n, err := b.try("SELECT max(rev) FROM rollup_rev"); return err == nil && n > last }, 20*time.Second, 20*time.Millisecond)
		stop()
		require.Equal(t, before, numbers(), "batches of %d", rows)
	}
}

// rewind sets the group back to an offset in every partition.
func (b *bench) rewind(offset int64) {
	b.t.Helper()
	cl := b.broker.Client(b.t)
	defer cl.Close()
	for _, topic := range []string{event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes} {
		for p := range int32(partitions) {
			b.commit(cl, topic, p, offset)
		}
	}
}

// K7, K8, K21, K24: what can't be read or stored goes to the dead letters, once, with its coordinates, and everything else goes in.
func TestBadRecordsCostThemselvesOnly(t *testing.T) {
	b := newBench(t)
	good := func(i int) *kgo.Record { return b.record(event.TopicOutcomes, outcome(i), 0) }
	bad := []*kgo.Record{
		{Key: []byte("raw"), Value: []byte("\x00\x01not json"), Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte(event.TaskEnded)}}},
		{Key: []byte("none"), Value: nil, Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte(event.TaskEnded)}}},
		{Key: []byte("untyped"), Value: []byte(`{}`)},
		{Key: []byte("future"), Value: []byte(`{}`), Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte("pointsman.task.ended.v9")}}},
		{Key: []byte("types"), Value: []byte(`{"taskId":1}`), Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte(event.TaskEnded)}}},
		b.record(event.TopicOutcomes, func() event.Outcome { o := outcome(1); o.TaskID = "wide"; o.Attempts = 70_000; return o }(), 0),
		b.record(event.TopicOutcomes, func() event.Outcome { o := outcome(1); o.TaskID = "neg"; o.Stats.ReadBytes = new(int64(-1)); return o }(), 0),
		b.record(event.TopicOutcomes, func() event.Outcome { o := outcome(1); o.TaskID = "nil"; o.Tenant = ""; return o }(), 0),
		b.record(event.TopicOutcomes, func() event.Outcome {
			o := outcome(1)
			o.TaskID, o.FinishedAt = "late", time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
			return o
		}(), 0),
	}
	traced := good(1000)
	traced.Headers = append(traced.Headers, kgo.RecordHeader{Key: "traceparent", Value: []byte("00-zz-bad")}, kgo.RecordHeader{Key: "traceparent", Value: nil})
	recs := []*kgo.Record{bad[0]}
	for i := range 200 { // bad ones at the head, in the middle and at the end of the partition
		recs = append(recs, good(i))
		if i%30 == 29 && 1+i/30 < len(bad)-1 {
			recs = append(recs, bad[1+i/30])
		}
	}
	recs = append(recs, bad[7], traced, bad[8])
	for _, r := range recs {
		r.Topic, r.Partition = event.TopicOutcomes, 0
	}
	require.NoError(t, b.broker.Client(t).ProduceSync(t.Context(), recs...).FirstErr())
	b.start(b.cfg)
	b.caughtUp()
	require.EqualValues(t, 201, b.count("SELECT count() FROM outcomes"))
	letters := b.deadLetters()
	require.Len(t, letters, len(bad))
	classes := map[string]int{}
	for _, l := range letters {
		classes[header(l, stream.DLQClass)]++
		require.Equal(t, event.TopicOutcomes, header(l, stream.DLQTopic))
		require.NotEmpty(t, header(l, stream.DLQOffset))
		require.Equal(t, "profiler", header(l, stream.DLQStage))
		if string(l.Key) == "wide" {
			require.Contains(t, header(l, stream.DLQMessage), "outcomes.attempts")
		}
	}
	require.Equal(t, map[string]int{"not_json": 1, "null_value": 1, "missing_type": 1, "unknown_type": 1, "bad_payload": 5}, classes)
}

// What the router dead-letters and rejects is not in the dead letters twice; what only the history can't store is there.
func TestBadRequestsAreLeftToTheRouter(t *testing.T) {
	b := newBench(t)
	recs := []*kgo.Record{
		{Key: []byte("raw"), Value: []byte("{")},
		{Key: []byte("no tenant"), Value: []byte(`{"id":"x","sql":"SELECT 1"}`)},
		{Key: []byte("ok"), Value: []byte(`{"dataset":"orders","queryType":"aggregation","sql":"SELECT 1","tenant":"tenant_a","user":"user_1001","slaSeconds":10}`)},
		{Key: []byte("wide"), Value: []byte(`{"id":"wide","sql":"SELECT 1","tenant":"a","priority":99999999999}`)},
	}
	for _, r := range recs {
		r.Topic, r.Partition = event.TopicRequests, 1
	}
	require.NoError(t, b.broker.Client(t).ProduceSync(t.Context(), recs...).FirstErr())
	b.start(b.cfg)
	b.caughtUp()
	require.EqualValues(t, 1, b.count("SELECT count() FROM requests WHERE dataset = 'orders' AND sla_ms = 10000 AND startsWith(task_id, 't-')"))
	letters := b.deadLetters()
	require.Len(t, letters, 1)
	require.Contains(t, header(letters[0], stream.DLQMessage), "requests.priority")
}

// K23: a producer's clock that is ten days off, both ways, makes no new partition and loses nothing.
func TestClocksThatAreDaysOff(t *testing.T) {
	b := newBench(t)
	var recs []*kgo.Record
	for i, off := range []time.Duration{10 * time.Minute, 240 * time.Hour, -10 * time.Minute, -240 * time.Hour} {
		at := time.Now().Add(off).UTC()
		r := b.record(event.TopicRequests, map[string]any{"id": fmt.Sprintf("off-%d", i), "sql": "SELECT 1", "tenant": "a", "submittedAt": at.Format(time.RFC3339Nano)}, 0)
		r.Topic, r.Key = event.TopicRequests, []byte("k")
		r.Headers = nil
		if off > 0 {
			r.Timestamp = at // the record's own stamp is the producer's
		}
		recs = append(recs, r)
	}
	require.NoError(t, b.broker.Client(t).ProduceSync(t.Context(), recs...).FirstErr())
	b.start(b.cfg)
	b.caughtUp()
	require.EqualValues(t, 4, b.count("SELECT count() FROM requests"))
	require.EqualValues(t, 4, b.count("SELECT count() FROM requests WHERE ts_clamped AND abs(dateDiff('second', submitted_at, now())) < 120"))
	require.EqualValues(t, 4, b.count("SELECT count() FROM requests WHERE abs(dateDiff('second', submitted_at_event, now())) > 500"), "what was written is kept")
}

func outcome(i int) event.Outcome {
	at := time.Now().Add(-3 * time.Second).UTC().Truncate(time.Millisecond)
	return event.Outcome{
		TaskID: fmt.Sprintf("task-%d", i), Status: event.Succeeded, Tenant: "ten", Fingerprint: "fp",
		Target: event.Target{Engine: "e", Cluster: "c"}, Attempts: 1, SubmittedAt: at, FinishedAt: at, SLAMs: 1000, SLAHit: true,
	}
}
