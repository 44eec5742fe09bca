package router

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
)

var now = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)

func record(value string, headers ...string) *kgo.Record {
	r := &kgo.Record{Topic: "requests", Partition: 2, Offset: 7, Timestamp: now.Add(-time.Second), Value: []byte(value)}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: headers[i], Value: []byte(headers[i+1])})
	}
	return r
}

// TestReadRequests is the table of what a producer may send: what gets routed, what is dead-lettered, and what is rejected
// besides, because its id could be read.
func TestReadRequests(t *testing.T) {
	null := record("")
	null.Value = nil
	for _, c := range []struct {
		name    string
		rec     *kgo.Record
		id      string // of the task
		class   stream.FaultClass
		invalid string // id of the rejected task
		cancel  string
	}{
		{name: "the seed's bare JSON", rec: record(`{"dataset":"orders","queryType":"aggregation","sql":"SELECT 1","tenant":"tenant_a","user":"user_1001","slaSeconds":10}`), id: query.IDFromRecord("requests", 2, 7)},
		{name: "its own id", rec: record(`{"id":"abc","sql":"SELECT 1","tenant":"t"}`), id: "abc"},
		{name: "an idempotency key", rec: record(`{"idempotencyKey":"k","sql":"SELECT 1","tenant":"t"}`), id: query.IDFromKey("t", "k")},
		{name: "binary CloudEvent", rec: record(`{"sql":"SELECT 1","tenant":"t"}`, "ce_type", string(event.QueryRequested), "ce_id", "e1", "ce_source", "bi"), id: query.IDFromKey("ce:bi", "e1")},
		{name: "structured CloudEvent", rec: record(`{"specversion":"1.0","type":"pointsman.query.requested.v1","id":"e1","source":"bi","data":{"id":"x1","sql":"SELECT 1","tenant":"t"}}`, "content-type", "application/cloudevents+json"), id: "x1"},
		{name: "malformed traceparent is ignored", rec: record(`{"id":"abc","sql":"SELECT 1","tenant":"t"}`, "traceparent", "nonsense"), id: "abc"},
		{name: "SQL that no parser reads is routed all the same", rec: record(`{"id":"abc","sql":"))) FROM ???","tenant":"t"}`), id: "abc"},
		{name: "not JSON", rec: record(`hello`), class: stream.FaultNotJSON},
		{name: "null value", rec: null, class: stream.FaultNullValue},
		{name: "an array", rec: record(`[1]`), class: stream.FaultSchema},
		{name: "wrong type, id readable", rec: record(`{"id":"abc","sql":1,"tenant":"t"}`), class: stream.FaultSchema, invalid: "abc"},
		{name: "wrong type, id not readable", rec: record(`{"id":5,"sql":1}`), class: stream.FaultSchema},
		{name: "neither sql nor intent", rec: record(`{"id":"abc","tenant":"t"}`), class: stream.FaultSchema, invalid: "abc"},
		{name: "no tenant", rec: record(`{"id":"abc","sql":"SELECT 1"}`), class: stream.FaultSchema, invalid: "abc"},
		{name: "negative SLA", rec: record(`{"id":"abc","sql":"SELECT 1","tenant":"t","slaSeconds":-1}`), class: stream.FaultSchema, invalid: "abc"},
		{name: "absurd SLA", rec: record(`{"id":"abc","sql":"SELECT 1","tenant":"t","slaSeconds":1e12}`), class: stream.FaultSchema, invalid: "abc"},
		{name: "a bad id can't be rejected under it", rec: record(`{"id":"a/b","sql":"SELECT 1","tenant":"t"}`), class: stream.FaultSchema},
		{name: "type of another world", rec: record(`{"id":"abc"}`, "ce_type", "com.example.thing.v1"), class: stream.FaultUnknownType},
		{name: "cancel", rec: record(`{"taskId":"abc"}`, "ce_type", string(event.CancelRequested)), cancel: "abc"},
		{name: "cancel of nothing", rec: record(`{}`, "ce_type", string(event.CancelRequested)), class: stream.FaultSchema},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := read(c.rec, event.TopicRequests, query.Limits{}, now)
			if c.class != "" {
				require.NotNil(t, r.fault)
				require.Equal(t, c.class, r.fault.Class)
				require.NotEmpty(t, r.fault.Error())
				require.Nil(t, r.task)
			} else {
				require.Nil(t, r.fault)
			}
			if c.id != "" {
				require.NotNil(t, r.task)
				require.Equal(t, c.id, r.task.ID)
				require.NotNil(t, r.task.SubmittedAt)
			}
			if c.invalid != "" {
				require.NotNil(t, r.invalid)
				require.Equal(t, c.invalid, r.invalid.task.ID)
			} else {
				require.Nil(t, r.invalid)
			}
			if c.cancel != "" {
				require.Equal(t, c.cancel, r.cancel.TaskID)
			}
		})
	}
}

