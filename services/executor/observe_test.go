package executor_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
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
			if span.Name() == "attempt" && span.SpanContext().TraceID().String() == trace {
				return true
			}
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
	b.decide(b.route("t1", "BIG"), b.route("t2", "SELECT"))
	b.outcome("t1")
	b.outcome("t2")
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
