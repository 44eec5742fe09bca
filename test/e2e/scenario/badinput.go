package scenario

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/test/testkit"
)

// bad is a record on `requests` that can't be run, and what it gets.
type bad struct {
	name    string
	value   string // "<null>" is none
	headers []string
	class   stream.FaultClass
	// rejected is the id of the Task that gets a rejected Outcome; "" when no id can be read.
	rejected string
}

const good = `"sql":"SELECT count() FROM tpch.region","tenant":"tenant_a"`

var badRecords = []bad{
	{name: "not JSON", value: "SELECT 1", class: stream.FaultNotJSON},
	{name: "half a document", value: `{"id":"bad-half","sql":"SELECT 1"`, class: stream.FaultNotJSON},
	{name: "empty", value: "", class: stream.FaultNotJSON},
	{name: "not UTF-8 and not JSON", value: "\xff\xfe\x00", class: stream.FaultNotJSON},
	{name: "nested too deep", value: strings.Repeat("[", 20_000), class: stream.FaultNotJSON},
	{name: "null", value: "<null>", class: stream.FaultNullValue},
	{name: "null with headers", value: "<null>", headers: []string{"ce_type", string(event.QueryRequested), "ce_id", "7", "traceparent", ""}, class: stream.FaultNullValue},
	{name: "an array", value: `[{` + good + `}]`, class: stream.FaultSchema},
	{name: "a JSON null", value: `null`, class: stream.FaultSchema},
	{name: "sql is a number", value: `{"id":"bad-sql","sql":1,"tenant":"tenant_a"}`, class: stream.FaultSchema, rejected: "bad-sql"},
	{name: "sla is text", value: `{"id":"bad-sla-text",` + good + `,"slaSeconds":"ten"}`, class: stream.FaultSchema, rejected: "bad-sla-text"},
	{name: "sla beyond a float", value: `{"id":"bad-sla-float",` + good + `,"slaSeconds":1e400}`, class: stream.FaultSchema, rejected: "bad-sla-float"},
	{name: "commitTs beyond 64 bits", value: `{"id":"bad-ts",` + good + `,"commitTs":9223372036854775808}`, class: stream.FaultSchema, rejected: "bad-ts"},
	{name: "no sql and no intent", value: `{"id":"bad-nothing","tenant":"tenant_a"}`, class: stream.FaultSchema, rejected: "bad-nothing"},
	{name: "no tenant", value: `{"id":"bad-nobody","sql":"SELECT 1"}`, class: stream.FaultSchema, rejected: "bad-nobody"},
	{name: "negative sla", value: `{"id":"bad-negative",` + good + `,"slaSeconds":-1}`, class: stream.FaultSchema, rejected: "bad-negative"},
	{name: "absurd sla", value: `{"id":"bad-absurd",` + good + `,"slaSeconds":1e12}`, class: stream.FaultSchema, rejected: "bad-absurd"},
	{name: "absurd timeout", value: `{"id":"bad-timeout",` + good + `,"timeoutSeconds":1e9}`, class: stream.FaultSchema, rejected: "bad-timeout"},
	{name: "unknown consistency", value: `{"id":"bad-maybe",` + good + `,"consistency":"maybe"}`, class: stream.FaultSchema, rejected: "bad-maybe"},
	{name: "5 MiB of SQL", value: `{"id":"bad-large","sql":"SELECT '` + strings.Repeat("x", 5<<20) + `'","tenant":"tenant_a"}`, class: stream.FaultSchema, rejected: "bad-large"},
	{name: "an id with a slash", value: `{"id":"a/1",` + good + `}`, class: stream.FaultSchema},
	{name: "an id that is a number", value: `{"id":7,` + good + `}`, class: stream.FaultSchema},
	{name: "an unknown type", value: `{"id":"bad-type",` + good + `}`, headers: []string{"ce_type", "pointsman.novelty.v9"}, class: stream.FaultUnknownType},
	{name: "another CloudEvents", value: `{"id":"bad-version",` + good + `}`, headers: []string{"ce_specversion", "9.0"}, class: stream.FaultEnvelope, rejected: "bad-version"},
	{name: "a time that is none", value: `{"id":"bad-time",` + good + `}`, headers: []string{"ce_type", string(event.QueryRequested), "ce_time", "yesterday"}, class: stream.FaultEnvelope, rejected: "bad-time"},
	{name: "structured, without data", value: `{"specversion":"1.0","id":"1","source":"/x","type":"` + string(event.QueryRequested) + `"}`, headers: []string{"content-type", "application/cloudevents+json"}, class: stream.FaultNullValue},
	{name: "structured, without a type", value: `{"specversion":"1.0","id":"1","source":"/x","data":{` + good + `}}`, headers: []string{"content-type", "application/cloudevents+json"}, class: stream.FaultMissingType},
	{name: "a cancel of nothing", value: `{}`, headers: []string{"ce_type", string(event.CancelRequested)}, class: stream.FaultSchema},
}

