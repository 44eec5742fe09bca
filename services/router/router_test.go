package router_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
	"github.com/pointsman/pointsman/services/router"
)

// bench is a router on a broker of its own, without history: nothing listens where history should be.
type bench struct {
	t      *testing.T
	broker *streamtest.Broker
	app    *router.App
	client *kgo.Client
	policy string // file
	tel    *telemetry.Telemetry
}

func newBench(t *testing.T, partitions int32) *bench {
	b := &bench{t: t, broker: streamtest.Start(t)}
	for _, topic := range []string{event.TopicRequests, event.TopicDecisions, event.TopicInputs, event.TopicAttempts, event.TopicOutcomes, event.TopicBudgetState, event.TopicDeadLetter} {
		b.broker.Topic(t, topic, partitions, nil)
	}
	b.broker.Topic(t, event.TopicSignals, 1, map[string]string{"cleanup.policy": "compact"})
	b.broker.Topic(t, event.TopicPolicies, 1, map[string]string{"cleanup.policy": "compact"})
	b.client = b.broker.Client(t, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	return b
}

func (b *bench) start() *router.App {
	b.t.Helper()
	cfg := testConfig()
	cfg.Kafka = b.broker.Config
	cfg.Policy.File = b.policy
	tel, _ := telemetrytest.New(b.t, "router")
	app, err := router.New(b.t.Context(), cfg, tel)
	require.NoError(b.t, err)
	require.NoError(b.t, app.Start(b.t.Context()))
	b.t.Cleanup(func() { _ = app.Stop(context.Background()) })
	b.app, b.tel = app, tel
	return app
}

func (b *bench) publish(topic, key string, typ event.Type, body string) {
	b.t.Helper()
	rec := &kgo.Record{Topic: b.broker.Config.Topic(topic), Key: []byte(key), Value: []byte(body)}
	if typ != "" {
		rec.Headers = []kgo.RecordHeader{{Key: "ce_type", Value: []byte(typ)}}
	}
	require.NoError(b.t, b.client.ProduceSync(b.t.Context(), rec).FirstErr())
}

// decisions waits for n decisions and returns them by id, in log order.
func (b *bench) decisions(n int) []event.RouteDecision {
	b.t.Helper()
	var out []event.RouteDecision
	require.Eventually(b.t, func() bool {
		out = nil
		for _, rec := range b.broker.Records(b.t, event.TopicDecisions) {
			env, err := stream.Decode(rec, stream.RulesFor(event.TopicDecisions))
			require.NoError(b.t, err)
			var d event.RouteDecision
			require.NoError(b.t, json.Unmarshal(env.Data, &d))
			require.Equal(b.t, d.Type(), env.Type)
			require.Equal(b.t, d.TaskID, string(rec.Key))
			out = append(out, d)
		}
		return len(out) >= n
	}, 15*time.Second, 50*time.Millisecond, "want %d decisions, have %d", n, len(out))
	return out
}

func byID(list []event.RouteDecision) map[string]event.RouteDecision {
	out := map[string]event.RouteDecision{}
	for _, d := range list {
		if _, ok := out[d.DecisionID]; !ok {
			out[d.DecisionID] = d
		}
	}
	return out
}

func TestRoutesWhatComes(t *testing.T) {
	b := newBench(t, 3)
	b.start()
	b.publish(event.TopicRequests, "a", "", `{"id":"a","sql":"SELECT count(*) FROM tpch.nation","tenant":"t","slaSeconds":5,"note":"kept"}`)
	b.publish(event.TopicRequests, "b", "", `{"id":"b","sql":"INSERT INTO t SELECT 1","tenant":"t"}`)
	b.publish(event.TopicRequests, "bad", "", `{"id":"bad","sql":7,"tenant":"t"}`)
	b.publish(event.TopicRequests, "junk", "", `not json`)
	b.publish(event.TopicRequests, "a", event.CancelRequested, `{"taskId":"a","reason":"changed my mind"}`)
	b.publish(event.TopicAttempts, "c", event.AttemptType("running"), `{"attemptId":"c/1","taskId":"c","number":1,"seq":3,"state":"running","at":"2026-11-30T09:15:00Z"}`)

	got := byID(b.decisions(4))
	a := got["a/1"]
	require.Equal(t, event.Route, a.Kind)
	require.Equal(t, "interactive", a.Cluster)
	require.Contains(t, a.Unknown, "history (could not be asked)")
	require.Equal(t, []string{"tpch.nation"}, a.Tables)
	require.True(t, strings.HasPrefix(a.Fingerprint, "pm1-"), a.Fingerprint)
	require.JSONEq(t, `"kept"`, string(a.Task.Extra["note"]), "fields we do not know travel on")
	require.Equal(t, "batch", got["b/1"].Cluster, "the policy sends writes to batch")
	require.Empty(t, got["b/1"].Fallbacks)
	require.Equal(t, event.Reject, got["bad/1"].Kind)
	require.Contains(t, got["bad/1"].Rejection.Message, "sql")
	require.Equal(t, event.PassCancel, got["a/cancel"].Kind)
	require.Equal(t, "changed my mind", got["a/cancel"].Cancel.Reason)

	inputs := map[string]route.Input{}
	require.Eventually(t, func() bool {
		for _, rec := range b.broker.Records(t, event.TopicInputs) {
			env, err := stream.Decode(rec, stream.RulesFor(event.TopicInputs))
			require.NoError(t, err)
			require.Equal(t, event.InputRecorded, env.Type)
			var in route.Input
			require.NoError(t, json.Unmarshal(env.Data, &in))
			inputs[env.ID] = in
		}
		return len(inputs) == 2
	}, 5*time.Second, 20*time.Millisecond)
	var text event.PolicyText
	require.Eventually(t, func() bool {
		recs := b.broker.Records(t, event.TopicPolicies)
		return len(recs) == 1 && json.Unmarshal(recs[0].Value, &text) == nil
	}, 5*time.Second, 20*time.Millisecond)
	p, err := policy.Load("recorded", []byte(text.Text))
	require.NoError(t, err)
	require.Equal(t, text.Hash, p.Hash)
	for id, in := range inputs { // the invalid Task and the cancel have none: no policy decided them
		require.Equal(t, p.Hash, in.PolicyHash)
		in.Policy = p
		want, err := event.Marshal(got[id])
		require.NoError(t, err)
		have, err := event.Marshal(route.Decide(in))
		require.NoError(t, err)
		require.Equal(t, string(want), string(have), "the recorded input decides the same")
	}

	letters := b.broker.Records(t, event.TopicDeadLetter)
	require.Len(t, letters, 2)
	for _, l := range letters {
		headers := map[string]string{}
		for _, h := range l.Headers {
			headers[h.Key] = string(h.Value)
		}
		require.Equal(t, "requests", headers[stream.DLQTopic])
		require.NotEmpty(t, headers[stream.DLQOffset])
		require.NotEmpty(t, headers[stream.DLQMessage])
	}
}

// Requests that fit their topic only compressed, whatever of them is large, are rejected and hold up nobody.
func TestRequestsTooLargeForADecision(t *testing.T) {
	b := newBench(t, 1)
	b.start()
	cl := b.broker.Client(t, kgo.ProducerBatchMaxBytes(16<<20), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	filler := strings.Repeat("x", 4<<20+1000)
	for i, field := range []string{`"note":"` + filler + `"`, `"tags":["` + filler + `"]`, `"queryType":"` + filler + `"`} {
		body := fmt.Sprintf(`{"id":"q%d","sql":"SELECT 1","tenant":"t",%s}`, i, field)
		require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: b.broker.Config.Topic(event.TopicRequests), Value: []byte(body)}).FirstErr())
		require.Equal(t, event.Reject, b.decisions(i + 1)[i].Kind, i)
	}
	b.publish(event.TopicRequests, "a", "", `{"id":"a","sql":"SELECT 1","tenant":"t"}`)
	require.Equal(t, event.Route, b.decisions(4)[3].Kind)
}

