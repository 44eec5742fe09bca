package executor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/config"
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

func cancelOf(id string) event.RouteDecision {
	now := time.Now().UTC()
	return event.RouteDecision{
		DecisionID: id + "/cancel", TaskID: id, Kind: event.PassCancel, DecidedAt: now, Deadline: now.Add(time.Hour),
		Cancel: &event.Cancel{TaskID: id, Tenant: "tenant_a", User: "u", Reason: "changed my mind"},
	}
}

func TestCancelWhileRunning(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("LONG", behaviour{hold: make(chan struct{})})
	b.start()
	b.decide(b.route("t1", "LONG"))
	b.change("t1/1", "running")
	b.decide(cancelOf("t1"))
	o := b.outcome("t1")
	require.Equal(t, event.Cancelled, o.Status)
	require.Contains(t, o.Failure.Message, "changed my mind")
	require.True(t, b.servers[interactive].wasKilled("t1/1"))
	require.Equal(t, "cancelled", b.change("t1/1", "cancelled").State)
	b.committed()
	b.once()
}

func TestCancelOfAnotherTenantIsIgnored(t *testing.T) {
	b := newBench(t, 1)
	hold := make(chan struct{})
	b.servers[interactive].on("LONG", behaviour{hold: hold, rows: 1})
	b.start()
	b.decide(b.route("t1", "LONG"))
	b.change("t1/1", "running")
	c := cancelOf("t1")
	c.Cancel.Tenant = "tenant_b"
	b.decide(c)
	time.Sleep(100 * time.Millisecond)
	close(hold)
	require.Equal(t, event.Succeeded, b.outcome("t1").Status)
	b.committed()
}

func TestCancelBeforeTheTask(t *testing.T) {
	b := newBench(t, 1)
	b.start()
	b.decide(cancelOf("t1"))
	require.Equal(t, event.Cancelled, b.outcome("t1").Status)
	b.decide(b.route("t1", "SELECT"))
	b.committed()
	require.Empty(t, b.servers[interactive].counts(), "the Task has ended before it came")
	b.once()
}

func TestCancelInTheLineKeepsNoSlot(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Engines[0].Slots = 1 }
	hold := make(chan struct{})
	b.servers[interactive].on("LONG", behaviour{hold: hold})
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	b.start()
	b.decide(b.route("first", "LONG"))
	b.change("first/1", "running")
	b.decide(b.route("gone", "SELECT"))
	require.Eventually(t, func() bool {
		c := b.changes("gone/1")
		return len(c) == 2 && string(c[1].Extra["queuePosition"]) == "1"
	}, patience, 10*time.Millisecond, "its place is told")
	b.decide(b.route("next", "SELECT"))
	b.decide(cancelOf("gone"))
	require.Equal(t, event.Cancelled, b.outcome("gone").Status)
	close(hold)
	require.Equal(t, event.Succeeded, b.outcome("next").Status)
	require.Zero(t, b.servers[interactive].count("gone/1"))
	b.committed()
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

func TestRepeatsAndConflicts(t *testing.T) {
	b := newBench(t, 1)
	hold := make(chan struct{})
	b.servers[interactive].on("LONG", behaviour{hold: hold, rows: 1})
	b.start()
	d := b.route("t1", "LONG")
	again := d
	again.Cluster = batch // decided anew after a crash of the router: the first in the log wins
	b.decide(d, again)
	b.change("t1/1", "running")
	b.decide(b.route("t1", "OTHER"))
	close(hold)
	require.Equal(t, interactive, b.outcome("t1").Cluster)
	b.decide(d, b.route("t1", "ANOTHER"))
	b.committed()
	b.once()
	dead := b.broker.Records(t, event.TopicDeadLetter)
	require.Len(t, dead, 2)
	for _, rec := range dead {
		require.Contains(t, header(rec, stream.DLQMessage), "duplicate id with another body")
		require.Equal(t, "decisions", header(rec, stream.DLQTopic))
	}
}

