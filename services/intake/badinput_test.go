package intake_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/services/intake"
)

// What bad input gets: a clear error with the field, and nothing is written.
func TestBadInput(t *testing.T) {
	b := start(t, withTopics(t), func(c *intake.Config) { c.Auth.Tenants = []string{"tenant_a"} })
	b.submit(`{"id":"taken","sql":"SELECT 1","tenant":"tenant_a"}`)
	const ok = `"sql":"SELECT 1","tenant":"tenant_a"`
	tenDaysAgo := time.Now().Add(-10 * 24 * time.Hour).UTC().Format(time.RFC3339)
	inTenDays := time.Now().Add(10 * 24 * time.Hour).UTC().Format(time.RFC3339)
	for _, c := range []struct {
		name    string
		body    string
		headers []string
		status  int
		code    string
		field   string
	}{
		{"no body", "", []string{"Content-Type", "application/json"}, 400, "not_json", ""},
		{"not JSON", "SELECT 1", nil, 400, "not_json", ""},
		{"half a document", `{"sql":"SELECT 1"`, nil, 400, "not_json", ""},
		{"two documents", `{` + ok + `}{}`, nil, 400, "not_json", ""},
		{"an array", `[{` + ok + `}]`, nil, 400, "not_json", ""},
		{"null", `null`, nil, 400, "not_json", ""},
		{"a string", `"SELECT 1"`, nil, 400, "not_json", ""},
		{"not UTF-8", "{\"sql\":\"SELECT '\xff'\",\"tenant\":\"tenant_a\"}", nil, 400, "not_json", ""},
		{"nested too deep", strings.Repeat(`[`, 20_000), nil, 400, "not_json", ""},
		{"sql is a number", `{"sql":1,"tenant":"tenant_a"}`, nil, 400, "wrong_type", "sql"},
		{"sla is text", `{` + ok + `,"slaSeconds":"ten"}`, nil, 400, "wrong_type", "slaSeconds"},
		{"tags is text", `{` + ok + `,"tags":"a"}`, nil, 400, "wrong_type", "tags"},
		{"session is text", `{` + ok + `,"session":"s"}`, nil, 400, "wrong_type", "session"},
		{"priority is half", `{` + ok + `,"priority":1.5}`, nil, 400, "wrong_type", "priority"},
		{"commitTs beyond 64 bits", `{` + ok + `,"commitTs":9223372036854775808}`, nil, 400, "wrong_type", "commitTs"},
		{"no sql and no intent", `{"tenant":"tenant_a"}`, nil, 422, "invalid_fields", "sql"},
		{"blank sql", `{"sql":" \n","tenant":"tenant_a"}`, nil, 422, "invalid_fields", "sql"},
		{"no tenant", `{"sql":"SELECT 1"}`, nil, 422, "invalid_fields", "tenant"},
		{"unknown tenant", `{"sql":"SELECT 1","tenant":"tenant_x"}`, nil, 403, "unknown_tenant", ""},
		{"negative sla", `{` + ok + `,"slaSeconds":-1}`, nil, 422, "invalid_fields", "slaSeconds"},
		{"zero sla", `{` + ok + `,"slaSeconds":0}`, nil, 422, "invalid_fields", "slaSeconds"},
		{"absurd sla", `{` + ok + `,"slaSeconds":1e12}`, nil, 422, "invalid_fields", "slaSeconds"},
		{"sla beyond a float", `{` + ok + `,"slaSeconds":1e400}`, nil, 400, "wrong_type", "slaSeconds"},
		{"absurd timeout", `{` + ok + `,"timeoutSeconds":1e9}`, nil, 422, "invalid_fields", "timeoutSeconds"},
		{"unknown consistency", `{` + ok + `,"consistency":"maybe"}`, nil, 422, "invalid_fields", "consistency"},
		{"id with a slash", `{` + ok + `,"id":"a/1"}`, nil, 422, "invalid_fields", "id"},
		{"id of dots", `{` + ok + `,"id":".."}`, nil, 422, "invalid_fields", "id"},
		{"id too long", `{` + ok + `,"id":"` + strings.Repeat("a", 129) + `"}`, nil, 422, "invalid_fields", "id"},
		{"key with a newline", `{` + ok + `,"idempotencyKey":"a\nb"}`, nil, 422, "invalid_fields", "idempotencyKey"},
		{"two keys", `{` + ok + `,"idempotencyKey":"a"}`, []string{"Idempotency-Key", "b"}, 422, "invalid_fields", "idempotencyKey"},
		{"id beside a key", `{` + ok + `,"id":"x"}`, []string{"Idempotency-Key", "b"}, 422, "invalid_fields", "id"},
		{"user of two lines", `{` + ok + `,"user":"a\nb"}`, nil, 422, "invalid_fields", "user"},
		{"clock 10 days behind", `{` + ok + `,"submittedAt":"` + tenDaysAgo + `"}`, nil, 422, "invalid_fields", "submittedAt"},
		{"clock 10 days ahead", `{` + ok + `,"submittedAt":"` + inTenDays + `"}`, nil, 422, "invalid_fields", "submittedAt"},
		{"no time", `{` + ok + `,"submittedAt":"yesterday"}`, nil, 400, "wrong_type", "submittedAt"},
		{"too many tags", `{` + ok + `,"tags":[` + strings.Repeat(`"a",`, 40) + `"a"]}`, nil, 422, "invalid_fields", "tags"},
		{"5 MiB of SQL", sqlOf(5 << 20), nil, 413, "too_large", ""},
		{"2 MiB of SQL", sqlOf(2 << 20), nil, 413, "too_large", "sql"},
		{"SQL over a record's size once it is JSON", `{"tenant":"tenant_a","sql":"` + strings.Repeat(`\"`, 1<<20) + `"}`, nil, 413, "too_large", ""},
		{"a duplicate id with another body", `{"id":"taken","sql":"SELECT 2","tenant":"tenant_a"}`, nil, 409, "id_conflict", ""},
		{"a form", "sql=SELECT+1&tenant=t", []string{"Content-Type", "application/x-www-form-urlencoded"}, 400, "not_json", ""},
		{"a picture", ok, []string{"Content-Type", "image/png"}, 415, "unsupported_media", ""},
		{"a content type that is none", `{` + ok + `}`, []string{"Content-Type", "json;;;"}, 415, "unsupported_media", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := b.do("POST", "/v1/queries", c.body, c.headers...)
			require.Equal(t, c.status, a.status, string(a.body))
			doc := a.problem()
			require.Equal(t, c.code, doc["code"])
			if c.code != "unknown_path" {
				require.NotEmpty(t, fmt.Sprint(doc["detail"]), "it says what is wrong")
			}
			if c.field != "" {
				fields, _ := doc["errors"].([]any)
				require.NotEmpty(t, fields)
				require.Equal(t, c.field, fields[0].(map[string]any)["field"])
			}
			require.NotContains(t, string(a.body), "SELECT", "SQL is not repeated in errors")
		})
	}
	require.Len(t, b.requests(), 1, "nothing of it was written")

	// What looks odd and is fine.
	b.submit(`{` + ok + `,"submittedAt":"` + time.Now().Add(-time.Minute).UTC().Format(time.RFC3339) + `"}`)
	b.submit(`{"SQL":"SELECT ((( no parser reads this","tenant":"tenant_a","novelty":{"a":9007199254740993}}`)
	b.submit(`{"intent":{"metric":"revenue"},"tenant":"tenant_a"}`)
	require.Len(t, b.requests(), 4)
}

