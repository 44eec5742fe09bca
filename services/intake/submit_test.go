package intake_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/services/intake"
)

const seed = `{"dataset":"orders","queryType":"aggregation","sql":"SELECT channel, SUM(payment_amount) FROM orders GROUP BY channel","tenant":"tenant_a","user":"user_1001","slaSeconds":10}`

func TestARequestBecomesARecord(t *testing.T) {
	b := start(t, withTopics(t), nil)
	before := time.Now().Add(-time.Second)
	a := b.do("POST", "/v1/queries", seed, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	require.Equal(t, 202, a.status)
	var accepted intake.Accepted
	a.into(&accepted)
	id, err := ulid.ParseStrict(accepted.TaskID)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), ulid.Time(id.Time()), time.Minute)
	require.Equal(t, "/v1/tasks/"+accepted.TaskID, a.header.Get("Location"))
	require.Equal(t, "accepted", accepted.State)

	recs := b.requests()
	require.Len(t, recs, 1)
	require.Equal(t, accepted.TaskID, string(recs[0].Key))
	require.Equal(t, string(event.QueryRequested), header(recs[0], "ce_type"))
	require.Equal(t, accepted.TaskID, header(recs[0], "ce_id"))
	require.Equal(t, "application/json", header(recs[0], "content-type"))
	require.True(t, strings.HasPrefix(header(recs[0], "traceparent"), "00-0af7651916cd43dd8448eb211c80319c-"), "the client's trace goes on: %s", header(recs[0], "traceparent"))
	require.NotContains(t, header(recs[0], "traceparent"), "b7ad6b7169203331", "under a span of ours")

	var task query.Task
	require.NoError(t, json.Unmarshal(recs[0].Value, &task))
	require.Equal(t, accepted.TaskID, task.ID)
	require.True(t, task.SubmittedAt.After(before))
	require.Equal(t, "orders", task.Dataset)
	require.NotEmpty(t, b.spans.Ended())
}

func TestSessionsKeepTheirOrder(t *testing.T) {
	b := start(t, withTopics(t), nil)
	b.submit(`{"sql":"SELECT 1","tenant":"t","session":{"id":"s-1","class":"agent"}}`)
	require.Equal(t, "s-1", string(b.requests()[0].Key))
}

func TestIdempotency(t *testing.T) {
	b := start(t, withTopics(t), nil)
	body := `{"sql":"SELECT 1","tenant":"tenant_a"}`
	id := b.submit(body, "Idempotency-Key", "k-1")
	require.Equal(t, query.IDFromKey("tenant_a", "k-1"), id)

	again := b.do("POST", "/v1/queries", body, "Idempotency-Key", "k-1")
	require.Equal(t, 202, again.status)
	require.Equal(t, "true", again.header.Get("Idempotency-Replayed"))
	again = b.do("POST", "/v1/queries", `{"tenant":"tenant_a","sql":"SELECT 1","idempotencyKey":"k-1"}`)
	require.Equal(t, 202, again.status, "the field is the header's equal")
	require.Equal(t, id, b.submit(body, "Idempotency-Key", " k-1 "))
	require.Len(t, b.requests(), 1)

	other := b.do("POST", "/v1/queries", `{"sql":"SELECT 2","tenant":"tenant_a"}`, "Idempotency-Key", "k-1")
	require.Equal(t, 409, other.status)
	require.Equal(t, "id_conflict", other.problem()["code"])
	require.Equal(t, id, other.problem()["taskId"])
	require.NotEqual(t, id, b.submit(`{"sql":"SELECT 2","tenant":"tenant_b"}`, "Idempotency-Key", "k-1"), "keys are the tenant's own")

	own := b.submit(`{"id":"mine-1","sql":"SELECT 1","tenant":"tenant_a"}`)
	require.Equal(t, "mine-1", own)
	require.Equal(t, 409, b.do("POST", "/v1/queries", `{"id":"mine-1","sql":"SELECT 9","tenant":"tenant_a"}`).status)
	require.Len(t, b.requests(), 3)

	// Ended meanwhile: the repeat gets the outcome.
	b.end(event.Outcome{TaskID: id, Tenant: "tenant_a", Result: &event.Result{Rows: 1, Format: "json", Inline: json.RawMessage(`[["1"]]`)}})
	b.eventually(func() bool { return b.do("POST", "/v1/queries", body, "Idempotency-Key", "k-1").status == 200 }, "the end is known")
}

// A task of which only an attempt was read: what was asked for is not known, and that is not "something else".
func TestIdempotencyOfATaskKnownByItsAttemptsOnly(t *testing.T) {
	b := start(t, withTopics(t), nil)
	id := query.IDFromKey("tenant_a", "k-9")
	b.attempt(id, 1, 1, "running")
	b.eventually(func() bool { return b.do("GET", "/v1/tasks/"+id, "").status == 200 }, "the attempt is known")
	a := b.do("POST", "/v1/queries", `{"sql":"SELECT 1","tenant":"tenant_a"}`, "Idempotency-Key", "k-9")
	require.Equal(t, 409, a.status)
	require.Contains(t, string(a.body), "whose request is not kept any more")
}

