package event_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
)

// The types below have no methods of ours at their top, so that encoding/json does them by itself.
type (
	bareDecision event.RouteDecision
	bareAttempt  event.Attempt
	bareOutcome  event.Outcome
)

func byEncodingJSON(t require.TestingT, v any) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(v))
	return strings.TrimSuffix(buf.String(), "\n")
}

func genValue(t *rapid.T) signal.Value {
	at := time.Time{}
	if rapid.Bool().Draw(t, "timed") {
		at = time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
	}
	unit := rapid.SampledFrom([]signal.Unit{"", signal.Count, signal.PerSecond, "<u>"}).Draw(t, "unit")
	source := rapid.SampledFrom([]string{"", "route", "a<b", "ä\u2028"}).Draw(t, "source")
	n := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.NaN(), 1e-9, 1e300})).Draw(t, "n")
	switch rapid.IntRange(0, 2).Draw(t, "state") {
	case 0:
		return signal.Value{Unit: unit, Source: source, At: at.UTC()}
	case 1:
		return signal.Of(n, unit, source, at)
	default:
		return signal.Of(n, unit, source, at).Aged(at.Add(time.Hour), time.Minute)
	}
}

func genDecision(t *rapid.T) event.RouteDecision {
	value := rapid.Custom(genValue)
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a<b", "\xff"}))
	d := event.RouteDecision{
		DecisionID: text.Draw(t, "id"), Attempt: rapid.Int().Draw(t, "attempt"), Kind: event.Route, DecidedAt: time.Unix(1, 5).UTC(),
		Target: event.Target{Engine: "e", Cluster: text.Draw(t, "cluster")}, ReadOnly: rapid.Bool().Draw(t, "ro"),
		Reasons:   []event.Reason{{Code: "c", Args: map[string]string{"b": text.Draw(t, "arg"), "a": "x"}}},
		Estimates: map[string]signal.Value{"scanBytes": value.Draw(t, "scan"), "<": value.Draw(t, "other")},
		Signals:   signal.Snapshot{"b": {signal.Ready: value.Draw(t, "ready"), signal.Healthy: value.Draw(t, "healthy")}, "a": nil},
		Candidates: []event.Candidate{
			{Target: event.Target{Engine: "e"}, Rank: 1, Propensity: 0.1, Estimate: &event.CandidateEstimate{QueueMs: value.Draw(t, "queue"), Evidence: event.Evidence{Level: "prior"}}, Factors: []event.Factor{{Name: "f", Value: value.Draw(t, "factor"), Band: 2}}},
			{Filtered: &event.Filtered{Reason: event.Reason{Code: "x"}, WaitHelps: true}, LostBy: &event.Reason{}},
		},
	}
	if rapid.Bool().Draw(t, "task") {
		d.Task = &query.Task{SQL: text.Draw(t, "sql"), Extra: query.Extra{"z": json.RawMessage(`[1]`)}}
	}
	if rapid.Bool().Draw(t, "rejected") {
		d.Rejection = &event.Rejection{Code: "r", Left: map[string]signal.Value{"n": value.Draw(t, "left")}, RetryAfterSeconds: new(int64(5))}
	}
	return d
}

func TestEventsAreWhatEncodingJSONWritesAndReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := genDecision(t)
		got, err := event.Marshal(d)
		require.NoError(t, err)
		require.Equal(t, byEncodingJSON(t, bareDecision(d)), string(got))
		var want bareDecision
		require.NoError(t, json.Unmarshal(got, &want))
		var back event.RouteDecision
		require.NoError(t, back.UnmarshalJSON(got))
		same := cmp.AllowUnexported(signal.Value{})
		require.Empty(t, cmp.Diff(event.RouteDecision(want), back, same))

		a := event.Attempt{AttemptID: "a", Decision: &d, Excluded: []event.Target{{}}, Stats: &event.Stats{QueueMs: new(int64(0))}, At: time.Unix(0, 0).UTC()}
		got, err = event.Marshal(&a)
		require.NoError(t, err)
		require.Equal(t, byEncodingJSON(t, bareAttempt(a)), string(got))
		var wantAttempt bareAttempt
		require.NoError(t, json.Unmarshal(got, &wantAttempt))
		var backAttempt event.Attempt
		require.NoError(t, backAttempt.UnmarshalJSON(got))
		require.Empty(t, cmp.Diff(event.Attempt(wantAttempt), backAttempt, same))

		o := event.Outcome{TaskID: "t", Estimates: d.Estimates, Rejection: d.Rejection, Result: &event.Result{Inline: json.RawMessage(`[["<", 1]]`)}}
		got, err = event.Marshal(o)
		require.NoError(t, err)
		require.Equal(t, byEncodingJSON(t, bareOutcome(o)), string(got))
		var wantOutcome bareOutcome
		require.NoError(t, json.Unmarshal(got, &wantOutcome))
		var backOutcome event.Outcome
		require.NoError(t, backOutcome.UnmarshalJSON(got))
		require.Empty(t, cmp.Diff(event.Outcome(wantOutcome), backOutcome, same))
	})
}

// BenchmarkDecision reads and writes a decision as a router on two pools makes it, 7 kB.
func BenchmarkDecision(b *testing.B) {
	data, err := os.ReadFile("testdata/decision.json")
	require.NoError(b, err)
	var d event.RouteDecision
	require.NoError(b, d.UnmarshalJSON(data))
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("read", func() error { var d event.RouteDecision; return d.UnmarshalJSON(data) })
	run("read by encoding-json", func() error { var d bareDecision; return json.Unmarshal(data, &d) })
	run("write", func() error { _, err := event.Marshal(&d); return err })
	run("write by encoding-json", func() error { _, err := json.Marshal((*bareDecision)(&d)); return err })
}