func TestPathsAndMethods(t *testing.T) {
	b := start(t, withTopics(t), nil)
	for _, c := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/nowhere", 404, "unknown_path", ""},
		{"GET", "/v1/tasks/", 404, "unknown_path", ""},
		{"GET", "/v1/tasks/never", 404, "unknown_task", ""},
		{"GET", "/v1/tasks/never/events", 404, "unknown_task", ""},
		{"GET", "/v1/tasks/never/result", 404, "unknown_task", ""},
		{"DELETE", "/v1/tasks/never", 404, "unknown_task", ""},
		{"GET", "/v1/queries", 405, "method_not_allowed", "POST"},
		{"PUT", "/v1/tasks/never", 405, "method_not_allowed", "DELETE, GET, HEAD"},
		{"POST", "/v1/tasks/never/result", 405, "method_not_allowed", "GET, HEAD"},
		{"GET", "/v1/tasks/01ARZ3NDEKTSV4RRFFQ69G5FAV", 410, "task_expired", ""}, // a ULID of 2016
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			a := b.do(c.method, c.path, "")
			require.Equal(t, c.status, a.status)
			require.Equal(t, c.code, a.problem()["code"])
			require.Equal(t, c.allow, a.header.Get("Allow"))
		})
	}
	require.Equal(t, 200, b.do("GET", "/", "").status)
}

