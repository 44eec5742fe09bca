package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	listAnswer = `{"tasks":[
		{"taskId":"t2","state":"running","tenant":"a","changedAt":"2026-11-30T09:00:01Z","cluster":"batch","attempts":2},
		{"taskId":"t1","state":"failed","tenant":"a","user":"u\u001b[2J","changedAt":"2026-11-30T09:00:00Z","attempts":1,"totalMs":1500,"slaHit":false}],"more":true}`
	taskAnswer = `{"taskId":"t1","state":"failed","tenant":"a","cancelRequested":false,"submittedAt":"2026-11-30T08:59:58Z","links":{},
		"decision":{"decisionId":"t1/1","taskId":"t1","attempt":1,"kind":"route","cluster":"interactive","engine":"clickhouse","rule":"default","verdict":"light","reasons":[{"code":"meets_sla","text":"it meets its SLA"}],
			"decidedAt":"2026-11-30T08:59:58Z","deadline":"2026-11-30T09:59:58Z","task":{"sql":"SELECT 1"}},
		"earlierDecisions":[{"decisionId":"t1/0","taskId":"t1","attempt":0,"kind":"route","cluster":"batch","engine":"clickhouse","rule":"wide","decidedAt":"2026-11-30T08:59:58Z","deadline":"2026-11-30T09:59:58Z"}],
		"attempts":[{"attemptId":"t1/1","taskId":"t1","number":1,"seq":4,"state":"overrun","at":"2026-11-30T09:00:00Z","engine":"clickhouse","cluster":"interactive","queue":"default","resource":"small","queuePosition":3,"waitsFor":"cluster interactive has 5 of 5","stats":{"queueMs":3,"execMs":1200},
			"failure":{"class":"estimate_overrun","message":"it had read too much"},"remedy":"enlarge","next":{"engine":"clickhouse","cluster":"interactive","resource":"large"}}],
		"outcome":{"taskId":"t1","status":"failed","engine":"clickhouse","cluster":"interactive","attempts":1,"submittedAt":"2026-11-30T08:59:58Z","finishedAt":"2026-11-30T09:00:00Z","totalMs":1500,"slaMs":1000,"stats":{},
			"failure":{"class":"memory_limit","message":"too much","hint":"Filter earlier."}}}`
)