// The id of a CloudEvent is not the id of its Task: a structured event that can't be read must not reject the Task of that name.
func TestAnEventsIDIsNoTasksID(t *testing.T) {
	for _, body := range []string{
		`{"specversion":"1.0","id":"somebodys-task","source":"/x","type":"` + string(event.QueryRequested) + `"}`,
		`{"specversion":"1.0","id":"somebodys-task","source":"/x","data":{"sql":"SELECT 1","tenant":"t"}}`,
	} {
		r := read(record(body, "content-type", "application/cloudevents+json"), event.TopicRequests, query.Limits{}, now)
		require.NotNil(t, r.fault)
		require.Nil(t, r.invalid)
	}
}

// What a rejection carries on must fit every reader: the history has no column for a negative SLA.
func TestARejectionCarriesNoTimeThatCantBeKept(t *testing.T) {
	for name, c := range map[string]struct {
		body          string
		sla, timeouts bool
	}{
		"negative sla":   {`"slaSeconds":-1,"timeoutSeconds":5`, false, true},
		"absurd sla":     {`"slaSeconds":1e12`, false, false},
		"zero timeout":   {`"slaSeconds":5,"timeoutSeconds":0`, true, false},
		"absurd timeout": {`"slaSeconds":5,"timeoutSeconds":1e12`, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(record(`{"id":"a","sql":"SELECT 1","tenant":"t",`+c.body+`}`), event.TopicRequests, query.Limits{}, now)
			require.NotNil(t, r.fault)
			require.Equal(t, c.sla, r.invalid.task.SLASeconds != nil)
			require.Equal(t, c.timeouts, r.invalid.task.TimeoutSeconds != nil)
		})
	}
}

func TestReadAttempts(t *testing.T) {
	at := func(body string, typ event.Type) request {
		return read(record(body, "ce_type", string(typ)), event.TopicAttempts, query.Limits{}, now)
	}
	require.True(t, at(`{"attemptId":"a/1","state":"running"}`, event.AttemptType("running")).skip)
	require.True(t, at(`{"attemptId":"a/1","state":"failed","remedy":"failover"}`, event.AttemptType("failed")).skip)
	r := at(`{"attemptId":"a/1","taskId":"a","number":1,"state":"failed","remedy":"reroute","decision":{"taskId":"a","task":{"id":"a","sql":"SELECT 1","tenant":"t"}}}`, event.AttemptType("failed"))
	require.NotNil(t, r.reroute)
	require.Equal(t, 1, r.reroute.Number)
	require.NotNil(t, at(`{"attemptId":"a/1","state":"failed","remedy":"reroute"}`, event.AttemptType("failed")).fault)
	for _, odd := range []request{at(`{}`, event.TaskEnded), at(`{"remedy":"reroute","number":"x"}`, event.AttemptType("failed")), at(`junk`, event.AttemptType("failed"))} {
		require.True(t, odd.skip, "the profiler dead-letters it, and once is enough")
		require.Nil(t, odd.fault)
	}
}

func TestSubmittedAtIsBelievedWithinReason(t *testing.T) {
	stamp := func(own time.Time) time.Time {
		return submittedAt(query.Task{SubmittedAt: &own}, stream.Envelope{}, record(`{}`), now)
	}
	arrived := now.Add(-time.Second)
	require.Equal(t, now.Add(-3*time.Second), stamp(now.Add(-3*time.Second)))
	require.Equal(t, arrived, stamp(now.Add(10*24*time.Hour)), "a clock ten days ahead")
	require.Equal(t, arrived, stamp(now.Add(-10*24*time.Hour)), "a clock ten days behind")

	ahead := record(`{}`)
	ahead.Timestamp = now.Add(time.Hour)
	require.Equal(t, now, submittedAt(query.Task{}, stream.Envelope{}, ahead, now), "nothing was submitted in the future")
}

// A router that was away for long passes on what is old by then, and perhaps twice. Neither copy is younger than the request.
func TestWhatIsPassedOnKeepsItsTime(t *testing.T) {
	old := now.Add(-time.Hour).Truncate(time.Millisecond)
	body := `{"id":"a","sql":"SELECT 1","tenant":"t","session":{"id":"s","class":"agent"},"submittedAt":"` + old.Format(time.RFC3339Nano) + `"}`
	require.Equal(t, old, *read(record(body, headerPassedOn, "1"), event.TopicRequests, query.Limits{}, now).task.SubmittedAt)
	require.Equal(t, now.Add(-time.Second), *read(record(body), event.TopicRequests, query.Limits{}, now).task.SubmittedAt)
}