func header(rec *kgo.Record, key string) string {
	for _, h := range rec.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

func TestWhatCantBeReadGoesToTheDeadLetters(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	b.start()
	typed := kgo.RecordHeader{Key: "ce_type", Value: []byte(event.DecisionRouted)}
	b.raw("a", []byte("no JSON"), typed)
	b.raw("b", nil, typed)
	b.raw("c", []byte(`{"taskId":"c"}`))
	b.raw("d", []byte(`{"taskId":1}`), typed)
	b.raw("e", []byte(`{"taskId":"../x","attempt":1,"kind":"route"}`), typed)
	b.raw("f", []byte(`{"taskId":"f","attempt":1,"kind":"defer"}`), typed)
	b.raw("g", []byte(`{"taskId":"g","attempt":0,"kind":"route"}`), typed)
	b.raw("h", []byte(`{"taskId":"h","attempt":1,"kind":"route"}`), typed)
	b.raw("i", []byte(`{"taskId":"i","attempt":"first","kind":"route"}`), typed)
	b.decide(b.route("t1", "SELECT"))
	require.Equal(t, event.Succeeded, b.outcome("t1").Status, "what can't be read holds nothing up")
	b.committed()
	classes := map[string]string{}
	for _, rec := range b.broker.Records(t, event.TopicDeadLetter) {
		classes[string(rec.Key)] = header(rec, stream.DLQClass)
	}
	require.Equal(t, map[string]string{
		"a": "not_json", "b": "null_value", "c": "missing_type", "d": "bad_payload", "e": "bad_payload", "f": "unknown_type", "g": "bad_payload", "h": "bad_payload", "i": "bad_payload",
	}, classes)
	for id, why := range map[string]string{"f": `kind "defer"`, "g": "attempt", "h": "SQL", "i": "attempt"} {
		o := b.outcome(id)
		require.Equal(t, event.Rejected, o.Status, "a Task that is named ends")
		require.Equal(t, "unusable_decision", o.Rejection.Code)
		require.Contains(t, o.Rejection.Message, why)
	}
	require.Len(t, b.outcomes(), 5, "what names no Task ends none")
}

// TestATaskWithoutSQLEnds is a Task that the router routes although it has only an intent.
func TestATaskWithoutSQLEnds(t *testing.T) {
	b := newBench(t, 1)
	b.start()
	b.decide(b.route("t1", "", func(d *event.RouteDecision) { d.Task.Intent = json.RawMessage(`{"measure":"revenue"}`) }))
	o := b.outcome("t1")
	require.Equal(t, event.Rejected, o.Status)
	require.Equal(t, "tenant_a", o.Tenant)
	require.Contains(t, o.Rejection.Message, "SQL")
	b.committed()
	require.Len(t, b.broker.Records(t, event.TopicDeadLetter), 1)
	require.Empty(t, b.servers[interactive].counts())
}

// TestAFurtherDecisionThatCantBeUsedEndsTheTask is one that a Task waits for.
func TestAFurtherDecisionThatCantBeUsedEndsTheTask(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].setDown(true)
	b.start()
	b.decide(b.route("t1", "SELECT"))
	b.change("t1/1", "failed")
	b.decide(b.route("t1", "SELECT", func(d *event.RouteDecision) { d.DecisionID, d.Attempt, d.Task = "t1/2", 2, nil }))
	o := b.outcome("t1")
	require.Equal(t, event.Failed, o.Status)
	require.Equal(t, "unusable_decision", o.Rejection.Code)
	b.committed()
}

// TestASubmissionInTheFuture comes from a producer whose clock is wrong: nothing takes less than no time, and the reader is told.
func TestASubmissionInTheFuture(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	b.start()
	ahead := func(by time.Duration) func(*event.RouteDecision) {
		return func(d *event.RouteDecision) {
			at := d.Task.SubmittedAt.Add(by)
			d.Task.SubmittedAt = &at
		}
	}
	b.decide(b.route("t1", "SELECT", ahead(30*time.Second)), b.route("t2", "SELECT", ahead(-30*time.Second)))
	o := b.outcome("t1")
	require.Zero(t, o.TotalMs)
	require.Equal(t, o.SubmittedAt, o.FinishedAt)
	require.Equal(t, o.SubmittedAt, *o.StartedAt)
	var by int64
	require.NoError(t, json.Unmarshal(o.Extra["submittedAheadMs"], &by))
	require.InDelta(t, 30_000, by, 10_000)
	o = b.outcome("t2")
	require.InDelta(t, 30_000, o.TotalMs, 10_000)
	require.Empty(t, o.Extra)
}

