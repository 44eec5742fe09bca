package intake_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/services/intake"
	"github.com/pointsman/pointsman/services/intake/access"
)

func TestATaskTellsItsStory(t *testing.T) {
	b := start(t, withTopics(t), nil)
	id := b.submit(seed)
	b.decide(id, 1)
	b.attempt(id, 1, 1, "awaiting_slot")
	b.attempt(id, 1, 2, "running")
	b.decide(id, 2)
	var task intake.TaskAnswer
	b.eventually(func() bool {
		b.do("GET", "/v1/tasks/"+id, "").into(&task)
		return len(task.EarlierDecisions) == 1 && len(task.Attempts) == 1 && task.Attempts[0].Seq == 2
	}, "all of it is there")
	require.Equal(t, "routed", task.State)
	require.Equal(t, "running", task.Attempts[0].State)
	require.Equal(t, "tenant_a", task.Tenant)
	require.Equal(t, "user_1001", task.User)
	require.WithinDuration(t, time.Now(), *task.SubmittedAt, time.Minute)
	require.Contains(t, string(task.Decision), id+"/2")
	require.Contains(t, string(task.Task), "payment_amount")
	require.Nil(t, task.Outcome)

	b.end(event.Outcome{TaskID: id, Status: event.Failed, Failure: &event.Failure{Class: "semantic", Message: "no such column"}})
	b.eventually(func() bool { b.do("GET", "/v1/tasks/"+id, "").into(&task); return task.Outcome != nil }, "ended")
	require.Equal(t, "failed", task.State)
	a := b.do("GET", "/v1/tasks/"+id+"/result", "")
	require.Equal(t, 404, a.status)
	require.Equal(t, "no_result", a.problem()["code"])
	require.Contains(t, a.problem()["detail"], "no such column")
}

func TestCancel(t *testing.T) {
	b := start(t, withTopics(t), nil)
	id := b.submit(`{"sql":"SELECT 1","tenant":"t","user":"u","session":{"id":"s-1"}}`)
	require.Equal(t, 202, b.do("DELETE", "/v1/tasks/"+id+"?reason=changed+my+mind", "").status)
	b.eventually(func() bool {
		var task intake.TaskAnswer
		b.do("GET", "/v1/tasks/"+id, "").into(&task)
		return task.CancelRequested
	}, "the wish is read back")
	require.Equal(t, 202, b.do("DELETE", "/v1/tasks/"+id, "").status, "the same wish again")

	recs := b.requests()
	require.Len(t, recs, 2, "the wish is written once")
	require.Equal(t, recs[0].Key, recs[1].Key, "behind the Task it means")
	require.Equal(t, recs[0].Partition, recs[1].Partition)
	require.Equal(t, string(event.CancelRequested), header(recs[1], "ce_type"))
	var wish event.Cancel
	require.NoError(t, json.Unmarshal(recs[1].Value, &wish))
	require.Equal(t, event.Cancel{TaskID: id, Tenant: "t", User: "u", Reason: "changed my mind"}, wish)

	passed := event.RouteDecision{DecisionID: id + "/cancel", TaskID: id, Kind: event.PassCancel, Cancel: &wish}
	b.send(event.TopicDecisions, id, passed.Type(), passed.DecisionID, passed)
	var task intake.TaskAnswer
	b.eventually(func() bool { b.do("GET", "/v1/tasks/"+id, "").into(&task); return task.Decision != nil }, "the router has passed it on")
	require.Contains(t, string(task.Decision), `"kind":"cancel"`, "there is no other")
	b.decide(id, 1)
	b.eventually(func() bool {
		task = intake.TaskAnswer{}
		b.do("GET", "/v1/tasks/"+id, "").into(&task)
		return strings.Contains(string(task.Decision), "interactive")
	}, "where it went is not hidden by the wish")
	require.Empty(t, task.EarlierDecisions)

	b.end(event.Outcome{TaskID: id, Status: event.Cancelled})
	b.eventually(func() bool { return b.do("DELETE", "/v1/tasks/"+id, "").status == 409 }, "ended")
}

