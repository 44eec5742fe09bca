package board_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/services/intake/board"
)

var t0 = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)

func raw(t require.TestingT, v any) []byte {
	data, err := event.Marshal(v)
	require.NoError(t, err)
	return data
}

func task(id, sql string) query.Task {
	return query.Task{ID: id, SQL: sql, Tenant: "tenant_a", User: "u"}
}

func decision(id string, n int) event.RouteDecision {
	return event.RouteDecision{
		DecisionID: query.AttemptID(id, n), TaskID: id, Attempt: n, Kind: event.Route, DecidedAt: t0,
		Target: event.Target{Engine: "clickhouse", Cluster: "interactive"},
	}
}

func change(id string, n, seq int, state string, remedy event.Remedy) event.Attempt {
	return event.Attempt{AttemptID: query.AttemptID(id, n), TaskID: id, Number: n, Seq: seq, State: state, Remedy: remedy, At: t0, Tenant: "tenant_a"}
}

func outcome(id string) event.Outcome {
	return event.Outcome{
		TaskID: id, Status: event.Succeeded, Tenant: "tenant_a", Attempts: 1, SubmittedAt: t0, FinishedAt: t0,
		Result: &event.Result{Rows: 1, Format: "json", Inline: json.RawMessage(`[[1]]`)},
	}
}

// put folds any event in.
func put(t require.TestingT, b *board.Board, v any, at time.Time) {
	switch e := v.(type) {
	case query.Task:
		b.Request(e, raw(t, e), at)
	case event.RouteDecision:
		b.Decision(e, raw(t, e), at)
	case event.Attempt:
		b.Attempt(e, raw(t, e), at)
	case event.Outcome:
		b.Outcome(e, raw(t, e), at)
	case event.Cancel:
		b.Cancel(e, raw(t, e), at)
	default:
		panic(fmt.Sprintf("%T", v))
	}
}

func TestStates(t *testing.T) {
	b := board.New(board.Options{})
	for _, step := range []struct {
		put  any
		want string
	}{
		{task("x", "SELECT 1"), board.StateAccepted},
		{decision("x", 1), board.StateRouted},
		{change("x", 1, 1, "awaiting_slot", ""), "awaiting_slot"},
		{change("x", 1, 2, "running", ""), "running"},
		{change("x", 1, 3, "failed", event.RemedyReroute), board.StateRerouting},
		{decision("x", 2), board.StateRouted},
		{change("x", 2, 1, "awaiting_capacity", ""), "awaiting_capacity"},
		{change("x", 2, 2, "failed", event.RemedyRetry), board.StateRetrying},
		{change("x", 3, 1, "succeeded", ""), board.StateEnding},
		{outcome("x"), "succeeded"},
		{change("x", 3, 0, "late", ""), "succeeded"},
	} {
		put(t, b, step.put, t0)
		v, presence := b.Find("x")
		require.Equal(t, board.Known, presence)
		require.Equal(t, step.want, v.State)
	}
	rejected := decision("y", 1)
	rejected.Kind = event.Reject
	put(t, b, rejected, t0)
	v, _ := b.Find("y")
	require.Equal(t, board.StateEnding, v.State, "a rejection is an end on its way")
	require.Empty(t, v.Key, "the request itself was not seen")
}

func TestADecisionStandsInForTheRequest(t *testing.T) {
	b := board.New(board.Options{})
	d, stamped, original := decision("x", 1), task("x", "SELECT 1"), task("x", "SELECT 1")
	sla := 10.0
	stamped.SLASeconds, stamped.Session = &sla, &query.Session{ID: "s"}
	original.Session = stamped.Session
	d.Task, d.TaskDigest = &stamped, original.Digest()
	put(t, b, d, t0)
	v, _ := b.Find("x")
	require.Equal(t, "s", v.Key)
	require.Equal(t, original.Digest(), v.Digest)
	require.Equal(t, "tenant_a", v.Tenant)
	require.Contains(t, string(v.Task), "slaSeconds")

	put(t, b, original, t0)
	v, _ = b.Find("x")
	require.NotContains(t, string(v.Task), "slaSeconds", "the request itself is what was asked")
	require.Zero(t, b.Stats().Conflicts)
	require.Equal(t, "accepted", v.Of(board.Requests)[0].Name)
}

func TestRepeatsAreSeenOnce(t *testing.T) {
	b := board.New(board.Options{})
	all := []any{
		task("x", "SELECT 1"), decision("x", 1), change("x", 1, 1, "running", ""), event.Cancel{TaskID: "x"}, outcome("x"),
	}
	for range 3 {
		for _, e := range all {
			put(t, b, e, t0)
		}
	}
	v, _ := b.Find("x")
	require.Len(t, v.Events, len(all))
	require.True(t, v.Cancelled)
	require.EqualValues(t, 10, b.Stats().Repeats)
	require.Zero(t, b.Stats().Conflicts)
}