// K9: SQL over what the topic takes is 413 before or at the broker, and its neighbours are written, also those that went
// to the broker in one batch with it.
func TestTooLargeForTheTopic(t *testing.T) {
	broker := withTopics(t)
	broker.DeleteTopic(broker.Config.Topic(event.TopicRequests))
	broker.Topic(t, event.TopicRequests, 1, map[string]string{"max.message.bytes": "100000"})
	b := start(t, broker, nil)
	b.submit(`{"sql":"SELECT 0","tenant":"t"}`)
	// A slow broker: what comes while a batch is under way goes together in the next.
	broker.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		broker.SleepControl(func() { time.Sleep(20 * time.Millisecond) })
		return nil, nil, false
	})
	random := make([]byte, 150_000)
	for i := range random {
		random[i] = byte('a' + rand.IntN(26))
	}
	var small, large []<-chan answer
	for i := range 60 {
		small = append(small, b.post("/v1/queries", fmt.Sprintf(`{"sql":"SELECT %d","tenant":"t"}`, i)))
		if i%10 == 5 {
			large = append(large, b.post("/v1/queries", `{"sql":"`+string(random)+`","tenant":"t"}`))
		}
	}
	for _, c := range large {
		a := <-c
		require.Equal(t, 413, a.status, string(a.body))
		require.Equal(t, "too_large", a.problem()["code"])
	}
	for _, c := range small {
		a := <-c
		require.Equal(t, 202, a.status, string(a.body))
	}
	require.Len(t, b.requests(), len(small)+1)
}

// K8 and its like: records that other producers got wrong neither stop the reader nor show up.
func TestOddRecordsArePassedOver(t *testing.T) {
	broker := withTopics(t)
	raw := broker.Client(t, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	produce := func(topic, key, value string, headers ...string) {
		rec := &kgo.Record{Topic: broker.Config.Topic(topic), Key: []byte(key)}
		if value != "<null>" {
			rec.Value = []byte(value)
		}
		for i := 0; i+1 < len(headers); i += 2 {
			rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: headers[i], Value: []byte(headers[i+1])})
		}
		require.NoError(t, raw.ProduceSync(t.Context(), rec).FirstErr())
	}
	decision := `{"decisionId":"odd/1","taskId":"odd","attempt":1,"kind":"route"}`
	for _, topic := range []string{event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes} {
		produce(topic, "k", "<null>")
		produce(topic, "k", "<null>", "ce_type", string(event.QueryRequested), "traceparent", "")
		produce(topic, "k", "")
		produce(topic, "k", "not JSON", "ce_type", "x")
		produce(topic, "k", "[1]", "ce_type", "pointsman.attempt.running.v1")
		produce(topic, "k", `{"taskId":7}`, "ce_type", "pointsman.attempt.running.v1")
		produce(topic, "k", "{}", "ce_type", "pointsman.novelty.v9", "traceparent", "00-zz-zz-01")
		produce(topic, "k", "{}", "ce_specversion", "9.0")
		produce(topic, "k", "{}", "ce_time", "yesterday")
		produce(topic, "k", "{}", "content-type", "application/cloudevents+json")
	}
	produce(event.TopicDecisions, "odd", decision) // no type
	produce(event.TopicDecisions, "even", strings.ReplaceAll(decision, "odd", "even"), "ce_type", string(event.DecisionRouted), "traceparent", "garbage")
	produce(event.TopicRequests, "bare", `{"id":"bare","sql":"SELECT 1","tenant":"t"}`)
	produce(event.TopicRequests, "", `{"sql":"SELECT 1","tenant":"t","idempotencyKey":"k"}`)
	produce(event.TopicRequests, "", `{"sql":"SELECT 1","tenant":"t"}`, "ce_id", "7", "ce_source", "/me")

	b := start(t, broker, nil)
	for _, id := range []string{"even", "bare", query.IDFromKey("t", "k"), query.IDFromKey("ce:/me", "7")} {
		b.eventually(func() bool { return b.do("GET", "/v1/tasks/"+id, "").status == 200 }, id)
	}
	require.Equal(t, 404, b.do("GET", "/v1/tasks/odd", "").status)
	require.Equal(t, 404, b.do("GET", "/v1/tasks/7", "").status)
}
