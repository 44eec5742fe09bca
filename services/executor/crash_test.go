package executor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/services/executor"
)

// TestCrashAtEveryStep kills an executor at each step of a read, and lets another go on.
func TestCrashAtEveryStep(t *testing.T) {
	for _, c := range []struct {
		step      executor.Step
		id        string
		attempts  int
		submitted map[string]int
	}{
		{executor.StepPlaced, "t1/1", 1, map[string]int{"t1/1": 1}},
		{executor.StepClaiming, "t1/1", 1, map[string]int{"t1/1": 1}},
		// A claim stands and nobody knows whether its query has left: it is never submitted under that id again.
		{executor.StepClaimed, "t1/1", 2, map[string]int{"t1/2": 1}},
		{executor.StepSubmitting, "t1/1", 2, map[string]int{"t1/2": 1}},
		{executor.StepSubmitted, "t1/1", 2, map[string]int{"t1/1": 1, "t1/2": 1}},
		{executor.StepEnding, "t1/1", 2, map[string]int{"t1/1": 1, "t1/2": 1}},
		// The end stands: what it holds is published, and nothing is run again.
		{executor.StepEnded, "t1/1", 1, map[string]int{"t1/1": 1}},
		{executor.StepPublished, "t1", 1, map[string]int{"t1/1": 1}},
	} {
		t.Run(string(c.step), func(t *testing.T) {
			b := newBench(t, 1)
			b.servers[interactive].on("SELECT", behaviour{rows: 1})
			a := b.start()
			at, _ := a.steps.stopAt(c.step, c.id)
			b.decide(b.route("t1", "SELECT"))
			reached(t, at)
			a.crash()
			b.start()
			o := b.outcome("t1")
			require.Equal(t, event.Succeeded, o.Status)
			require.Equal(t, c.attempts, o.Attempts)
			require.Equal(t, c.submitted, b.servers[interactive].counts())
			require.Equal(t, "succeeded", b.change(fmt.Sprintf("t1/%d", c.attempts), "succeeded").State)
			b.committed()
			b.once()
		})
	}
}

// TestCrashWhileItRuns kills an executor whose query runs: the query goes on at the engine.
func TestCrashWhileItRuns(t *testing.T) {
	t.Run("a read is stopped and run again", func(t *testing.T) {
		b := newBench(t, 1)
		b.servers[interactive].on("LONG", behaviour{hold: make(chan struct{})})
		a := b.start()
		b.decide(b.route("t1", "LONG"))
		b.change("t1/1", "running")
		a.crash()
		b.servers[interactive].on("LONG", behaviour{rows: 1})
		b.start()
		o := b.outcome("t1")
		require.Equal(t, event.Succeeded, o.Status)
		require.Equal(t, 2, o.Attempts)
		require.True(t, b.servers[interactive].wasKilled("t1/1"))
		require.Equal(t, "lost", b.change("t1/1", "lost").State)
		b.committed()
		b.once()
	})
	t.Run("a write is watched, and its fate told", func(t *testing.T) {
		b := newBench(t, 1)
		hold := make(chan struct{})
		b.servers[interactive].on("INSERT", behaviour{hold: hold})
		a := b.start()
		b.decide(b.route("t1", "INSERT", func(d *event.RouteDecision) { d.ReadOnly = false }))
		b.change("t1/1", "running")
		a.crash()
		b.start()
		b.change("t1/1", "submit_unknown")
		time.Sleep(200 * time.Millisecond)
		require.True(t, b.servers[interactive].active("t1/1"))
		close(hold)
		o := b.outcome("t1")
		require.Equal(t, event.Failed, o.Status)
		require.Equal(t, string(failure.SubmitUnknown), o.Failure.Class)
		require.False(t, b.servers[interactive].wasKilled("t1/1"))
		b.committed()
		b.once()
	})
	t.Run("a write that was claimed is not run in the dark", func(t *testing.T) {
		b := newBench(t, 1)
		a := b.start()
		at, _ := a.steps.stopAt(executor.StepClaimed, "t1/1")
		b.decide(b.route("t1", "INSERT", func(d *event.RouteDecision) { d.ReadOnly = false }))
		reached(t, at)
		a.crash()
		b.start()
		o := b.outcome("t1")
		require.Equal(t, event.Failed, o.Status)
		require.Equal(t, string(failure.SubmitUnknown), o.Failure.Class)
		require.Empty(t, b.servers[interactive].counts())
	})
}