// Many clients send one key at once, through two instances: one Task, and whoever sent something else is told.
func TestIdempotencyUnderRace(t *testing.T) {
	broker := withTopics(t)
	one, two := start(t, broker, nil), start(t, broker, nil)
	var answers []<-chan answer
	for i := range 40 {
		b, sql := one, "SELECT 1"
		if i%2 == 1 {
			b = two
		}
		if i%4 >= 2 {
			sql = "SELECT 2"
		}
		body := toJSON(t, map[string]any{"sql": sql, "tenant": "t", "session": map[string]any{"id": "s"}})
		answers = append(answers, b.post("/v1/queries", body, "Idempotency-Key", "k"))
	}
	got := map[int]int{}
	for _, a := range answers {
		got[(<-a).status]++
	}
	require.Equal(t, map[int]int{202: 20, 409: 20}, got)
}

func TestWait(t *testing.T) {
	b := start(t, withTopics(t), nil)
	done := b.post("/v1/queries?wait=15s", `{"id":"w-1","sql":"SELECT 1","tenant":"t"}`)
	b.eventually(func() bool { return b.do("GET", "/v1/tasks/w-1", "").status == 200 }, "taken in")
	b.decide("w-1", 1)
	b.attempt("w-1", 1, 1, "running")
	b.end(event.Outcome{TaskID: "w-1", Tenant: "t", SLAHit: true, Result: &event.Result{
		Columns: []event.Column{{Name: "n", Type: "UInt64"}}, Rows: 1, Format: "json", Inline: json.RawMessage(`[["9007199254740993"]]`),
	}})
	a := <-done
	require.Equal(t, 200, a.status)
	var task intake.TaskAnswer
	a.into(&task)
	require.Equal(t, "succeeded", task.State)
	require.JSONEq(t, `[["9007199254740993"]]`, string(task.Outcome.Result.Inline), "the rows are in the answer")
	require.Contains(t, string(task.Decision), "small pruned scan")

	// The wait runs out: 202 with the links, and the Task goes on.
	began := time.Now()
	a = b.do("POST", "/v1/queries?wait=1", `{"id":"w-2","sql":"SELECT 1","tenant":"t"}`)
	require.Equal(t, 202, a.status)
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	var accepted intake.Accepted
	a.into(&accepted)
	require.Equal(t, "/v1/tasks/w-2/events", accepted.Links.Events)

	for _, bad := range []string{"soon", "-1s", "1.5"} {
		a = b.do("POST", "/v1/queries?wait="+bad, seed)
		require.Equal(t, 400, a.status, bad)
		require.Equal(t, "bad_parameter", a.problem()["code"])
	}
}

func TestWaitingIsBounded(t *testing.T) {
	b := start(t, withTopics(t), func(c *intake.Config) { c.HTTP.MaxWaiting = 1 })
	first := b.post("/v1/queries?wait=20s", `{"id":"w-1","sql":"SELECT 1","tenant":"t"}`)
	b.eventually(func() bool { return b.do("GET", "/v1/tasks/w-1", "").status == 200 }, "waits")
	a := b.do("POST", "/v1/queries?wait=20s", `{"id":"w-2","sql":"SELECT 1","tenant":"t"}`)
	require.Equal(t, 429, a.status)
	require.Equal(t, "too_many_waiting", a.problem()["code"])
	require.Equal(t, 404, b.do("GET", "/v1/tasks/w-2", "").status, "it was refused before it was written")
	b.end(event.Outcome{TaskID: "w-1"})
	require.Equal(t, 200, (<-first).status)
}

func TestStoppingAnswersWhoWaits(t *testing.T) {
	b := start(t, withTopics(t), nil)
	first := b.post("/v1/queries?wait=20s", `{"id":"w-1","sql":"SELECT 1","tenant":"t"}`)
	b.eventually(func() bool { return b.do("GET", "/v1/tasks/w-1", "").status == 200 }, "waits")
	require.NoError(t, b.app.Stop(t.Context()))
	require.Equal(t, 202, (<-first).status)
}

func TestRateLimit(t *testing.T) {
	b := start(t, withTopics(t), func(c *intake.Config) { c.RateLimit.PerSecond, c.RateLimit.Burst = 0.01, 2 })
	b.submit(`{"sql":"SELECT 1","tenant":"a"}`)
	b.submit(`{"sql":"SELECT 1","tenant":"a"}`)
	a := b.do("POST", "/v1/queries", `{"sql":"SELECT 1","tenant":"a"}`)
	require.Equal(t, 429, a.status)
	require.Equal(t, "rate_limited", a.problem()["code"])
	require.NotEmpty(t, a.header.Get("Retry-After"))
	b.submit(`{"sql":"SELECT 1","tenant":"b"}`)
}
