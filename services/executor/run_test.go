package executor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/services/executor"
)

func TestATaskRuns(t *testing.T) {
	b := newBench(t, 2)
	b.servers[interactive].on("SELECT", behaviour{rows: 3})
	b.start()
	b.decide(b.route("t1", "SELECT"))
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.Equal(t, `[["1"],["2"],["3"]]`, string(o.Result.Inline))
	require.Equal(t, interactive, o.Cluster)
	require.Equal(t, 1, o.Attempts)
	require.False(t, o.Rerouted)
	require.True(t, o.SLAHit)
	require.EqualValues(t, 10_000, o.SLAMs)
	require.Equal(t, "tenant_a", o.Tenant)
	require.Equal(t, []string{"meets_sla"}, o.Reasons)
	require.NotNil(t, o.StartedAt)
	for _, ms := range []*int64{o.Stats.QueueMs, o.Stats.AcquireMs, o.Stats.ExecMs, o.Stats.DeliverMs} {
		require.NotNil(t, ms)
		require.GreaterOrEqual(t, *ms, int64(0))
	}
	require.EqualValues(t, 1000, *o.Stats.ReadRows)
	require.Nil(t, o.Stats.PeakMemoryBytes, "nobody said, so it is not known")

	b.committed()
	require.Equal(t, []string{"awaiting_slot", "claimed", "submitting", "running", "delivering", "succeeded"}, b.states("t1/1"))
	require.Len(t, b.outcomes()["t1"], 1)
	b.once()
}

func TestMemoryLimitMovesTheTaskToTheNextPool(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("BIG", behaviour{code: "241"})
	b.servers[batch].on("BIG", behaviour{rows: 1})
	b.start()
	b.decide(b.route("t1", "BIG"))
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.Equal(t, batch, o.Cluster)
	require.Equal(t, 2, o.Attempts)
	require.True(t, o.Rerouted)
	failed := b.change("t1/1", "failed")
	require.Equal(t, string(failure.MemoryLimit), failed.Failure.Class)
	require.Equal(t, "241", failed.Failure.Code)
	require.Equal(t, event.RemedyFailover, failed.Remedy)
	require.Equal(t, batch, failed.Next.Cluster)
	require.Equal(t, map[string]int{"t1/1": 1}, b.servers[interactive].counts())
	require.Equal(t, map[string]int{"t1/2": 1}, b.servers[batch].counts())
	b.committed()
}

func TestWrongSQLFailsAtOnce(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("WRONG", behaviour{code: "60"})
	b.start()
	b.decide(b.route("t1", "WRONG"))
	o := b.outcome("t1")
	require.Equal(t, event.Failed, o.Status)
	require.Equal(t, string(failure.Semantic), o.Failure.Class)
	require.Equal(t, "UNKNOWN_TABLE", o.Failure.Name)
	require.NotEmpty(t, o.Failure.Hint)
	require.Equal(t, 1, o.Attempts)
	require.False(t, o.SLAHit)
	require.Empty(t, b.servers[batch].counts())
	b.committed()
}

func TestAWriteThatFailedMidwayIsNotRunElsewhere(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("INSERT", behaviour{code: "241"})
	b.start()
	b.decide(b.route("t1", "INSERT", func(d *event.RouteDecision) { d.ReadOnly = false }))
	require.Equal(t, event.Failed, b.outcome("t1").Status)
	require.Empty(t, b.servers[batch].counts())
}

func TestClusterDownAsksTheRouter(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].setDown(true)
	b.servers[batch].on("SELECT", behaviour{rows: 1})
	b.start()
	d := b.route("t1", "SELECT")
	b.decide(d)
	failed := b.change("t1/1", "failed")
	require.Equal(t, string(failure.ClusterDown), failed.Failure.Class)
	require.Equal(t, event.RemedyReroute, failed.Remedy)
	require.Equal(t, d.Task.SQL, failed.Decision.Task.SQL, "the router needs no other topic to decide again")
	require.Equal(t, []event.Target{d.Target}, failed.Excluded)
	require.Empty(t, b.outcomes())

	b.decide(b.route("t1", "SELECT", func(d *event.RouteDecision) {
		d.DecisionID, d.Attempt, d.Cluster, d.Rule = "t1/2", 2, batch, "second"
	}))
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.Equal(t, batch, o.Cluster)
	require.Equal(t, "second", o.Rule)
	require.Equal(t, 2, o.Attempts)
	require.Equal(t, map[string]int{"t1/2": 1}, b.servers[batch].counts())
	b.committed()
	b.once()
}

