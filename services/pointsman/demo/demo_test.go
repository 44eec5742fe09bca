package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/loadgen/workload"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
)

func TestCompleteOnlyWithOneOutcomeEach(t *testing.T) {
	good := Summary{Tasks: 3, Outcomes: 3, Stored: 3}
	require.NoError(t, good.Complete())
	for want, s := range map[string]Summary{
		"1 of 3 tasks have no outcome":                 {Tasks: 3, Outcomes: 2, Stored: 2, Lost: 1},
		"2 outcomes stand in the log in two versions":  {Tasks: 3, Outcomes: 3, Stored: 3, ConflictingOutcomes: 2},
		"3 outcomes are in the topic, 2 in ClickHouse": {Tasks: 3, Outcomes: 3, Stored: 2},
	} {
		require.EqualError(t, s.Complete(), want)
	}
}

func TestBoardCountsConflictsAndLost(t *testing.T) {
	b := newBoard([]workload.Arrival{{Task: query.Task{ID: "a"}, Kind: workload.CAB}, {Task: query.Task{ID: "b"}, Kind: workload.CAB}})
	o := event.Outcome{TaskID: "a", Status: event.Succeeded}
	b.outcome(o, []byte(`{"x":1}`))
	b.outcome(o, []byte(`{"x":1}`))
	require.Zero(t, b.summary().ConflictingOutcomes, "the same bytes again are no conflict")
	b.outcome(o, []byte(`{"x":2}`))
	s := b.summary()
	require.Equal(t, 1, s.ConflictingOutcomes)
	require.Equal(t, 1, s.Lost)
	require.ErrorIs(t, b.stopped(), ErrStopped)

	b.allSent()
	select {
	case <-b.done:
		t.Fatal("one task is still open")
	default:
	}
	b.outcome(event.Outcome{TaskID: "b", Status: event.Failed}, []byte(`{}`))
	<-b.done
}

func TestLiveLineFitsTheTerminal(t *testing.T) {
	b := newBoard(nil)
	line, _ := b.line(600, 12*time.Second)
	require.Contains(t, line, "0/600 ended")
	require.Len(t, cut(strings.Repeat("x", 200), 80), 79)
	require.Equal(t, "short", cut("short", 80))
}

func TestPrintShowsEveryPart(t *testing.T) {
	var out strings.Builder
	r := Report{
		Summary: Summary{Tasks: 2, Outcomes: 2, RescuedByBatch: 1, SLAHitRate: 0.5, SLASamples: 2},
		Routes:  []RouteRow{{Kind: "route", Cluster: "batch", Reason: "history_memory_kill", Tasks: 1}, {Kind: "reject", Reason: "session_query_budget", Tasks: 1}},
		Pools:   []PoolRow{{Cluster: "batch", Tasks: 1, HitRate: 1}}, Rejections: []RejectionRow{{Code: "session_query_budget", Text: "Summarise.", Tasks: 1}},
		Told: "Task a goes to batch.",
	}
	require.NoError(t, r.Print(&out))
	for _, want := range []string{"2 tasks, 2 outcomes", "50.0 % of 2 tasks", "history_memory_kill", "(reject)", "1 x session_query_budget: Summarise.", "Task a goes to batch."} {
		require.Contains(t, out.String(), want)
	}
}
