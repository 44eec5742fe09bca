package executor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/services/executor"
)

// slowToSettle leaves a crowded machine time to see what comes late.
func slowToSettle(c *executor.Config) { c.Attempts.GuardSettle = 5 * time.Second }

// TestALostSubmissionOfOurOwnSettlesBeforeItIsGone: the connection breaks just after the query has left, and the engine sees it
// 50 ms later, well within GuardSettle.
func TestALostSubmissionOfOurOwnSettlesBeforeItIsGone(t *testing.T) {
	b := newBench(t, 1)
	b.config = slowToSettle
	b.servers[interactive].on("LATE", behaviour{rows: 1, late: 50 * time.Millisecond})
	b.start()
	b.decide(b.route("t1", "LATE"))
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.Equal(t, 2, o.Attempts)
	require.Equal(t, map[string]int{"t1/1": 1, "t1/2": 1}, b.servers[interactive].counts())
	require.True(t, b.servers[interactive].wasKilled("t1/1"), "it is found, and stopped before the next attempt")
	require.False(t, b.servers[interactive].active("t1/1"))
}

// TestACancelOfALostSubmissionStopsWhatComesLate is the same for a user who takes the Task back meanwhile.
func TestACancelOfALostSubmissionStopsWhatComesLate(t *testing.T) {
	b := newBench(t, 1)
	b.config = slowToSettle
	b.servers[interactive].on("LATE", behaviour{late: 80 * time.Millisecond})
	b.start()
	b.decide(b.route("t1", "LATE"))
	b.change("t1/1", "submit_unknown")
	b.decide(cancelOf("t1"))
	require.Equal(t, event.Cancelled, b.outcome("t1").Status)
	require.Eventually(t, func() bool { return b.servers[interactive].count("t1/1") == 1 }, patience, 10*time.Millisecond)
	require.False(t, b.servers[interactive].active("t1/1"))
}

// TestAnAnswerThatNeverComes: the network drops what it carries and tells nobody. The engine was seen at work and has nothing more of
// it, or never saw more than a glimpse of it, so the attempt does not wait for its Task's deadline: a read is made again. A write is not taken for lost before that.
func TestAnAnswerThatNeverComes(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("SELECT", behaviour{rows: 1, slow: 300 * time.Millisecond, mute: true})
	b.servers[interactive].on("INSERT", behaviour{slow: 300 * time.Millisecond, mute: true})
	b.servers[interactive].on("QUICK", behaviour{rows: 1, mute: true})
	b.start()
	b.decide(b.route("r1", "SELECT"), b.route("w1", "INSERT", write, func(d *event.RouteDecision) { d.Deadline = time.Now().Add(8 * time.Second) }), b.route("q1", "QUICK"))
	began := time.Now()
	o := b.outcome("r1")
	require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
	require.Equal(t, 2, o.Attempts)
	require.Equal(t, string(failure.SubmitUnknown), b.change("r1/1", "lost").Failure.Class)
	o = b.outcome("q1")
	require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
	require.Equal(t, 2, o.Attempts)
	o = b.outcome("w1")
	require.Equal(t, event.Failed, o.Status, "nobody knows whether it was done")
	require.Equal(t, string(failure.SubmitUnknown), o.Failure.Class)
	require.Contains(t, o.Failure.Message, "deadline")
	require.Equal(t, 1, o.Attempts)
	require.Equal(t, 1, b.servers[interactive].count("w1/1"))
	require.Zero(t, b.servers[interactive].count("w1/2")+b.servers[batch].count("w1/2"))
	require.Less(t, time.Since(began), 30*time.Second, "half of the Tasks' time")
	b.committed()
	b.once()
}