func TestReroutesAFailedAttemptElsewhere(t *testing.T) {
	b := newBench(t, 1)
	b.start()
	b.publish(event.TopicRequests, "a", "", `{"id":"a","sql":"SELECT 1","tenant":"t"}`)
	first := b.decisions(1)[0]
	failed := func(n int, excluded ...event.Target) string {
		data, err := event.Marshal(event.Attempt{
			AttemptID: query.AttemptID("a", n), TaskID: "a", Number: n, Seq: 4, State: "failed", At: time.Now().UTC(), Target: first.Target,
			Failure: &event.Failure{Class: "cluster_down", Message: "connection refused"}, Remedy: event.RemedyReroute,
			Decision: &first, Excluded: excluded,
		})
		require.NoError(t, err)
		return string(data)
	}
	b.publish(event.TopicAttempts, "a", event.AttemptType("failed"), failed(1, first.Target))
	second := byID(b.decisions(2))["a/2"]
	require.Equal(t, event.Route, second.Kind)
	require.NotEqual(t, first.Cluster, second.Cluster)
	require.Equal(t, first.TaskDigest, second.TaskDigest)
	require.Equal(t, first.Deadline, second.Deadline)

	b.publish(event.TopicAttempts, "a", event.AttemptType("failed"), failed(5, first.Target))
	sixth := byID(b.decisions(3))["a/6"]
	require.Equal(t, event.Reject, sixth.Kind)
	require.Equal(t, "too_many_attempts", sixth.Rejection.Code)
	require.Contains(t, sixth.Rejection.Message, "connection refused")
}