// door is a front door that knows one task.
func door(t *testing.T) (url string, cancelled *atomic.Value) {
	t.Helper()
	cancelled = &atomic.Value{}
	connects := atomic.Int32{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/tasks", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") == "0" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `{"title":"A parameter is wrong","detail":"limit must be a number"}`)
			return
		}
		if r.URL.Query().Get("state") != "open" {
			_, _ = fmt.Fprint(w, listAnswer)
			return
		}
		_, _ = fmt.Fprint(w, `{"tasks":[],"more":false}`)
	})
	mux.HandleFunc("GET /v1/tasks/t1", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, taskAnswer) })
	mux.HandleFunc("DELETE /v1/tasks/t1", func(w http.ResponseWriter, r *http.Request) {
		cancelled.Store(r.Header.Get("Authorization") + " " + r.URL.Query().Get("reason"))
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprint(w, `{}`)
	})
	mux.HandleFunc("GET /v1/tasks/t1/events", func(w http.ResponseWriter, r *http.Request) {
		if connects.Add(1) == 1 { // it breaks off once
			_, _ = fmt.Fprint(w, "retry: 2000\n\nid: 1.0.0.0\nevent: accepted\ndata: {\"tenant\":\"a\",\"user\":\"u1\",\"submittedAt\":\"2026-11-30T08:59:57Z\"}\n\nid: 1.1.0.0\nevent: decision\ndata: {\"kind\":\"route\",\"attempt\":1,\"cluster\":\"interactive\",\"rule\":\"default\",\"decidedAt\":\"2026-11-30T08:59:58Z\"}\n\n: still here\n\n")
			return
		}
		require.Equal(t, "1.1.0.0", r.Header.Get("Last-Event-ID"), "it goes on where it was")
		_, _ = fmt.Fprint(w, "id: 1.1.1.0\nevent: attempt\ndata: {\"number\":1,\"state\":\"failed\",\"cluster\":\"interactive\",\"at\":\"2026-11-30T09:00:00Z\",\"remedy\":\"fail\",\"failure\":{\"class\":\"memory_limit\"}}\n\n"+
			"id: 1.1.1.0\nevent: cancel\ndata: {\"user\":\"u2\",\"reason\":\"too slow\"}\n\n"+
			"id: 1.1.1.1\nevent: outcome\ndata: {\"status\":\"failed\",\"totalMs\":1500,\"finishedAt\":\"2026-11-30T09:00:00Z\",\"failure\":{\"class\":\"memory_limit\",\"message\":\"too\\u001b[31m much\",\"hint\":\"Filter earlier.\"}}\n\n")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"title":"There is no such task.","detail":"no task \"nope\" was seen"}`)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL, cancelled
}

func TestTasks(t *testing.T) {
	url, cancelled := door(t)
	code, out, stderr := run("tasks", "--url", url, "list")
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, []string{"t2", "running", "batch", "2", "-", "-", "a", "-", "2026-11-30", "09:00:01"}, strings.Fields(lines[1]), "what is not known is not zero")
	require.Equal(t, []string{"t1", "failed", "-", "1", "1.5s", "missed", "a", "u", "[2J", "2026-11-30", "09:00:00"}, strings.Fields(lines[2]))
	require.NotContains(t, out, "\x1b", "what others wrote can't move the cursor")
	require.Contains(t, stderr, "more")
	code, out, _ = run("tasks", "--url", url, "list", "-o", "json")
	require.Zero(t, code)
	require.JSONEq(t, listAnswer, out)
	code, out, _ = run("tasks", "--url", url, "list", "--state", "open")
	require.Zero(t, code)
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 1)
	code, _, stderr = run("tasks", "--url", url, "list", "-n", "0")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "limit must be a number")

	code, out, stderr = run("tasks", "--url", url, "show", "t1")
	require.Zero(t, code, stderr)
	for _, want := range []string{
		"state       failed", "sql         SELECT 1", "route attempt 0 to batch by rule wide", "route attempt 1 to interactive by rule default, verdict light", "- it meets its SLA",
		"attempt 1   overrun on interactive (queue default, resources small, place 3 in its executor's line, waits: cluster interactive has 5 of 5): queue 3ms, run 1.2s", "estimate_overrun: it had read too much",
		"then: enlarge to interactive/large", "failed after 1.5s with 1 attempt; SLA 1s: missed", "Filter earlier.",
	} {
		require.Contains(t, out, want)
	}
	code, out, _ = run("tasks", "--url", url, "show", "t1", "-o", "json")
	require.Zero(t, code)
	require.JSONEq(t, taskAnswer, out)
	code, _, stderr = run("tasks", "--url", url, "show", "nope")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no task")

	code, out, stderr = run("tasks", "--url", url, "--token", "secret", "cancel", "t1", "nope", "--reason", "too slow & dear")
	require.Equal(t, 1, code)
	require.Contains(t, out, "t1: the cancel is written")
	require.Contains(t, stderr, "nope: There is no such task: no task")
	require.Equal(t, "Bearer secret too slow & dear", cancelled.Load())
}

func TestTasksTail(t *testing.T) {
	url, _ := door(t)
	code, out, stderr := run("tasks", "--url", url, "tail", "t1")
	require.Zero(t, code, stderr)
	require.NotContains(t, out, "then fail", "nothing follows")
	for _, want := range []string{
		"08:59:57.000  accepted  from u1 of a", "08:59:58.000  decision  route attempt 1 to interactive by rule default", "1 failed on interactive: memory_limit\n",
		"cancel    wished by u2: too slow", "failed after 1.5s, SLA missed: too [31m much Filter earlier.",
	} {
		require.Contains(t, out, want)
	}
	code, _, stderr = run("tasks", "--url", url, "tail", "nope")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no task")
	code, _, stderr = run("tasks", "--url", "http://127.0.0.1:1", "tail")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "is pointsman up")
}

func TestTasksUsage(t *testing.T) {
	for _, args := range [][]string{{"tasks"}, {"tasks", "show"}, {"tasks", "cancel"}, {"tasks", "list", "-o", "xml"}, {"tasks", "list", "-n", "many"}} {
		code, _, _ := run(args...)
		require.Equal(t, 2, code, args)
	}
}