func TestTheFirstInTheLogWins(t *testing.T) {
	b := board.New(board.Options{})
	put(t, b, task("x", "SELECT 1"), t0)
	put(t, b, task("x", "SELECT 2"), t0)
	v, _ := b.Find("x")
	require.JSONEq(t, string(raw(t, task("x", "SELECT 1"))), string(v.Task))
	require.EqualValues(t, 1, b.Stats().Conflicts)

	first, second := outcome("x"), outcome("x")
	second.Status = event.Failed
	put(t, b, first, t0)
	put(t, b, second, t0)
	v, _ = b.Find("x")
	require.Equal(t, event.Succeeded, v.Outcome.Status)
}

func TestWhatWasAcceptedGivesWayToTheLog(t *testing.T) {
	b := board.New(board.Options{})
	mine, theirs := task("x", "SELECT 1"), task("x", "SELECT 22")
	b.Accept(mine, raw(t, mine), t0)
	before, _ := b.Find("x")
	require.False(t, before.Logged)
	require.Equal(t, mine.Digest(), before.Digest)

	put(t, b, theirs, t0)
	after, _ := b.Find("x")
	require.True(t, after.Logged)
	require.Equal(t, theirs.Digest(), after.Digest)
	require.Len(t, after.Events, 1)
	require.JSONEq(t, string(raw(t, mine)), string(before.Events[0].Data), "what was handed out before stays as it was")
	require.JSONEq(t, string(raw(t, theirs)), string(after.Events[0].Data))

	// The usual case: the log says the same.
	b.Accept(task("y", "SELECT 1"), raw(t, mine), t0)
	v, _ := b.Find("y")
	put(t, b, task("y", "SELECT 1"), t0)
	select {
	case <-v.Changed:
	default:
		t.Fatal("whoever waits for the log was not told")
	}
	b.Accept(task("y", "SELECT 3"), raw(t, mine), t0)
	v, _ = b.Find("y")
	require.True(t, v.Logged)
	require.Len(t, v.Events, 1)
}

func TestInlineRowsAreKeptOnce(t *testing.T) {
	b := board.New(board.Options{})
	put(t, b, outcome("x"), t0)
	v, _ := b.Find("x")
	require.Nil(t, v.Outcome.Result.Inline)
	require.Contains(t, string(v.Of(board.Outcomes)[0].Data), `"inline":[[1]]`)
}

func TestBoundInBytes(t *testing.T) {
	b := board.New(board.Options{MaxBytes: 100 << 10})
	for i := range 200 {
		put(t, b, task(fmt.Sprintf("t-%d", i), strings.Repeat("x", 2000)), t0.Add(time.Duration(i)*time.Second))
		require.LessOrEqual(t, b.Stats().Bytes, int64(100<<10))
	}
	_, presence := b.Find("t-0")
	require.Equal(t, board.Forgotten, presence)
	_, presence = b.Find("t-199")
	require.Equal(t, board.Known, presence)
	_, presence = b.Find("never")
	require.Equal(t, board.Unknown, presence)

	// A Task that was let go does not come back in pieces.
	put(t, b, outcome("t-0"), t0)
	v, presence := b.Find("t-0")
	require.Equal(t, board.Forgotten, presence)
	require.Equal(t, "tenant_a", v.Tenant)

	// One that is larger than the board is kept while it is the newest.
	put(t, b, task("huge", strings.Repeat("x", 200<<10)), t0)
	_, presence = b.Find("huge")
	require.Equal(t, board.Known, presence)
	require.Equal(t, 1, b.Stats().Tasks)
}

func TestBoundInTime(t *testing.T) {
	b := board.New(board.Options{KeepFor: time.Minute})
	put(t, b, task("x", "SELECT 1"), t0)
	v, _ := b.Find("x")
	b.Sweep(t0.Add(time.Minute))
	_, presence := b.Find("x")
	require.Equal(t, board.Known, presence)
	b.Sweep(t0.Add(time.Minute + 1))
	_, presence = b.Find("x")
	require.Equal(t, board.Forgotten, presence)
	<-v.Changed
	require.EqualValues(t, 1, b.Stats().EvictedByAge)
	require.Zero(t, b.Stats().Bytes)
}

func TestForgottenIsBounded(t *testing.T) {
	b := board.New(board.Options{KeepFor: time.Second, MaxForgotten: 10})
	for i := range 100 {
		put(t, b, task(fmt.Sprintf("t-%d", i), "SELECT 1"), t0.Add(time.Duration(i)*time.Minute))
	}
	require.Equal(t, 10, b.Stats().Forgotten)
}

func TestCursor(t *testing.T) {
	c := board.Cursor{1, 2, 5, 0}
	require.Equal(t, "1.2.5.0", c.String())
	back, err := board.ParseCursor(c.String())
	require.NoError(t, err)
	require.Equal(t, c, back)
	for _, bad := range []string{"", "1", "1.2.3", "1.2.3.x", "1.2.3.-1", "1.2.3.4.5", "1.2.3.99999999999999999999"} {
		_, err := board.ParseCursor(bad)
		require.Error(t, err, bad)
	}
}