func TestARouterThatFindsNoOtherPlace(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].setDown(true)
	b.start()
	b.decide(b.route("t1", "SELECT"))
	b.change("t1/1", "failed")
	b.decide(b.route("t1", "SELECT", func(d *event.RouteDecision) {
		d.DecisionID, d.Attempt, d.Kind, d.Target = "t1/2", 2, event.Reject, event.Target{}
		d.Rejection = &event.Rejection{Code: "no_candidate", Message: "nothing is left"}
	}))
	o := b.outcome("t1")
	require.Equal(t, event.Failed, o.Status, "it was admitted, and failed")
	require.Equal(t, string(failure.ClusterDown), o.Failure.Class)
	require.Equal(t, "no_candidate", o.Rejection.Code)
	b.committed()
}

func TestARerouteThatNeverComesEndsAtTheDeadline(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].setDown(true)
	b.start()
	b.decide(b.route("t1", "SELECT", func(d *event.RouteDecision) { d.Deadline = time.Now().Add(1500 * time.Millisecond) }))
	b.change("t1/1", "failed")
	require.Equal(t, event.Expired, b.outcome("t1").Status)
	b.committed()
}

func TestUnknownClusterIsRoutedAnew(t *testing.T) {
	b := newBench(t, 1)
	b.start()
	b.decide(b.route("t1", "SELECT", func(d *event.RouteDecision) { d.Cluster = "elsewhere" }))
	failed := b.change("t1/1", "failed")
	require.Equal(t, event.RemedyReroute, failed.Remedy)
	require.Contains(t, failed.Failure.Message, "elsewhere")
}

func TestReject(t *testing.T) {
	b := newBench(t, 1)
	b.start()
	b.decide(b.route("t1", "SELECT", func(d *event.RouteDecision) {
		d.Kind, d.Target, d.Fallbacks = event.Reject, event.Target{}, nil
		d.Rejection = &event.Rejection{Code: "over_budget", Message: "20 of 20 queries are used", Suggestion: "wait"}
	}))
	o := b.outcome("t1")
	require.Equal(t, event.Rejected, o.Status)
	require.Equal(t, "over_budget", o.Rejection.Code)
	require.Zero(t, o.Attempts)
	require.Nil(t, o.StartedAt)
	b.committed()
	require.Empty(t, b.broker.Records(t, event.TopicAttempts), "a rejected Task has no attempt")
}

func TestHigherPriorityGoesFirst(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Engines[0].Slots = 1 }
	hold := make(chan struct{})
	b.servers[interactive].on("LONG", behaviour{hold: hold})
	b.start()
	b.decide(b.route("first", "LONG"))
	b.change("first/1", "running")
	b.decide(b.route("low", "SELECT"), b.route("high", "SELECT", func(d *event.RouteDecision) { d.Task.Priority = 5; d.TaskDigest = d.Task.Digest() }))
	require.Eventually(t, func() bool { return len(b.changes("high/1")) > 0 && len(b.changes("low/1")) > 0 }, patience, 10*time.Millisecond)
	close(hold)
	b.outcome("low")
	b.outcome("high")
	require.Equal(t, []string{"first/1", "high/1", "low/1"}, b.servers[interactive].order)
}

func TestDeadlineWhileRunning(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("LONG", behaviour{hold: make(chan struct{})})
	b.start()
	b.decide(b.route("t1", "LONG", func(d *event.RouteDecision) { d.Deadline = time.Now().Add(700 * time.Millisecond) }))
	o := b.outcome("t1")
	require.Equal(t, event.Expired, o.Status)
	require.Equal(t, string(failure.Timeout), o.Failure.Class)
	require.False(t, b.servers[interactive].active("t1/1"))
	b.committed()
}

