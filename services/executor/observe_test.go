package executor_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/executor"
)

// TestTheTraceGoesOn follows a trace from the decision's headers to the Outcome's.
func TestTheTraceGoesOn(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	b.start()
	d := b.route("t1", "SELECT")
	data, err := event.Marshal(d)
	require.NoError(t, err)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	b.raw("t1", data, kgo.RecordHeader{Key: "ce_type", Value: []byte(d.Type())},
		kgo.RecordHeader{Key: "traceparent", Value: []byte("00-" + trace + "-00f067aa0ba902b7-01")})
	b.outcome("t1")
	for _, topic := range []string{event.TopicOutcomes, event.TopicAttempts} {
		for _, rec := range b.broker.Records(t, topic) {
			require.Contains(t, header(rec, "traceparent"), trace, topic)
		}
	}
	b.committed()
	require.Eventually(t, func() bool {
		for _, span := range b.spans.Ended() {
			if span.Name() != "attempt" || span.SpanContext().TraceID().String() != trace {
				continue
			}
			var states []string
			for _, e := range span.Events() {
				states = append(states, e.Name)
			}
			require.Equal(t, []string{"claimed", "submitting", "running", "delivering", "succeeded"}, states, "the attempt's way is in its span")
			require.Contains(t, span.Attributes(), attribute.String("pointsman.attempt", "t1/1"))
			require.Contains(t, span.Attributes(), attribute.String("pointsman.state", "succeeded"))
			return true
		}
		return false
	}, patience, 10e6)

	// A malformed one is ignored.
	d = b.route("t2", "SELECT")
	data, err = event.Marshal(d)
	require.NoError(t, err)
	b.raw("t2", data, kgo.RecordHeader{Key: "ce_type", Value: []byte(d.Type())}, kgo.RecordHeader{Key: "traceparent", Value: []byte("\xff nonsense")})
	require.Equal(t, event.Succeeded, b.outcome("t2").Status)
}

func TestMetricsAndHealth(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("BIG", behaviour{code: "241"})
	b.servers[batch].on("BIG", behaviour{rows: 1})
	p := b.start()
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	b.decide(b.route("t1", "BIG"), b.route("t2", "SELECT"), b.route("t3", "SELECT", func(d *event.RouteDecision) { d.Cluster = "nobody knows it" }), cancelOf("t3"))
	for _, id := range []string{"t1", "t2", "t3"} {
		b.outcome(id)
	}
	b.committed()
	require.True(t, p.tel.Health.Ready(t.Context()).OK, "%+v", p.tel.Health.Ready(t.Context()))

	families, err := p.tel.Registry.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"pointsman_executor_attempts_total interactive failed":       1,
		"pointsman_executor_attempts_total batch succeeded":          1,
		"pointsman_executor_failures_total memory_limit interactive": 1,
		"pointsman_executor_remedies_total failover":                 1,
		"pointsman_executor_outcomes_total succeeded":                2,
		"pointsman_executor_attempt_seconds batch deliver":           1,
		"pointsman_executor_attempt_seconds interactive exec":        1,
		"pointsman_executor_submissions_total interactive":           2,
		"pointsman_executor_claim_seconds":                           3,
		"pointsman_executor_start_seconds":                           1,
		"pointsman_executor_slots interactive":                       4,
		"pointsman_executor_slots_used interactive":                  0,
		"pointsman_executor_line_length batch":                       0,
		"pointsman_executor_partitions":                              1,
		"pointsman_executor_open_tasks":                              0,
	} {
		value, ok := got[name]
		require.True(t, ok, name)
		require.InDelta(t, want, value, 0, name)
	}
}

// TestTheEnginesMessageIsNoInfo: it may quote the statement, literals and all.
func TestTheEnginesMessageIsNoInfo(t *testing.T) {
	b := newBench(t, 1)
	var lines bytes.Buffer // read once nobody writes any more
	b.log = telemetry.NewLogger(&lines, telemetry.LogConfig{Level: slog.LevelInfo, Format: telemetry.LogJSON})
	b.servers[interactive].on("WRONG", behaviour{code: "60"})
	p := b.start()
	b.decide(b.route("t1", "WRONG"))
	require.Equal(t, "as the script says", b.outcome("t1").Failure.Message)
	b.committed()
	p.end()
	require.Contains(t, lines.String(), "an attempt failed")
	require.Contains(t, lines.String(), `"name":"UNKNOWN_TABLE"`)
	require.NotContains(t, lines.String(), "as the script says")
}

// TestChangesAreNumberedOnce: an attempt that is begun again from the ledger, under the same epoch, does not use its numbers again.
func TestChangesAreNumberedOnce(t *testing.T) {
	b := newBench(t, 1)
	var small atomic.Bool
	b.maxBytes = func(topic string) int {
		if topic == event.TopicAttemptState && small.Load() {
			return 1
		}
		return 1 << 20
	}
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	p := b.start()
	arrived, goOn := p.steps.stopAt(executor.StepClaiming, "t1/1")
	b.decide(b.route("t1", "SELECT"))
	reached(t, arrived)
	small.Store(true) // its claim is refused, which this process can't make sense of
	goOn()
	changes := func() (all []event.Attempt) {
		for _, rec := range b.broker.Records(t, event.TopicAttempts) {
			var a event.Attempt
			require.NoError(t, json.Unmarshal(rec.Value, &a))
			all = append(all, a)
		}
		return all
	}
	require.Eventually(t, func() bool { return len(changes()) > 1 }, patience, 20*time.Millisecond)
	small.Store(false)
	require.Equal(t, event.Succeeded, b.outcome("t1").Status)
	b.committed()
	seen := map[int]bool{}
	for _, a := range changes() {
		require.False(t, seen[a.Seq], "number %d of %s stands for two changes", a.Seq, a.AttemptID)
		seen[a.Seq] = true
	}
	require.Equal(t, "succeeded", b.states("t1/1")[len(seen)-1])
}
