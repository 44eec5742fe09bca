package executor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/services/executor"
)

// TestZombieBetweenClaimAndSubmission is case K6: an executor stands still between its claim and its submission for longer than
// the session timeout, another takes over, and the first wakes up.
func TestZombieBetweenClaimAndSubmission(t *testing.T) {
	for _, step := range []executor.Step{executor.StepClaiming, executor.StepClaimed, executor.StepSubmitting, executor.StepEnding, executor.StepEnded} {
		t.Run(string(step), func(t *testing.T) {
			b := newBench(t, 1)
			b.servers[interactive].on("SELECT", behaviour{rows: 1})
			a := b.start()
			at, release := a.steps.stopAt(step, "t1/1")
			b.decide(b.route("t1", "SELECT"))
			reached(t, at)
			a.network.freeze()
			b.start()
			o := b.outcome("t1")
			require.Equal(t, event.Succeeded, o.Status)
			before := b.servers[interactive].counts()
			a.network.thaw()
			release()
			time.Sleep(time.Second) // what the zombie still does, it does now
			require.Equal(t, before, b.servers[interactive].counts(), "the zombie submits nothing")
			b.decide(b.route("t2", "SELECT"))
			require.Equal(t, event.Succeeded, b.outcome("t2").Status)
			b.committed()
			b.once()
		})
	}
}

// TestRebalanceDuringALongAttempt is case K2: a second executor joins while attempts run.
func TestRebalanceDuringALongAttempt(t *testing.T) {
	b := newBench(t, 4)
	b.config = func(c *executor.Config) { c.Engines[0].Slots = 50 }
	hold := make(chan struct{})
	b.servers[interactive].on("LONG", behaviour{hold: hold, rows: 1})
	b.start()
	const n = 12
	for i := range n {
		b.decide(b.route(fmt.Sprintf("t%d", i), "LONG"))
	}
	for i := range n {
		b.change(fmt.Sprintf("t%d/1", i), "running")
	}
	second := b.start()
	_ = second
	// Half of the partitions move. Their reads are stopped by the new owner and run again under another number.
	require.Eventually(t, func() bool {
		moved := 0
		for i := range n {
			if len(b.changes(fmt.Sprintf("t%d/2", i))) > 0 {
				moved++
			}
		}
		return moved > 0
	}, patience, 50*time.Millisecond)
	close(hold)
	again := 0
	for i := range n {
		o := b.outcome(fmt.Sprintf("t%d", i))
		require.Equal(t, event.Succeeded, o.Status)
		require.LessOrEqual(t, o.Attempts, 2)
		again += o.Attempts - 1
	}
	require.Positive(t, again)
	require.Less(t, again, n, "what did not move was left alone")
	b.committed()
	b.once()
}

// TestShutdownFinishesWhatIsShort lets a running attempt end within the grace.
func TestShutdownFinishesWhatIsShort(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Attempts.Grace = 5 * time.Second }
	b.servers[interactive].on("SHORT", behaviour{slow: 400 * time.Millisecond, rows: 1})
	a := b.start()
	b.decide(b.route("t1", "SHORT"))
	b.change("t1/1", "running")
	a.end()
	require.Equal(t, event.Succeeded, b.outcome("t1").Status)
	b.committed()
	require.Equal(t, map[string]int{"t1/1": 1}, b.servers[interactive].counts())
}