// A Task that came over Kafka and was decided before the look-back can still be cancelled: the decision carries it.
func TestCancelByTheDecisionAlone(t *testing.T) {
	b := start(t, withTopics(t), nil)
	d := event.RouteDecision{DecisionID: "x/1", TaskID: "x", Attempt: 1, Kind: event.Route, Task: &query.Task{
		ID: "x", SQL: "SELECT 1", Tenant: "t", Session: &query.Session{ID: "s-9"},
	}}
	b.send(event.TopicDecisions, "x", d.Type(), d.DecisionID, d)
	b.attempt("y", 1, 1, "running")
	b.eventually(func() bool { return b.do("DELETE", "/v1/tasks/x", "").status == 202 }, "cancelled")
	require.Equal(t, "s-9", string(b.requests()[0].Key))
	b.eventually(func() bool { return b.do("DELETE", "/v1/tasks/y", "").status == 410 }, "neither request nor decision is known")
}

// sse reads a stream of events.
type sse struct {
	t     *testing.T
	resp  *http.Response
	lines *bufio.Scanner
}

type sseEvent struct{ id, name, data string }

func (b *bench) follow(id string, headers ...string) *sse {
	b.t.Helper()
	resp, err := b.client.Do(b.request("GET", "/v1/tasks/"+id+"/events", "", headers...))
	require.NoError(b.t, err)
	require.Equal(b.t, 200, resp.StatusCode)
	require.Equal(b.t, "text/event-stream", resp.Header.Get("Content-Type"))
	s := &sse{t: b.t, resp: resp, lines: bufio.NewScanner(resp.Body)}
	s.lines.Buffer(nil, 8<<20)
	b.t.Cleanup(func() { _ = resp.Body.Close() })
	return s
}

// next reads an event; false is the end of the stream. Comments come as an event without a name.
func (s *sse) next() (ev sseEvent, ok bool) {
	s.t.Helper()
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "id":
			ev.id = value
		case "event":
			ev.name = value
		case "data":
			ev.data = value
		case "":
			if value != "" || ev.name != "" {
				return ev, true
			}
		}
	}
	require.NoError(s.t, s.lines.Err())
	return sseEvent{}, false
}

func (s *sse) names() []string {
	s.t.Helper()
	var names []string
	for ev, ok := s.next(); ok; ev, ok = s.next() {
		names = append(names, ev.name)
	}
	return names
}

func TestEvents(t *testing.T) {
	b := start(t, withTopics(t), nil)
	id := b.submit(seed)
	s := b.follow(id)
	ev, ok := s.next()
	require.True(t, ok)
	require.Equal(t, "accepted", ev.name)
	require.Contains(t, ev.data, "payment_amount")
	require.Equal(t, "1.0.0.0", ev.id)

	b.decide(id, 1)
	ev, _ = s.next()
	require.Equal(t, "decision", ev.name)
	seen := ev.id
	b.attempt(id, 1, 1, "running")
	ev, _ = s.next()
	require.Equal(t, "attempt", ev.name)
	b.end(event.Outcome{TaskID: id, Tenant: "tenant_a", Attempts: 1, Result: &event.Result{Rows: 1, Format: "json", Inline: json.RawMessage(`[[1]]`)}})
	b.eventually(func() bool { return b.do("GET", "/v1/tasks/"+id+"/result", "").status == 200 }, "the outcome is here")
	b.attempt(id, 1, 2, "succeeded") // read after the outcome, and still told before it
	ev, _ = s.next()
	require.Equal(t, "attempt", ev.name)
	ev, _ = s.next()
	require.Equal(t, "outcome", ev.name)
	require.NotContains(t, ev.data, "inline")
	_, ok = s.next()
	require.False(t, ok, "the stream ends at the outcome")

	// Resumed, at another instance.
	other := start(t, b.broker, nil)
	other.eventually(func() bool { return other.do("GET", "/v1/tasks/"+id+"/result", "").status == 200 }, "read there too")
	require.Equal(t, []string{"attempt", "attempt", "outcome"}, other.follow(id, "Last-Event-ID", seen).names())
	require.Equal(t, []string{"accepted", "decision", "attempt", "attempt", "outcome"}, other.follow(id).names())
	require.Empty(t, other.follow(id, "Last-Event-ID", "1.1.2.1").names())

	a := b.do("GET", "/v1/tasks/"+id+"/events", "", "Last-Event-ID", "17")
	require.Equal(t, 400, a.status)
	require.Equal(t, "bad_parameter", a.problem()["code"])
}

func TestEventsStayAliveAndEndWithTheService(t *testing.T) {
	b := start(t, withTopics(t), func(c *intake.Config) { c.HTTP.Heartbeat = 20 * time.Millisecond })
	id := b.submit(`{"sql":"SELECT 1","tenant":"t"}`)
	s := b.follow(id)
	ev, _ := s.next()
	require.Equal(t, "accepted", ev.name)
	for range 3 {
		ev, ok := s.next()
		require.True(t, ok)
		require.Empty(t, ev.name, "a comment")
	}
	stopped := make(chan error, 1)
	go func() { stopped <- b.app.Stop(t.Context()) }()
	for _, ok := s.next(); ok; _, ok = s.next() {
	}
	require.NoError(t, <-stopped)
}

