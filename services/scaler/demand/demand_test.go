package demand_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/services/scaler/demand"
)

var t0 = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)

func fresh() *demand.Demand {
	return demand.New(demand.Options{Grace: time.Minute, Unended: time.Hour, KeepEnded: time.Hour})
}

func decision(id string, n int, cluster string) event.RouteDecision {
	return event.RouteDecision{
		DecisionID: query.AttemptID(id, n), TaskID: id, Attempt: n, Kind: event.Route, Deadline: t0.Add(10 * time.Minute),
		Target: event.Target{Engine: "clickhouse", Cluster: cluster},
	}
}

func change(id string, n, seq int, state, cluster string, remedy event.Remedy) event.Attempt {
	a := event.Attempt{
		AttemptID: query.AttemptID(id, n), TaskID: id, Number: n, Seq: seq, State: state, Remedy: remedy,
		Target: event.Target{Engine: "clickhouse", Cluster: cluster},
	}
	if remedy == event.RemedyFailover {
		a.Next = &event.Target{Engine: "clickhouse", Cluster: "batch"}
	}
	return a
}

func TestATaskMovesWithItsAttempts(t *testing.T) {
	d := fresh()
	for i, step := range []struct {
		put                any
		interactive, batch int
	}{
		{decision("x", 1, "interactive"), 1, 0},
		{decision("x", 1, "interactive"), 1, 0}, // a repeat
		{change("x", 1, 1, "running", "interactive", ""), 1, 0},
		{change("x", 1, 2, "failed", "interactive", event.RemedyFailover), 0, 1}, // it needs the other pool now
		{change("x", 2, 1, "awaiting_capacity", "batch", ""), 0, 1},
		{change("x", 1, 2, "failed", "interactive", event.RemedyFailover), 0, 1},
		{change("x", 2, 2, "failed", "batch", event.RemedyReroute), 0, 0}, // the router decides again
		{decision("x", 3, "batch"), 0, 1},
		{decision("x", 1, "interactive"), 0, 1}, // an old one, read again
		{change("x", 3, 1, "failed", "batch", event.RemedyRetry), 0, 1},
		{change("x", 4, 1, "succeeded", "batch", ""), 0, 1}, // over when the outcome says so
		{event.Outcome{TaskID: "x"}, 0, 0},
		{event.Outcome{TaskID: "x"}, 0, 0},
		{change("x", 4, 2, "succeeded", "batch", ""), 0, 0},
		{decision("x", 5, "batch"), 0, 0},
	} {
		put(d, step.put, t0)
		require.Equal(t, step.interactive, d.Open("interactive"), "step %d", i)
		require.Equal(t, step.batch, d.Open("batch"), "step %d", i)
	}
}

func put(d *demand.Demand, v any, at time.Time) {
	switch e := v.(type) {
	case event.RouteDecision:
		d.Decision(e, at)
	case event.Attempt:
		d.Attempt(e, at)
	case event.Outcome:
		d.Outcome(e, at)
	}
}

func TestOnlyRoutesCount(t *testing.T) {
	d := fresh()
	for _, kind := range []event.DecisionKind{event.Reject, event.PassCancel, "novelty"} {
		dec := decision("x", 1, "batch")
		dec.Kind = kind
		put(d, dec, t0)
	}
	put(d, decision("", 1, "batch"), t0)
	require.Zero(t, d.Open("batch"))
}

func TestAnEndThatIsReadFirstCounts(t *testing.T) {
	d := fresh()
	put(d, event.Outcome{TaskID: "x"}, t0)
	put(d, decision("x", 1, "batch"), t0)
	put(d, change("x", 1, 1, "running", "batch", ""), t0)
	require.Zero(t, d.Open("batch"))

	d.Sweep(t0.Add(2 * time.Hour)) // forgotten: the id could be a new Task's by now
	put(d, decision("x", 1, "batch"), t0)
	require.Equal(t, 1, d.Open("batch"))
}

func TestATaskWithoutAnEndExpires(t *testing.T) {
	d := fresh()
	put(d, decision("x", 1, "batch"), t0)
	put(d, change("y", 1, 1, "running", "batch", ""), t0) // its decision is older than what was read
	d.Sweep(t0.Add(11 * time.Minute))
	require.Equal(t, 2, d.Open("batch"), "the grace counts")
	d.Sweep(t0.Add(11*time.Minute + 1))
	require.Equal(t, 1, d.Open("batch"))
	require.Equal(t, t0.Add(11*time.Minute), d.LastWork("batch"))
	d.Sweep(t0.Add(time.Hour + 1))
	require.Zero(t, d.Open("batch"))
}

func TestLastWorkAndChanged(t *testing.T) {
	d := fresh()
	require.True(t, d.LastWork("batch").IsZero())
	ch := d.Changed()
	put(d, decision("x", 1, "batch"), t0)
	<-ch
	ch = d.Changed()
	put(d, change("x", 1, 1, "running", "batch", ""), t0.Add(time.Second))
	select {
	case <-ch:
		t.Fatal("nothing has come or gone")
	default:
	}
	require.Equal(t, t0.Add(time.Second), d.LastWork("batch"))
	put(d, event.Outcome{TaskID: "x"}, t0.Add(2*time.Second))
	<-ch
	require.Equal(t, t0.Add(2*time.Second), d.LastWork("batch"))
}

// However the topics interleave, and whatever is repeated, the fold ends where the Tasks are.
func TestInterleavingsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var decisions, attempts, outcomes []any
		want := map[string]int{}
		for i := range rapid.IntRange(1, 6).Draw(t, "tasks") {
			id := fmt.Sprint("t", i)
			cluster := rapid.SampledFrom([]string{"interactive", "batch"}).Draw(t, "cluster")
			decisions = append(decisions, decision(id, 1, cluster))
			moved := rapid.Bool().Draw(t, "moved")
			attempts = append(attempts, change(id, 1, 1, "running", cluster, ""))
			if moved {
				attempts = append(attempts, change(id, 1, 2, "failed", cluster, event.RemedyFailover), change(id, 2, 1, "running", "batch", ""))
				cluster = "batch"
			}
			if rapid.Bool().Draw(t, "ended") {
				outcomes = append(outcomes, event.Outcome{TaskID: id})
				continue
			}
			want[cluster]++
		}
		logs := [][]any{decisions, attempts, outcomes}
		for i := range logs {
			if len(logs[i]) > 0 && rapid.Bool().Draw(t, "repeat") {
				logs[i] = append(logs[i], logs[i][0])
			}
		}
		d, at := fresh(), [3]int{}
		for {
			var open []int
			for i := range logs {
				if at[i] < len(logs[i]) {
					open = append(open, i)
				}
			}
			if len(open) == 0 {
				break
			}
			i := rapid.SampledFrom(open).Draw(t, "next")
			put(d, logs[i][at[i]], t0)
			at[i]++
		}
		require.Equal(t, want["interactive"], d.Open("interactive"))
		require.Equal(t, want["batch"], d.Open("batch"))
	})
}