func TestAgentBudgetHoldsAcrossARestart(t *testing.T) {
	b := newBench(t, 2)
	app := b.start()
	ask := func(from, to int) {
		for i := from; i < to; i++ {
			b.publish(event.TopicRequests, "s1", "", fmt.Sprintf(
				`{"id":"q%d","sql":"SELECT %d","tenant":"support","session":{"id":"s1","class":"agent"}}`, i, i))
		}
	}
	ask(0, 15)
	b.decisions(15)
	require.NoError(t, app.Stop(context.Background()))
	b.start()
	ask(15, 40)
	routed, rejected := 0, 0
	for _, d := range byID(b.decisions(40)) {
		switch d.Kind {
		case event.Route:
			routed++
		case event.Reject:
			rejected++
			require.Equal(t, "session_query_budget", d.Rejection.Code)
			require.NotEmpty(t, d.Rejection.Suggestion)
		}
	}
	require.Equal(t, 24, routed, "the shipped policy's budget, whatever restarts in between")
	require.Equal(t, 16, rejected)
}

func TestSignalsSteer(t *testing.T) {
	b := newBench(t, 1)
	now := time.Now().UTC()
	value := func(v float64) signal.Value { return signal.Of(v, signal.Count, "test", now) }
	for cluster, wait := range map[string]float64{"interactive": 60_000, "batch": 0} {
		data, err := json.Marshal(signal.Observation{Cluster: cluster, Source: "test", At: now, Values: map[signal.Name]signal.Value{
			signal.Ready: value(1), signal.Healthy: value(1), signal.Slots: value(4), signal.Queued: value(wait / 1000),
			signal.Running: value(4), signal.EstWaitMs: value(wait),
		}})
		require.NoError(t, err)
		b.publish(event.TopicSignals, cluster+"/test", event.ClusterObserved, string(data))
	}
	b.start()
	b.publish(event.TopicRequests, "a", "", `{"id":"a","sql":"SELECT 1","tenant":"t","slaSeconds":3}`)
	d := b.decisions(1)[0]
	require.Equal(t, "batch", d.Cluster)
	var codes []string
	for _, r := range d.Reasons {
		codes = append(codes, r.Code)
	}
	require.Contains(t, codes, "queue_wait_over_sla")
}

func TestExplainOverHTTP(t *testing.T) {
	b := newBench(t, 1)
	app := b.start()
	post := func(accept, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+app.HTTPAddr().String()+"/v1/explain", strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(data)
	}
	status, body := post("application/json", `{"sql":"SELECT 1","tenant":"t"}`)
	require.Equal(t, http.StatusOK, status)
	var e route.Explanation
	require.NoError(t, json.Unmarshal([]byte(body), &e))
	require.Equal(t, event.Route, e.Decision.Kind)
	require.NotEmpty(t, e.Verdict.Why)
	require.NotEmpty(t, e.Rules)
	require.Contains(t, e.Text, "goes to interactive")

	status, body = post("text/plain", `{"sql":"SELECT 1","tenant":"t"}`)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "goes to interactive")
	require.Contains(t, body, "transformations did not match")

	for in, want := range map[string]int{`{"sql":1}`: http.StatusBadRequest, `nope`: http.StatusBadRequest, `{"tenant":"t"}`: http.StatusUnprocessableEntity} {
		status, body = post("application/json", in)
		require.Equal(t, want, status, body)
		require.Contains(t, body, `"detail"`)
	}
	require.Empty(t, b.broker.Records(t, event.TopicDecisions), "explain decides and does nothing")
}