// TestShutdownUsesNoAttemptUp leaves what is long to the next owner: a read is stopped at the engine, a write goes on, and
// neither is ended.
func TestShutdownUsesNoAttemptUp(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Engines[0].Slots = 2 }
	hold := make(chan struct{})
	b.servers[interactive].on("LONG", behaviour{hold: hold, rows: 1})
	b.servers[interactive].on("INSERT", behaviour{hold: hold, rows: 1})
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	a := b.start()
	b.decide(b.route("t1", "LONG"), b.route("w1", "INSERT", func(d *event.RouteDecision) { d.ReadOnly = false }))
	b.change("t1/1", "running")
	b.change("w1/1", "running")
	b.decide(b.route("waits", "SELECT"))
	b.change("waits/1", "awaiting_slot")
	a.end()
	require.Empty(t, b.outcomes())
	require.True(t, b.servers[interactive].wasKilled("t1/1"), "nobody else can have its result")
	require.False(t, b.servers[interactive].active("t1/1"))
	require.False(t, b.servers[interactive].wasKilled("w1/1"), "a write is not stopped halfway")
	require.Equal(t, []string{"awaiting_slot", "claimed", "submitting", "running"}, b.states("t1/1"), "and it has not ended")
	b.servers[interactive].on("LONG", behaviour{rows: 1})
	b.start()
	require.Equal(t, event.Succeeded, b.outcome("t1").Status)
	o := b.outcome("waits")
	require.Equal(t, event.Succeeded, o.Status)
	require.Equal(t, 1, o.Attempts, "what only waited has lost nothing")
	close(hold)
	o = b.outcome("w1")
	require.Equal(t, event.Failed, o.Status)
	require.Equal(t, string(failure.SubmitUnknown), o.Failure.Class, "nobody saw how it ended")
	b.committed()
	b.once()
}

// TestRestartsUseNoAttemptUp: a long read outlives more restarts than a Task has attempts, or a target retries.
func TestRestartsUseNoAttemptUp(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) {
		c.Attempts.MaxAttempts, c.Attempts.MaxRetries, c.Attempts.Grace = 2, 1, 10*time.Millisecond
	}
	hold := make(chan struct{})
	b.servers[interactive].on("LONG", behaviour{hold: hold, rows: 1})
	p := b.start()
	b.decide(b.route("t1", "LONG"))
	for i := 1; i <= 4; i++ {
		b.change(query.AttemptID("t1", i), "running")
		p.end()
		p = b.start()
	}
	b.change("t1/5", "running")
	close(hold)
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.Equal(t, interactive, o.Cluster, "a restart is no reason to go elsewhere")
	require.Equal(t, 5, o.Attempts)
	require.Equal(t, event.RemedyRetry, b.change("t1/4", "lost").Remedy)
	b.once()
}

// TestFailuresCountBetweenRestarts: what the engine fails counts, whoever owns it.
func TestFailuresCountBetweenRestarts(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) {
		c.Attempts.MaxAttempts, c.Attempts.Grace = 2, 10*time.Millisecond
	}
	hold := make(chan struct{})
	b.servers[interactive].on("LONG", behaviour{hold: hold, code: "241"})
	b.servers[batch].on("LONG", behaviour{code: "241"})
	p := b.start()
	b.decide(b.route("t1", "LONG"))
	b.change("t1/1", "running")
	p.end()
	b.start()
	b.change("t1/2", "running")
	close(hold)
	o := b.outcome("t1")
	require.Equal(t, event.Failed, o.Status)
	require.Equal(t, string(failure.MemoryLimit), o.Failure.Class)
	require.Equal(t, 3, o.Attempts, "one was lost, and two failed")
}

// TestAStolenLeaseIsTakenBack is a ledger that somebody takes who does not have the partition.
func TestAStolenLeaseIsTakenBack(t *testing.T) {
	b := newBench(t, 1)
	hold := make(chan struct{})
	b.servers[interactive].on("LONG", behaviour{hold: hold, rows: 1})
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	b.start()
	b.decide(b.route("t1", "LONG"))
	b.change("t1/1", "running")
	thief := b.steal(0)
	defer thief()
	b.servers[interactive].on("LONG", behaviour{rows: 1})
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.Equal(t, 2, o.Attempts)
	b.decide(b.route("t2", "SELECT"))
	require.Equal(t, event.Succeeded, b.outcome("t2").Status)
	b.committed()
	b.once()
}