// odd is a record that looks wrong and is run, or answered by the engine.
type odd struct {
	name, id, fields string
	headers          []string
	at               time.Duration // how far the producer's clock is off
	status           []event.Status
}

func oddRecords() []odd {
	stamp := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }
	const tenDays = 10 * 24 * time.Hour
	ended := []event.Status{event.Succeeded}
	// What seems to be ten days old has long expired, unless the broker's own stamp says that it is new.
	maybe := []event.Status{event.Succeeded, event.Expired, event.Rejected}
	return []odd{
		{name: "a malformed traceparent", id: "odd-trace", headers: []string{"traceparent", "00-zz-zz-01", "tracestate", "=,=", "baggage", "%"}, status: ended},
		{name: "headers that are not text", id: "odd-bytes", headers: []string{"x", "\xff\xfe", "ce_id", "\xff"}, status: ended},
		{name: "SQL that no parser reads", id: "odd-parser", fields: `"sql":"SELEC FROM WHERE ((( '"`, status: []event.Status{event.Failed}},
		{name: "an unknown dataset", id: "odd-dataset", fields: `"dataset":"nowhere","sql":"SELECT * FROM nowhere.nothing"`, status: []event.Status{event.Failed}},
		{name: "an unknown dialect", id: "odd-dialect", fields: `"dialect":"klingon"`, status: ended},
		{name: "fields of another version", id: "odd-fields", fields: `"novelty":{"deep":[1,2,{"x":null}]},"SLASeconds":5`, status: ended},
		{name: "handed in ten days ahead", id: "odd-ahead", fields: `"submittedAt":"` + stamp(tenDays) + `"`, status: ended},
		{name: "handed in ten days ago", id: "odd-behind", fields: `"submittedAt":"` + stamp(-tenDays) + `"`, status: maybe},
		{name: "a producer's clock ten days ahead", id: "odd-clock-ahead", at: tenDays, status: ended},
		{name: "a producer's clock ten days behind", id: "odd-clock-behind", at: -tenDays, status: maybe},
	}
}

// elsewhere are values on other topics that nobody can use. Who reads a topic first sets its bad records aside.
var elsewhere = []struct {
	topic, value string
	headers      []string
}{
	{event.TopicDecisions, "not JSON", []string{"ce_type", string(event.DecisionRouted)}},
	{event.TopicDecisions, `{"taskId":7}`, []string{"ce_type", string(event.DecisionRouted)}},
	{event.TopicDecisions, `{"taskId":"stray","attempt":1,"kind":"route"}`, nil},
	{event.TopicDecisions, "<null>", nil},
	{event.TopicAttempts, "not JSON", []string{"ce_type", "pointsman.attempt.failed.v1"}},
	{event.TopicAttempts, `{"remedy":"reroute","taskId":"stray"}`, []string{"ce_type", "pointsman.attempt.failed.v1"}},
	{event.TopicAttempts, `{"remedy":5}`, []string{"ce_type", "pointsman.attempt.failed.v1"}},
	{event.TopicOutcomes, "not JSON", []string{"ce_type", string(event.TaskEnded)}},
	{event.TopicOutcomes, `{"taskId":[]}`, []string{"ce_type", string(event.TaskEnded)}},
	{event.TopicOutcomes, `{}`, nil},
	{event.TopicSignals, "not JSON", []string{"ce_type", string(event.ClusterObserved)}},
}

