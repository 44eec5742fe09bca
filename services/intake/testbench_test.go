package intake_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
	"github.com/pointsman/pointsman/services/intake"
	"github.com/pointsman/pointsman/services/intake/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is an intake on a real listener before an in-process broker.
type bench struct {
	t      *testing.T
	broker *streamtest.Broker
	app    *intake.App
	cfg    intake.Config
	client *http.Client
	writer *stream.Producer
	spans  *tracetest.SpanRecorder
}

func withTopics(t *testing.T) *streamtest.Broker {
	t.Helper()
	b := streamtest.Start(t)
	for _, topic := range []string{event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes} {
		b.Topic(t, topic, 3, nil)
	}
	return b
}

// start runs an intake; edit changes its configuration, which lets everybody in.
func start(t *testing.T, broker *streamtest.Broker, edit func(*intake.Config)) *bench {
	t.Helper()
	cfg := intake.Default()
	cfg.Telemetry.Admin.Address = ""
	cfg.Kafka = broker.Config
	cfg.HTTP.Address = "127.0.0.1:0"
	cfg.HTTP.MaxWait = 20 * time.Second
	cfg.Auth = access.Config{Mode: access.None}
	cfg.RateLimit = access.LimitConfig{}
	if edit != nil {
		edit(&cfg)
	}
	tel, spans := telemetrytest.New(t, "intake")
	app, err := intake.New(t.Context(), cfg, tel)
	require.NoError(t, err)
	require.NoError(t, app.Start(t.Context()))
	transport := &http.Transport{}
	writer, err := stream.NewProducer(broker.Config, broker.Deps, "test")
	require.NoError(t, err)
	t.Cleanup(func() {
		writer.Close()
		transport.CloseIdleConnections()
		require.NoError(t, app.Stop(context.Background()))
	})
	b := &bench{t: t, broker: broker, app: app, cfg: cfg, client: &http.Client{Transport: transport}, writer: writer, spans: spans}
	b.eventually(func() bool { return app.Ready() }, "the topics are read")
	return b
}

func (b *bench) eventually(ok func() bool, what string) {
	b.t.Helper()
	require.Eventually(b.t, ok, 10*time.Second, 5*time.Millisecond, what)
}

func (b *bench) url(path string) string { return "http://" + b.app.Addr().String() + path }

// answer is a response that has been read.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

func (a answer) into(v any) {
	a.t.Helper()
	require.NoError(a.t, json.Unmarshal(a.body, v), string(a.body))
}

func (a answer) problem() map[string]any {
	a.t.Helper()
	require.Equal(a.t, "application/problem+json", a.header.Get("Content-Type"), string(a.body))
	var doc map[string]any
	a.into(&doc)
	require.EqualValues(a.t, a.status, doc["status"])
	require.NotEmpty(a.t, doc["title"])
	return doc
}

func (b *bench) request(method, path, body string, headers ...string) *http.Request {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url(path), bytes.NewBufferString(body))
	require.NoError(b.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

func (b *bench) do(method, path, body string, headers ...string) answer {
	b.t.Helper()
	a, err := b.try(b.request(method, path, body, headers...))
	require.NoError(b.t, err)
	return a
}

func (b *bench) try(req *http.Request) (answer, error) {
	resp, err := b.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return answer{t: b.t, status: resp.StatusCode, header: resp.Header, body: data}, err
}

// post sends a request in the background. An error of the connection comes as an answer without a status: the test's own
// goroutine is the one that may fail it.
func (b *bench) post(path, body string, headers ...string) <-chan answer {
	b.t.Helper()
	req, done := b.request("POST", path, body, headers...), make(chan answer, 1)
	go func() {
		a, err := b.try(req)
		if err != nil {
			a = answer{t: b.t, body: []byte(err.Error())}
		}
		done <- a
	}()
	return done
}

// submit sends a request that must be taken in, and returns its task id.
func (b *bench) submit(body string, headers ...string) string {
	b.t.Helper()
	a := b.do("POST", "/v1/queries", body, headers...)
	require.Equal(b.t, 202, a.status, string(a.body))
	var accepted intake.Accepted
	a.into(&accepted)
	return accepted.TaskID
}

// send writes an event as another service would.
func (b *bench) send(topic, key string, kind event.Type, id string, v any) {
	b.t.Helper()
	data, err := event.Marshal(v)
	require.NoError(b.t, err)
	require.NoError(b.t, b.writer.Send(b.t.Context(), stream.Message{Topic: topic, Key: key, Type: kind, ID: id, Data: data}))
}

func (b *bench) decide(id string, n int) {
	b.t.Helper()
	d := event.RouteDecision{
		DecisionID: query.AttemptID(id, n), TaskID: id, Attempt: n, Kind: event.Route, DecidedAt: time.Now().UTC(), Deadline: time.Now().UTC(),
		Target: event.Target{Engine: "clickhouse", Cluster: "interactive"}, Reasons: []event.Reason{{Code: "fits", Text: "small pruned scan"}},
	}
	b.send(event.TopicDecisions, id, d.Type(), d.DecisionID, d)
}

func (b *bench) attempt(id string, n, seq int, state string) {
	b.t.Helper()
	a := event.Attempt{
		AttemptID: query.AttemptID(id, n), TaskID: id, Number: n, Seq: seq, State: state, At: time.Now().UTC(),
		Target: event.Target{Engine: "clickhouse", Cluster: "interactive"},
	}
	b.send(event.TopicAttempts, id, a.Type(), a.AttemptID, a)
}

func (b *bench) end(o event.Outcome) {
	b.t.Helper()
	now := time.Now().UTC()
	o.SubmittedAt, o.FinishedAt = now, now
	if o.Status == "" {
		o.Status = event.Succeeded
	}
	b.send(event.TopicOutcomes, o.TaskID, event.TaskEnded, o.TaskID, o)
}

// requests are the records on the requests topic.
func (b *bench) requests() []*kgo.Record {
	b.t.Helper()
	return b.broker.Records(b.t, event.TopicRequests)
}

func header(rec *kgo.Record, name string) string {
	for _, h := range rec.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// sqlOf is a JSON body with SQL of n bytes that don't compress.
func sqlOf(n int) string {
	return `{"tenant":"tenant_a","sql":"` + strings.Repeat("x", n) + `"}`
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}
