package intake_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/intake"
)

func TestList(t *testing.T) {
	b := start(t, withTopics(t), nil)
	var ids []string
	for range 3 {
		ids = append(ids, b.submit(`{"sql":"SELECT 1","tenant":"t","user":"u"}`))
	}
	other := b.submit(`{"sql":"SELECT 1","tenant":"other"}`)
	b.decide(ids[0], 1)
	b.attempt(ids[0], 1, 1, "running")
	b.end(event.Outcome{TaskID: ids[1], Tenant: "t", Status: event.Failed, Attempts: 2, TotalMs: 17, Target: event.Target{Engine: "clickhouse", Cluster: "batch"}})
	list := func(query string) (out intake.TaskList) {
		a := b.do("GET", "/v1/tasks"+query, "")
		require.Equal(t, 200, a.status, "%s", a.body)
		require.NoError(t, json.Unmarshal(a.body, &out))
		return out
	}
	names := func(l intake.TaskList) (out []string) {
		for _, s := range l.Tasks {
			out = append(out, s.TaskID)
		}
		return out
	}
	b.eventually(func() bool { return len(list("?state=failed").Tasks) == 1 && len(list("?state=running").Tasks) == 1 }, "the ends are read")
	all := list("")
	require.ElementsMatch(t, append([]string{other}, ids...), names(all))
	require.False(t, all.More)
	require.Equal(t, []string{ids[2]}, names(list("?state=open&tenant=t&cluster="))[len(list("?state=open&tenant=t").Tasks)-1:], "the one that changed longest ago is last")
	require.ElementsMatch(t, []string{ids[0], ids[2]}, names(list("?state=open&user=u")))
	failed := list("?state=failed").Tasks[0]
	require.Equal(t, "batch", failed.Cluster)
	require.Equal(t, 2, failed.Attempts)
	require.EqualValues(t, 17, *failed.TotalMs)
	require.False(t, *failed.SLAHit)
	require.NotNil(t, failed.SubmittedAt)
	running := list("?state=running").Tasks[0]
	require.Equal(t, "interactive", running.Cluster, "where it is, while it is there")
	require.Equal(t, "clickhouse", running.Engine)
	require.Equal(t, []string{ids[0]}, names(list("?state=open&cluster=interactive")))
	require.Nil(t, running.TotalMs)
	require.Nil(t, running.SLAHit, "what has not ended has neither hit nor missed")
	require.Equal(t, []string{ids[1]}, names(list("?cluster=batch")))
	began := time.Now()
	another := start(t, b.broker, nil) // which reads all of it at once
	a := another.do("GET", "/v1/tasks", "")
	var later intake.TaskList
	require.NoError(t, json.Unmarshal(a.body, &later))
	changed := func(l intake.TaskList) map[string]time.Time {
		out := map[string]time.Time{}
		for _, s := range l.Tasks {
			out[s.TaskID] = s.ChangedAt.Truncate(time.Millisecond)
		}
		return out
	}
	was, is := changed(all), changed(later)
	for _, id := range ids[:2] {
		require.Equal(t, was[id], is[id], "when it changed, by the record of the change")
	}
	for id, at := range is { // of one that is only accepted the front door's own time counts where it came in, and the record's elsewhere
		require.True(t, at.Before(began), "%s: when it changed, and not when it was read", id)
	}
	two := list("?limit=2")
	require.Len(t, two.Tasks, 2)
	require.True(t, two.More)
	for _, state := range []string{"open", "accepted", "awaiting_slot", "submit_unknown", "retrying", "ending", "expired"} {
		list("?state=" + state)
	}
	for _, state := range []string{"no_such_state", "lost", "Running"} { // an attempt may be lost, a task never
		a := b.do("GET", "/v1/tasks?state="+state, "")
		require.Equal(t, 400, a.status, state)
		require.Equal(t, "bad_parameter", a.problem()["code"])
		require.Contains(t, a.problem()["detail"], "awaiting_capacity")
	}
	for _, bad := range []string{"0", "-1", "1001", "many", strconv.Itoa(1 << 40)} {
		a := b.do("GET", "/v1/tasks?limit="+bad, "")
		require.Equal(t, 400, a.status, bad)
		require.Equal(t, "bad_parameter", a.problem()["code"])
	}
}