// unread are values in the ledger and among the signals that everybody has to step over without a word.
var unread = []struct {
	topic, value string
	headers      []string
}{
	{event.TopicAttemptState, "not JSON", nil},
	{event.TopicAttemptState, "<null>", nil},
	{event.TopicAttemptState, `{"kind":"claim","epoch":"one"}`, []string{"ce_type", string(event.LedgerRecorded)}},
	{event.TopicAttemptState, `{"kind":"claim","epoch":99,"owner":"a stranger","key":"odd-trace/1","taskId":"odd-trace","attempt":1,"deadline":"2099-01-01T00:00:00Z"}`, []string{"ce_type", string(event.LedgerRecorded)}},
	{event.TopicSignals, "<null>", nil},
}

// BadInput puts everything on the topics that a producer can get wrong, and requires a clear answer for each, no partition that
// stands still, and nothing lost. It returns the ids of the Tasks.
func BadInput(t *testing.T, w *testkit.World) (ids []string) {
	record := func(topic, key, value string, partition int32, headers ...string) *kgo.Record {
		rec := &kgo.Record{Topic: w.Kafka.Topic(topic), Key: []byte(key), Partition: partition}
		if value != "<null>" {
			rec.Value = []byte(value)
		}
		for i := 0; i+1 < len(headers); i += 2 {
			rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: headers[i], Value: []byte(headers[i+1])})
		}
		return rec
	}
	// Every partition has something unreadable at its head, before anything good. The ledger's garbage comes under the owners' feet.
	for i, u := range unread {
		for partition := range w.Partitions(u.topic) {
			w.ProduceTo(record(u.topic, fmt.Sprintf("unread-%d", i), u.value, partition, u.headers...))
		}
	}
	var aside []*kgo.Record
	for i, e := range elsewhere {
		for partition := range w.Partitions(e.topic) {
			aside = append(aside, record(e.topic, fmt.Sprintf("elsewhere-%d", i), e.value, partition, e.headers...))
		}
	}
	w.ProduceTo(aside...)
	var sent []*kgo.Record
	for i, b := range badRecords {
		sent = append(sent, record(event.TopicRequests, fmt.Sprintf("bad-%d", i), b.value, int32(i)%6, b.headers...))
	}
	w.ProduceTo(sent...)
	for _, o := range oddRecords() {
		fields := o.fields
		if !strings.Contains(fields, `"sql"`) {
			fields = strings.Trim(fields+`,"sql":"SELECT count() FROM tpch.region"`, ",")
		}
		rec := record(event.TopicRequests, o.id, fmt.Sprintf(`{"id":%q,"tenant":"tenant_a",%s}`, o.id, fields), 0, o.headers...)
		if o.at != 0 {
			rec.Timestamp = time.Now().Add(o.at)
		}
		w.Produce(rec)
		ids = append(ids, o.id)
	}
	// The same id twice with the same body is one Task; with another body the second is set aside.
	w.Produce(record(event.TopicRequests, "twice", `{"id":"twice",`+good+`}`, 0))
	w.Produce(record(event.TopicRequests, "twice", `{"id":"twice",`+good+`}`, 0))
	w.Produce(record(event.TopicRequests, "twice", `{"id":"twice","sql":"SELECT 'another body'","tenant":"tenant_a"}`, 0))
	// And behind all of it, a good one on each partition.
	for partition := range w.Partitions(event.TopicRequests) {
		id := fmt.Sprintf("after-%d", partition)
		w.ProduceTo(record(event.TopicRequests, id, fmt.Sprintf(`{"id":%q,%s}`, id, good), partition))
		ids = append(ids, id)
	}
	ids = append(ids, "twice")

	for i, b := range badRecords {
		t.Run(b.name, func(t *testing.T) {
			letters := w.Log.DeadLetters(event.TopicRequests, sent[i].Partition, sent[i].Offset, Patience)
			byRouter := 0
			for _, letter := range letters {
				require.Equal(t, string(b.class), testkit.Header(letter, stream.DLQClass))
				require.NotEmpty(t, testkit.Header(letter, stream.DLQMessage))
				require.Equal(t, sent[i].Value, letter.Value, "the record is kept as it came")
				for _, h := range sent[i].Headers {
					if h.Key == "traceparent" {
						continue // the dead letter is part of a trace of its own
					}
					require.Equal(t, string(h.Value), testkit.Header(letter, h.Key))
				}
				if testkit.Header(letter, stream.DLQStage) == "router" {
					byRouter++
				}
			}
			require.Equal(t, 1, byRouter, "once, by the one who reads it first")
			if b.rejected == "" {
				return
			}
			o := w.Log.Outcome(b.rejected, Patience)
			require.Equal(t, event.Rejected, o.Status)
			require.Equal(t, "invalid_request", o.Rejection.Code)
			require.NotEmpty(t, o.Rejection.Message)
			require.Zero(t, o.Attempts)
			ids = append(ids, b.rejected)
		})
	}
	for _, o := range oddRecords() {
		t.Run(o.name, func(t *testing.T) {
			got := w.Log.Outcome(o.id, Patience)
			require.Contains(t, o.status, got.Status, "%+v %+v", got.Failure, got.Rejection)
			require.GreaterOrEqual(t, got.TotalMs, int64(0))
			require.False(t, got.FinishedAt.Before(got.SubmittedAt))
			if got.Status == event.Failed {
				require.Equal(t, "semantic", got.Failure.Class)
			}
		})
	}
	t.Run("elsewhere", func(t *testing.T) {
		for _, rec := range aside {
			w.Log.DeadLetters(w.Kafka.Name(rec.Topic), rec.Partition, rec.Offset, Patience)
		}
	})
	t.Run("a duplicate id with another body", func(t *testing.T) {
		require.Equal(t, event.Succeeded, w.Log.Outcome("twice", Patience).Status)
		require.Eventually(t, func() bool {
			for _, letter := range w.Log.Records(event.TopicDeadLetter) {
				if strings.Contains(testkit.Header(letter, stream.DLQMessage), "another body") && strings.Contains(testkit.Header(letter, stream.DLQMessage), "twice") {
					return true
				}
			}
			return false
		}, Patience, 50*time.Millisecond)
		require.Equal(t, 1, w.Sent()[query.AttemptID("twice", 1)])
	})
	t.Run("what does not fit the topic is refused to the producer", func(t *testing.T) {
		random := make([]byte, 5<<20)
		for i := range random {
			random[i] = byte('a' + rand.IntN(26))
		}
		require.ErrorContains(t, w.Try(record(event.TopicRequests, "k", `{"id":"bad-random","sql":"`+string(random)+`","tenant":"t"}`, 0)), "TOO_LARGE")
	})
	t.Run("no partition stands still", func(t *testing.T) {
		for partition := range w.Partitions(event.TopicRequests) {
			require.Equal(t, event.Succeeded, w.Log.Outcome(fmt.Sprintf("after-%d", partition), Patience).Status)
		}
		w.Drained(t, Patience, "router", event.TopicRequests, event.TopicAttempts)
		w.Drained(t, Patience, "executor", event.TopicDecisions)
		w.Drained(t, Patience, "profiler", event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes)
	})
	return ids
}