// TestClocks is case K23: producers whose clocks are days off.
func TestClocks(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	b.start()
	shift := func(id string, by time.Duration) event.RouteDecision {
		return b.route(id, "SELECT", func(d *event.RouteDecision) {
			at := d.Task.SubmittedAt.Add(by)
			d.Task.SubmittedAt, d.DecidedAt, d.Deadline = &at, at, at.Add(time.Minute)
		})
	}
	b.decide(shift("ahead", 240*time.Hour), shift("behind", -240*time.Hour))
	o := b.outcome("ahead")
	require.Equal(t, event.Succeeded, o.Status)
	require.Zero(t, o.TotalMs, "nothing takes less than no time")
	require.False(t, o.FinishedAt.Before(o.SubmittedAt))
	require.False(t, o.StartedAt.Before(o.SubmittedAt))
	o = b.outcome("behind")
	require.Equal(t, event.Expired, o.Status)
	require.Positive(t, o.TotalMs)
	require.Zero(t, b.servers[interactive].count("behind/1"))

	// The record's own time is off as well: kfake takes any.
	for id, by := range map[string]time.Duration{"ahead2": 240 * time.Hour, "behind2": -240 * time.Hour} {
		d := b.route(id, "SELECT")
		data, err := event.Marshal(d)
		require.NoError(t, err)
		rec, err := b.broker.Config.Encode(stream.Message{Topic: event.TopicDecisions, Key: id, Type: d.Type(), ID: id, Data: data})
		require.NoError(t, err)
		rec.Timestamp = time.Now().Add(by)
		require.NoError(t, b.producer.Write(t.Context(), rec))
		require.Equal(t, event.Succeeded, b.outcome(id).Status)
	}
	b.committed()
	b.once()
}

func TestRetriesAreBounded(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Attempts.MaxAttempts, c.Attempts.MaxRetries = 5, 1 }
	for _, s := range b.servers {
		s.on("FLAKY", behaviour{lose: true})
	}
	b.start()
	b.decide(b.route("t1", "FLAKY"))
	failed := b.change("t1/4", "lost")
	require.Equal(t, event.RemedyReroute, failed.Remedy, "two here, two at the fallback, then the router")
	require.Equal(t, map[string]int{"t1/1": 1, "t1/2": 1}, b.servers[interactive].counts())
	require.Equal(t, map[string]int{"t1/3": 1, "t1/4": 1}, b.servers[batch].counts())
	require.Equal(t, []event.Target{{Engine: "clickhouse", Cluster: interactive, Queue: "default"}, {Engine: "clickhouse", Cluster: batch, Queue: "default"}}, failed.Excluded)
	b.decide(b.route("t1", "FLAKY", func(d *event.RouteDecision) { d.Attempt, d.DecisionID, d.Fallbacks = 5, query.AttemptID("t1", 5), nil }))
	o := b.outcome("t1")
	require.Equal(t, event.Failed, o.Status)
	require.Equal(t, 5, o.Attempts)
	b.once()
}

func TestAWriteWhoseAnswerGotLost(t *testing.T) {
	b := newBench(t, 1)
	hold := make(chan struct{})
	b.servers[interactive].on("INSERT", behaviour{lose: true, hold: hold})
	b.start()
	b.decide(b.route("t1", "INSERT", func(d *event.RouteDecision) { d.ReadOnly = false }))
	b.change("t1/1", "submit_unknown")
	time.Sleep(200 * time.Millisecond)
	require.True(t, b.servers[interactive].active("t1/1"), "a write is not stopped halfway")
	require.Empty(t, b.outcomes())
	close(hold)
	o := b.outcome("t1")
	require.Equal(t, event.Failed, o.Status)
	require.Equal(t, string(failure.SubmitUnknown), o.Failure.Class)
	require.Contains(t, o.Failure.Hint, "Look for the attempt id")
	require.False(t, b.servers[interactive].wasKilled("t1/1"))
	require.Equal(t, 1, o.Attempts)
	b.once()
}

func TestAReadWhoseAnswerGotLostIsStoppedAndRunAgain(t *testing.T) {
	b := newBench(t, 1)
	first := true
	b.servers[interactive].on("SELECT", behaviour{lose: true, hold: make(chan struct{}), then: func(string) {
		if first {
			first = false
			b.servers[interactive].on("SELECT", behaviour{rows: 1})
		}
	}})
	b.start()
	b.decide(b.route("t1", "SELECT"))
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.Equal(t, 2, o.Attempts)
	require.True(t, b.servers[interactive].wasKilled("t1/1"))
	require.Equal(t, event.RemedyRetry, b.change("t1/1", "lost").Remedy)
	b.once()
}