// A value with line breaks, as kcat may send it, must not break the stream.
func TestEventsSurviveLineBreaks(t *testing.T) {
	b := start(t, withTopics(t), nil)
	require.NoError(t, b.writer.Send(t.Context(), message(event.TopicRequests, "nl", event.QueryRequested, "{\n \"id\": \"nl\",\r\n\"sql\":\"SELECT 1\",\"tenant\":\"t\"}")))
	b.eventually(func() bool { return b.do("GET", "/v1/tasks/nl", "").status == 200 }, "read")
	ev, _ := b.follow("nl").next()
	require.JSONEq(t, `{"id":"nl","sql":"SELECT 1","tenant":"t"}`, ev.data)
}

func TestInlineResult(t *testing.T) {
	b := start(t, withTopics(t), nil)
	id := b.submit(`{"sql":"SELECT 1","tenant":"t"}`)
	a := b.do("GET", "/v1/tasks/"+id+"/result", "")
	require.Equal(t, 409, a.status)
	require.Equal(t, "not_finished", a.problem()["code"])
	b.end(event.Outcome{TaskID: id, Tenant: "t", Result: &event.Result{
		Columns: []event.Column{{Name: "a", Type: "UInt64"}, {Name: "b", Type: "String"}}, Rows: 2, Format: "json",
		Inline: json.RawMessage(`[["9007199254740993", "x"], [null, "y < z"]]`), Truncated: true,
	}})
	b.eventually(func() bool { return b.do("GET", "/v1/tasks/"+id+"/result", "").status == 200 }, "ended")

	a = b.do("GET", "/v1/tasks/"+id+"/result", "")
	require.Equal(t, "2", a.header.Get("Pointsman-Rows"))
	require.Equal(t, "true", a.header.Get("Pointsman-Truncated"))
	require.JSONEq(t, `{"taskId":"`+id+`","columns":[{"name":"a","type":"UInt64"},{"name":"b","type":"String"}],
		"rows":[["9007199254740993","x"],[null,"y < z"]],"rowCount":2,"truncated":true}`, string(a.body))
	a = b.do("GET", "/v1/tasks/"+id+"/result", "", "Accept", "text/html;q=0.9, application/x-ndjson")
	require.Equal(t, "application/x-ndjson", a.header.Get("Content-Type"))
	require.Equal(t, "[\"9007199254740993\",\"x\"]\n[null,\"y < z\"]\n", string(a.body))
	a = b.do("GET", "/v1/tasks/"+id+"/result", "", "Accept", "image/png")
	require.Equal(t, 406, a.status)
	a = b.do("GET", "/v1/tasks/"+id, "")
	require.NotContains(t, string(a.body), "9007199254740993", "where a task is does not repeat its rows")
}

func TestResultFiles(t *testing.T) {
	folder := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "2026"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "2026", "x.ndjson"), []byte("[1]\n[2]\n"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(folder, "link.ndjson")))
	b := start(t, withTopics(t), func(c *intake.Config) { c.Results.Folder = folder })
	past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	result := func(id, file string, expires *time.Time) answer {
		b.end(event.Outcome{TaskID: id, Tenant: "t", Result: &event.Result{Rows: 2, Format: "ndjson", File: file, ExpiresAt: expires}})
		b.eventually(func() bool { return b.do("GET", "/v1/tasks/"+id, "").status == 200 }, "ended")
		return b.do("GET", "/v1/tasks/"+id+"/result", "")
	}
	a := result("ok", "2026/x.ndjson", &future)
	require.Equal(t, 200, a.status)
	require.Equal(t, "application/x-ndjson", a.header.Get("Content-Type"))
	require.Equal(t, "[1]\n[2]\n", string(a.body))
	a = b.do("GET", "/v1/tasks/ok/result", "", "Range", "bytes=4-")
	require.Equal(t, 206, a.status)
	require.Equal(t, "[2]\n", string(a.body))
	require.Equal(t, 406, b.do("GET", "/v1/tasks/ok/result", "", "Accept", "application/json").status)

	a = result("expired", "2026/x.ndjson", &past)
	require.Equal(t, 410, a.status)
	require.Equal(t, "result_expired", a.problem()["code"])
	require.Equal(t, 410, result("gone", "2026/y.ndjson", nil).status)
	for i, evil := range []string{"../" + filepath.Base(outside), outside, "link.ndjson", "2026", "2026/../../x", ".", "a\x00b"} {
		a = result("evil-"+string(rune('a'+i)), evil, nil)
		require.GreaterOrEqual(t, a.status, 400, evil)
		require.NotContains(t, string(a.body), "secret")
	}
}