// Two instances read the topics in different interleavings, and repeats come at any place: the cursors of one work at the
// other, and a reader who moves over sees each event once.
func TestCursorsTravelBetweenInstances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logs := [][]any{
			{task("x", "SELECT 1"), event.Cancel{TaskID: "x"}},
			{decision("x", 1), decision("x", 2)},
			{change("x", 1, 1, "running", ""), change("x", 1, 2, "failed", event.RemedyReroute), change("x", 2, 1, "running", "")},
			{outcome("x")},
		}
		for i := range logs { // a crash may write a record again, anywhere behind its first
			if rapid.Bool().Draw(t, "repeat") {
				logs[i] = append(logs[i], logs[i][rapid.IntRange(0, len(logs[i])-1).Draw(t, "which")])
			}
		}
		read := func(name string) (*board.Board, []board.Event) {
			b, at := board.New(board.Options{}), [4]int{}
			for {
				open := []int{}
				for i := range logs {
					if at[i] < len(logs[i]) {
						open = append(open, i)
					}
				}
				if len(open) == 0 {
					v, _ := b.Find("x")
					return b, v.Events
				}
				i := rapid.SampledFrom(open).Draw(t, name)
				put(t, b, logs[i][at[i]], t0)
				at[i]++
			}
		}
		_, first := read("first")
		b, second := read("second")
		require.Len(t, second, len(first))

		seen := rapid.IntRange(0, len(first)).Draw(t, "seen")
		var cursor board.Cursor
		v, _ := b.Find("x")
		var names []string
		for _, ev := range v.Since(cursor) {
			if ev.Name != "cancel" {
				names = append(names, ev.Name)
			}
		}
		require.Equal(t, []string{"accepted", "decision", "attempt", "attempt", "decision", "attempt", "outcome"}, names, "causes first")

		got := map[string]bool{}
		for _, ev := range first[:seen] {
			cursor[ev.Topic] = ev.Index
			got[string(ev.Data)] = true
		}
		for _, ev := range v.Since(cursor) {
			require.False(t, got[string(ev.Data)], "seen twice")
			got[string(ev.Data)] = true
		}
		require.Len(t, got, len(first))
		require.Equal(t, "succeeded", v.State)
	})
}

func TestAListSaysWhereATaskIs(t *testing.T) {
	b := board.New(board.Options{})
	only := func() board.Summary {
		list, more := b.List(10, func(board.Summary) bool { return true })
		require.Len(t, list, 1)
		require.False(t, more)
		return list[0]
	}
	put(t, b, task("x", "SELECT 1"), t0)
	require.Empty(t, only().Cluster, "nobody has decided yet")
	put(t, b, decision("x", 1), t0)
	require.Equal(t, "interactive", only().Cluster)
	moved := change("x", 2, 1, "running", "")
	moved.Target = event.Target{Engine: "trino", Cluster: "batch"}
	put(t, b, moved, t0) // a failover: the same decision
	require.Equal(t, "batch", only().Cluster)
	require.Equal(t, "trino", only().Engine)
	put(t, b, decision("x", 3), t0)
	require.Equal(t, "interactive", only().Cluster, "it is on its way there")
	rejected := decision("x", 4)
	rejected.Kind, rejected.Target = event.Reject, event.Target{}
	put(t, b, rejected, t0)
	require.Equal(t, "batch", only().Cluster, "where it was last")
	put(t, b, outcome("x"), t0)
	require.Equal(t, "batch", only().Cluster)
}

func TestStatesAreThoseThatATaskShows(t *testing.T) {
	states := board.States()
	require.Contains(t, states, "awaiting_capacity")
	require.Contains(t, states, "cancelled")
	require.NotContains(t, states, "lost")
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(states))), len(states))
}

// On a start the partitions are read one after the other.
func TestAListIsInTheOrderOfTime(t *testing.T) {
	b := board.New(board.Options{})
	for _, minute := range []int{1, 3, 5, 2, 4} { // two partitions
		put(t, b, task(fmt.Sprint(minute), "SELECT 1"), t0.Add(time.Duration(minute)*time.Minute))
	}
	put(t, b, change("5", 1, 1, "running", ""), t0) // a record of a clock that is behind
	names := func() (out []string) {
		list, _ := b.List(10, func(board.Summary) bool { return true })
		for _, s := range list {
			out = append(out, s.TaskID)
		}
		return out
	}
	require.Equal(t, []string{"5", "4", "3", "2", "1"}, names())
	list, _ := b.List(1, func(board.Summary) bool { return true })
	require.Equal(t, t0.Add(5*time.Minute), list[0].ChangedAt)
	put(t, b, change("2", 1, 1, "running", ""), t0.Add(6*time.Minute))
	require.Equal(t, []string{"2", "5", "4", "3", "1"}, names())
}