// TestOutcomesThatTakeLessThanTheLedger: the ledger's topic takes the end, the topic of outcomes does not take the Outcome.
func TestOutcomesThatTakeLessThanTheLedger(t *testing.T) {
	b := newBench(t, 1)
	admin := kadm.NewClient(b.broker.Client(t))
	limit := "100000"
	_, err := admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "max.message.bytes", Value: &limit}}, event.TopicOutcomes)
	require.NoError(t, err)
	b.config = func(c *executor.Config) { c.Kafka.Compression = "none" }
	b.servers[interactive].on("LARGE", behaviour{rows: 300, wide: 1000})
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	p := b.start()
	arrived, goOn := p.steps.stopAt(executor.StepPublished, "t1")
	b.decide(b.route("t1", "LARGE"), b.route("t2", "SELECT"))
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.EqualValues(t, 300, o.Result.Rows)
	require.Nil(t, o.Result.Inline)
	require.True(t, o.Result.Truncated)
	require.Equal(t, []string{"meets_sla"}, o.Reasons)
	reached(t, arrived)
	p.crash()
	b.start()
	b.committed()
	goOn()
	require.Len(t, b.outcomes()["t1"], 2, "the next owner publishes the same again, byte for byte")
	b.once()
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

func TestLargeResultGoesToAFile(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Results.Inline, c.Results.Max = 10*config.KiB, 300*config.KiB }
	b.servers[interactive].on("LARGE", behaviour{rows: 100, wide: 1000})
	b.servers[interactive].on("TOO LARGE", behaviour{rows: 1000, wide: 1000})
	b.start()
	b.decide(b.route("t1", "LARGE"), b.route("t2", "TOO LARGE"))
	o := b.outcome("t1")
	require.Equal(t, "ndjson", o.Result.Format)
	require.EqualValues(t, 100, o.Result.Rows)
	require.True(t, o.Result.ExpiresAt.After(time.Now().Add(23*time.Hour)))
	data, err := os.ReadFile(filepath.Join(b.results, o.Result.File))
	require.NoError(t, err)
	require.Equal(t, 100, strings.Count(string(data), "\n"))
	o = b.outcome("t2")
	require.True(t, o.Result.Truncated)
	require.Less(t, o.Result.Rows, int64(1000))
	require.Equal(t, event.Succeeded, o.Status)
}

func TestInlineResultThatFitsNoTopic(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Results.Inline = 64 * config.MiB }
	b.maxBytes = func(string) int { return 1 << 20 }
	b.servers[interactive].on("LARGE", behaviour{rows: 1400, wide: 1000})
	b.servers[interactive].on("FITS", behaviour{rows: 800, wide: 1000})
	b.start()
	b.decide(b.route("t1", "LARGE"), b.route("t2", "FITS"))
	require.Equal(t, "ndjson", b.outcome("t1").Result.Format, "the topics take a megabyte")
	o := b.outcome("t2")
	require.Equal(t, "json", o.Result.Format)
	var rows [][]any
	require.NoError(t, json.Unmarshal(o.Result.Inline, &rows))
	require.Len(t, rows, 800)
	b.committed()
}

// TestTopicsThatTakeLessThanIsBelieved has a broker whose limit is lower than the one in topics/.
func TestTopicsThatTakeLessThanIsBelieved(t *testing.T) {
	b := newBenchWith(t, 1, map[string]string{"max.message.bytes": "100000"})
	b.config = func(c *executor.Config) { c.Kafka.Compression = "none" }
	b.servers[interactive].on("LARGE", behaviour{rows: 300, wide: 1000})
	b.start()
	b.decide(b.route("t1", "LARGE"))
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.Equal(t, 1, o.Attempts)
	require.Equal(t, "ndjson", o.Result.Format)
	require.EqualValues(t, 300, o.Result.Rows)
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