func TestTenantsSeeTheirOwnTasks(t *testing.T) {
	const secretA, secretB = "a-secret-of-tenant-a", "a-secret-of-tenant-b"
	b := start(t, withTopics(t), func(c *intake.Config) {
		c.Auth = access.Config{Mode: access.Token, Tokens: []access.TokenConfig{
			{Name: "a", Secret: config.Secret(secretA), Tenant: "tenant_a", User: "user_a", Class: query.Agent},
			{Name: "b", Secret: config.Secret(secretB), Tenant: "tenant_b"},
		}}
	})
	asA, asB := []string{"Authorization", "Bearer " + secretA}, []string{"Authorization", "Bearer " + secretB}
	for _, path := range []string{"/v1/queries", "/v1/explain"} {
		a := b.do("POST", path, seed)
		require.Equal(t, 401, a.status)
		require.Contains(t, a.header.Get("WWW-Authenticate"), "Bearer")
		a.problem()
		require.Equal(t, 403, b.do("POST", path, seed, asB...).status, "the body names another tenant")
	}
	id := b.submit(`{"id":"mine","sql":"SELECT 1","user":"somebody"}`, asA...)
	var task query.Task
	require.NoError(t, json.Unmarshal(b.requests()[0].Value, &task))
	require.Equal(t, "tenant_a", task.Tenant)
	require.Equal(t, "user_a", task.User)
	require.Equal(t, query.Agent, task.SessionClass())

	for _, path := range []string{"", "/events", "/result"} {
		require.Equal(t, 401, b.do("GET", "/v1/tasks/"+id+path, "").status)
		a, never := b.do("GET", "/v1/tasks/"+id+path, "", asB...), b.do("GET", "/v1/tasks/nope"+path, "", asB...)
		require.Equal(t, 404, a.status)
		require.Equal(t, strings.ReplaceAll(string(never.body), "nope", id), string(a.body), "nothing tells it from a task that never was")
	}
	require.Equal(t, 401, b.do("GET", "/v1/tasks", "").status)
	require.JSONEq(t, `{"tasks":[],"more":false}`, string(b.do("GET", "/v1/tasks", "", asB...).body))
	require.Contains(t, string(b.do("GET", "/v1/tasks", "", asA...).body), id)
	require.Equal(t, 404, b.do("DELETE", "/v1/tasks/"+id, "", asB...).status)
	require.Equal(t, 200, b.do("GET", "/v1/tasks/"+id, "", asA...).status)

	// An id is taken whoever has it, and whose it is stays unsaid.
	a := b.do("POST", "/v1/queries", `{"id":"mine","sql":"SELECT 1"}`, asB...)
	require.Equal(t, 409, a.status)
	require.NotContains(t, string(a.body), "tenant_a")
	// A task of nobody (an attempt without its decision) is nobody's.
	b.send(event.TopicAttempts, "orphan", event.AttemptType("running"), "orphan/1", event.Attempt{AttemptID: "orphan/1", TaskID: "orphan", Number: 1, Seq: 1, State: "running"})
	b.send(event.TopicAttempts, "orphan", event.AttemptType("running"), id+"/1", event.Attempt{AttemptID: id + "/1", TaskID: id, Number: 1, Seq: 1, State: "running"})
	b.eventually(func() bool { // the same partition, so the orphan has been read before it
		return strings.Contains(string(b.do("GET", "/v1/tasks/"+id, "", asA...).body), `"state":"running"`)
	}, "read")
	require.Equal(t, 404, b.do("GET", "/v1/tasks/orphan", "", asA...).status)
	require.Equal(t, 200, b.do("GET", "/v1/openapi.json", "").status)
}

func TestLetGoIsSaid(t *testing.T) {
	b := start(t, withTopics(t), func(c *intake.Config) { c.Tasks.MaxBytes = 1 << 20 })
	first := b.submit(`{"sql":"SELECT 1","tenant":"t"}`)
	for range 8 {
		b.submit(sqlOf(200_000))
	}
	a := b.do("GET", "/v1/tasks/"+first, "")
	require.Equal(t, 410, a.status)
	require.Equal(t, "task_expired", a.problem()["code"])
}