// TestCrashAroundAReroute kills an executor between the end of an attempt and its event, and while it waits for the router.
func TestCrashAroundAReroute(t *testing.T) {
	for _, published := range []bool{false, true} {
		t.Run(fmt.Sprintf("published=%v", published), func(t *testing.T) {
			b := newBench(t, 1)
			b.servers[interactive].setDown(true)
			b.servers[batch].on("SELECT", behaviour{rows: 1})
			a := b.start()
			var at <-chan struct{}
			if !published {
				at, _ = a.steps.stopAt(executor.StepEnded, "t1/1")
			}
			b.decide(b.route("t1", "SELECT"))
			if published {
				b.change("t1/1", "failed")
			} else {
				reached(t, at)
				require.NotContains(t, b.states("t1/1"), "failed")
			}
			a.crash()
			b.start()
			require.Equal(t, event.RemedyReroute, b.change("t1/1", "failed").Remedy)
			b.decide(b.route("t1", "SELECT", func(d *event.RouteDecision) { d.DecisionID, d.Attempt, d.Cluster = "t1/2", 2, batch }))
			o := b.outcome("t1")
			require.Equal(t, event.Succeeded, o.Status)
			require.Equal(t, 2, o.Attempts)
			b.committed()
			b.once()
		})
	}
}

// TestCrashWhileARerouteRuns kills an executor whose second attempt came from a decision of its own.
func TestCrashWhileARerouteRuns(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].setDown(true)
	b.servers[batch].on("LONG", behaviour{hold: make(chan struct{})})
	a := b.start()
	b.decide(b.route("t1", "LONG"))
	b.change("t1/1", "failed")
	b.decide(b.route("t1", "LONG", func(d *event.RouteDecision) {
		d.DecisionID, d.Attempt, d.Cluster, d.Rule, d.Fallbacks = "t1/2", 2, batch, "second", nil
	}))
	b.change("t1/2", "running")
	a.crash()
	b.servers[batch].on("LONG", behaviour{rows: 1})
	b.start()
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.Equal(t, 3, o.Attempts)
	require.Equal(t, batch, o.Cluster)
	require.Equal(t, "second", o.Rule)
	require.True(t, o.Rerouted)
	b.committed()
	b.once()
}

// TestCrashAfterAFailover kills an executor that has decided to move on, before it claimed the next attempt.
func TestCrashAfterAFailover(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("BIG", behaviour{code: "241"})
	b.servers[batch].on("BIG", behaviour{rows: 1})
	a := b.start()
	at, _ := a.steps.stopAt(executor.StepPlaced, "t1/2")
	b.decide(b.route("t1", "BIG"))
	reached(t, at)
	a.crash()
	b.start()
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.Equal(t, batch, o.Cluster)
	require.Equal(t, 2, o.Attempts)
	require.Equal(t, map[string]int{"t1/1": 1}, b.servers[interactive].counts())
	require.Equal(t, map[string]int{"t1/2": 1}, b.servers[batch].counts())
	b.committed()
}

// TestTheSlowOneIsKept is case K4: attempts finish out of order and the process dies; only the slow one is taken up again.
func TestTheSlowOneIsKept(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Engines[0].Slots = 20 }
	hold := make(chan struct{})
	b.servers[interactive].on("SLOW", behaviour{hold: hold, rows: 1})
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	a := b.start()
	b.decide(b.route("slow", "SLOW"))
	for i := range 9 {
		b.decide(b.route(fmt.Sprintf("t%d", i), "SELECT"))
	}
	for i := range 9 {
		b.outcome(fmt.Sprintf("t%d", i))
	}
	b.change("slow/1", "running")
	time.Sleep(200 * time.Millisecond) // some commit intervals
	require.LessOrEqual(t, b.broker.Offset(t, "executor", event.TopicDecisions, 0), int64(0), "nothing behind the slow one may be committed")
	a.crash()
	b.servers[interactive].on("SLOW", behaviour{rows: 1})
	b.start()
	require.Equal(t, event.Succeeded, b.outcome("slow").Status)
	b.committed()
	for i := range 9 {
		require.Equal(t, 1, b.servers[interactive].count(fmt.Sprintf("t%d/1", i)), "what was finished is not run again")
	}
	b.once()
}

// TestARewoundGroup reads everything again: nothing runs, and the outcomes that are published again are the same.
func TestARewoundGroup(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	a := b.start()
	short := func(d *event.RouteDecision) { d.Deadline = time.Now().Add(strain * 1500 * time.Millisecond) }
	b.decide(b.route("t1", "SELECT"), b.route("short", "SELECT", short), b.route("t2", "SELECT"))
	for _, id := range []string{"t1", "t2", "short"} {
		require.Equal(t, event.Succeeded, b.outcome(id).Status)
	}
	b.committed()
	a.end()
	time.Sleep(strain * 2 * time.Second) // the short one's deadline is over
	b.rewind()
	b.start()
	require.Eventually(t, func() bool {
		o := b.outcomes()
		return len(o["t1"]) > 1 && len(o["t2"]) > 1 && len(o["short"]) > 1
	}, patience, 20*time.Millisecond)
	b.committed()
	b.once()
}

func (b *bench) rewind() {
	b.t.Helper()
	admin := kadm.NewClient(b.broker.Client(b.t))
	offsets := kadm.Offsets{}
	offsets.AddOffset(event.TopicDecisions, 0, 0, -1)
	_, err := admin.CommitOffsets(b.t.Context(), "executor", offsets)
	require.NoError(b.t, err)
}
