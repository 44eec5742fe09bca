package executor_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
)

func header(rec *kgo.Record, key string) string {
	for _, h := range rec.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

func TestRepeatsAndConflicts(t *testing.T) {
	b := newBench(t, 1)
	hold := make(chan struct{})
	b.servers[interactive].on("LONG", behaviour{hold: hold, rows: 1})
	b.start()
	d := b.route("t1", "LONG")
	again := d
	again.Cluster = batch // decided anew after a crash of the router: the first in the log wins
	b.decide(d, again)
	b.change("t1/1", "running")
	b.decide(b.route("t1", "OTHER"))
	close(hold)
	require.Equal(t, interactive, b.outcome("t1").Cluster)
	b.decide(d, b.route("t1", "ANOTHER"))
	b.committed()
	b.once()
	dead := b.broker.Records(t, event.TopicDeadLetter)
	require.Len(t, dead, 2)
	for _, rec := range dead {
		require.Contains(t, header(rec, stream.DLQMessage), "duplicate id with another body")
		require.Equal(t, "decisions", header(rec, stream.DLQTopic))
	}
}

func TestWhatCantBeReadGoesToTheDeadLetters(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	b.start()
	typed := kgo.RecordHeader{Key: "ce_type", Value: []byte(event.DecisionRouted)}
	b.raw("a", []byte("no JSON"), typed)
	b.raw("b", nil, typed)
	b.raw("c", []byte(`{"taskId":"c"}`))
	b.raw("d", []byte(`{"taskId":1}`), typed)
	b.raw("e", []byte(`{"taskId":"../x","attempt":1,"kind":"route"}`), typed)
	b.raw("f", []byte(`{"taskId":"f","attempt":1,"kind":"defer"}`), typed)
	b.raw("g", []byte(`{"taskId":"g","attempt":0,"kind":"route"}`), typed)
	b.raw("h", []byte(`{"taskId":"h","attempt":1,"kind":"route"}`), typed)
	b.raw("i", []byte(`{"taskId":"i","attempt":"first","kind":"route"}`), typed)
	b.decide(b.route("t1", "SELECT"))
	require.Equal(t, event.Succeeded, b.outcome("t1").Status, "what can't be read holds nothing up")
	b.committed()
	classes := map[string]string{}
	for _, rec := range b.broker.Records(t, event.TopicDeadLetter) {
		classes[string(rec.Key)] = header(rec, stream.DLQClass)
	}
	require.Equal(t, map[string]string{
		"a": "not_json", "b": "null_value", "c": "missing_type", "d": "bad_payload", "e": "bad_payload", "f": "unknown_type", "g": "bad_payload", "h": "bad_payload", "i": "bad_payload",
	}, classes)
	for id, why := range map[string]string{"f": `kind "defer"`, "g": "attempt", "h": "SQL", "i": "attempt"} {
		o := b.outcome(id)
		require.Equal(t, event.Rejected, o.Status, "a Task that is named ends")
		require.Equal(t, "unusable_decision", o.Rejection.Code)
		require.Contains(t, o.Rejection.Message, why)
	}
	require.Len(t, b.outcomes(), 5, "what names no Task ends none")
}

// TestATaskWithoutSQLEnds is a Task that the router routes although it has only an intent.
func TestATaskWithoutSQLEnds(t *testing.T) {
	b := newBench(t, 1)
	b.start()
	b.decide(b.route("t1", "", func(d *event.RouteDecision) { d.Task.Intent = json.RawMessage(`{"measure":"revenue"}`) }))
	o := b.outcome("t1")
	require.Equal(t, event.Rejected, o.Status)
	require.Equal(t, "tenant_a", o.Tenant)
	require.Contains(t, o.Rejection.Message, "SQL")
	b.committed()
	require.Len(t, b.broker.Records(t, event.TopicDeadLetter), 1)
	require.Empty(t, b.servers[interactive].counts())
}

// TestAFurtherDecisionThatCantBeUsedEndsTheTask is one that a Task waits for.
func TestAFurtherDecisionThatCantBeUsedEndsTheTask(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].setDown(true)
	b.start()
	b.decide(b.route("t1", "SELECT"))
	b.change("t1/1", "failed")
	b.decide(b.route("t1", "SELECT", func(d *event.RouteDecision) { d.DecisionID, d.Attempt, d.Task = "t1/2", 2, nil }))
	o := b.outcome("t1")
	require.Equal(t, event.Failed, o.Status)
	require.Equal(t, "unusable_decision", o.Rejection.Code)
	b.committed()
}

// TestASubmissionInTheFuture comes from a producer whose clock is wrong: nothing takes less than no time, and the reader is told.
func TestASubmissionInTheFuture(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	b.start()
	ahead := func(by time.Duration) func(*event.RouteDecision) {
		return func(d *event.RouteDecision) {
			at := d.Task.SubmittedAt.Add(by)
			d.Task.SubmittedAt = &at
		}
	}
	b.decide(b.route("t1", "SELECT", ahead(30*time.Second)), b.route("t2", "SELECT", ahead(-30*time.Second)))
	o := b.outcome("t1")
	require.Zero(t, o.TotalMs)
	require.Equal(t, o.SubmittedAt, o.FinishedAt)
	require.Equal(t, o.SubmittedAt, *o.StartedAt)
	var by int64
	require.NoError(t, json.Unmarshal(o.Extra["submittedAheadMs"], &by))
	require.InDelta(t, 30_000, by, 10_000)
	o = b.outcome("t2")
	require.InDelta(t, 30_000, o.TotalMs, 10_000)
	require.Empty(t, o.Extra)
}
