package intake_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
	"github.com/pointsman/pointsman/services/intake"
	"github.com/pointsman/pointsman/services/intake/access"
)

func message(topic, key string, kind event.Type, data string) stream.Message {
	return stream.Message{Topic: topic, Key: key, Type: kind, ID: key, Data: []byte(data)}
}

func TestBrokerDown(t *testing.T) {
	broker := withTopics(t)
	b := start(t, broker, func(c *intake.Config) { c.Requests.ProduceTimeout = 300 * time.Millisecond })
	id := b.submit(seed)
	broker.Close()
	began := time.Now()
	a := b.do("POST", "/v1/queries", seed)
	require.Equal(t, 503, a.status)
	require.Less(t, time.Since(began), 5*time.Second)
	require.NotEmpty(t, a.header.Get("Retry-After"))
	doc := a.problem()
	require.Equal(t, "broker_unavailable", doc["code"])
	require.NotEmpty(t, doc["taskId"], "it may have been taken in all the same: the caller can ask")
	require.NotContains(t, string(a.body), "127.0.0.1", "addresses of the inside stay inside")
	require.Equal(t, 503, b.do("DELETE", "/v1/tasks/"+id, "").status)
	require.Equal(t, 200, b.do("GET", "/v1/tasks/"+id, "").status, "what is known is still told")
}

// Before the topics have been read, an unknown id is not known to be unknown.
func TestCatchingUp(t *testing.T) {
	broker := withTopics(t)
	broker.DeleteTopic(broker.Config.Topic(event.TopicAttempts))
	tel, _ := telemetrytest.New(t, "intake")
	cfg := intake.Default()
	cfg.Telemetry.Admin.Address = ""
	cfg.Kafka, cfg.HTTP.Address, cfg.Auth.Mode = broker.Config, "127.0.0.1:0", access.None
	app, err := intake.New(t.Context(), cfg, tel)
	require.NoError(t, err)
	require.NoError(t, app.Start(t.Context()))
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); require.NoError(t, app.Stop(context.Background())) })
	b := &bench{t: t, broker: broker, app: app, client: &http.Client{Transport: transport}}

	a := b.do("GET", "/v1/tasks/x", "")
	require.Equal(t, 503, a.status)
	require.Equal(t, "catching_up", a.problem()["code"])
	require.Equal(t, 503, b.do("POST", "/v1/queries", `{"sql":"SELECT 1","tenant":"t"}`, "Idempotency-Key", "k").status)
	b.submit(`{"sql":"SELECT 1","tenant":"t"}`) // a new id needs no look back
	require.False(t, tel.Health.Ready(t.Context()).OK)

	broker.Topic(t, event.TopicAttempts, 3, nil)
	b.eventually(app.Ready, "the topics are there")
	require.True(t, tel.Health.Ready(t.Context()).OK, "%+v", tel.Health.Ready(t.Context()))
	require.Equal(t, 404, b.do("GET", "/v1/tasks/x", "").status)
}

// A log that ends in transaction markers can be read to its end all the same.
func TestCaughtUpBehindMarkers(t *testing.T) {
	broker := withTopics(t)
	tx := broker.Client(t, kgo.TransactionalID("outside"), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	for _, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		require.NoError(t, tx.BeginTransaction())
		rec := &kgo.Record{Topic: broker.Config.Topic(event.TopicRequests), Key: []byte("k"), Value: []byte(`{"id":"tx","sql":"SELECT 1","tenant":"t"}`)}
		if commit == kgo.TryAbort {
			rec.Value = []byte(`{"id":"aborted","sql":"SELECT 1","tenant":"t"}`)
		}
		require.NoError(t, tx.ProduceSync(t.Context(), rec).FirstErr())
		require.NoError(t, tx.EndTransaction(t.Context(), commit))
	}
	b := start(t, broker, nil)
	require.Equal(t, 200, b.do("GET", "/v1/tasks/tx", "").status)
	require.Equal(t, 404, b.do("GET", "/v1/tasks/aborted", "").status)
}

func TestExplain(t *testing.T) {
	var seen *http.Request
	var body string
	answer, status := `{"decisionId":"explain/1","kind":"route"}`, 200
	router := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		seen, body = r, string(data)
		if strings.Contains(r.Header.Get("Accept"), "text/plain") {
			_, _ = io.WriteString(w, "it goes to interactive")
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer router.Close()
	b := start(t, withTopics(t), func(c *intake.Config) { c.Explain.URL = router.URL + "/v1/explain" })

	a := b.do("POST", "/v1/explain", seed)
	require.Equal(t, 200, a.status, string(a.body))
	require.Equal(t, answer, string(a.body))
	require.Equal(t, "/v1/explain", seen.URL.Path)
	require.NotEmpty(t, seen.Header.Get("traceparent"), "the trace goes on to the router")
	require.Contains(t, body, `"tenant":"tenant_a"`)
	require.Contains(t, body, `"submittedAt"`)
	a = b.do("POST", "/v1/explain", seed, "Accept", "text/plain")
	require.Equal(t, "it goes to interactive", string(a.body))
	require.Equal(t, "text/plain; charset=utf-8", a.header.Get("Content-Type"))
	require.Equal(t, 406, b.do("POST", "/v1/explain", seed, "Accept", "image/png").status)
	require.Equal(t, 422, b.do("POST", "/v1/explain", `{"tenant":"t"}`).status)
	require.Empty(t, b.requests(), "nothing is run")

	for routerSays, want := range map[int]int{400: 422, 413: 413, 422: 422, 429: 503, 500: 502, 503: 503, 302: 502} {
		status, answer = routerSays, `{"detail":"because"}`
		require.Equal(t, want, b.do("POST", "/v1/explain", seed).status, "the router says %d", routerSays)
	}
	router.Close()
	a = b.do("POST", "/v1/explain", seed)
	require.Equal(t, 503, a.status)
	require.Equal(t, "explain_unavailable", a.problem()["code"])
}

func TestExplainTakesTooLong(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers
	require.NoError(t, err)
	defer silent.Close()
	b := start(t, withTopics(t), func(c *intake.Config) {
		c.Explain.URL, c.Explain.Timeout = "http://"+silent.Addr().String(), 50*time.Millisecond
	})
	a := b.do("POST", "/v1/explain", seed)
	require.Equal(t, 504, a.status)
	require.Equal(t, "explain_timeout", a.problem()["code"])

	off := start(t, withTopics(t), func(c *intake.Config) { c.Explain.URL = "" })
	require.Equal(t, 503, off.do("POST", "/v1/explain", seed).status)
}

func TestConfigIsChecked(t *testing.T) {
	ok := intake.Default()
	ok.Auth.Mode = access.None
	require.NoError(t, config.Validate(ok))
	require.Error(t, config.Validate(intake.Default()), "how callers are known must be said")
	for name, edit := range map[string]func(*intake.Config){
		"half a certificate": func(c *intake.Config) { c.HTTP.CertFile = "x" },
		"no body":            func(c *intake.Config) { c.HTTP.MaxBody = 0 },
		"no wait":            func(c *intake.Config) { c.HTTP.MaxWait = 0 },
		"no address":         func(c *intake.Config) { c.HTTP.Address = "x" },
		"no sql":             func(c *intake.Config) { c.Requests.MaxSQL = 0 },
		"no look-back":       func(c *intake.Config) { c.Tasks.LookBack = 0 },
		"explain":            func(c *intake.Config) { c.Explain.URL = "router:9402" },
		"explain timeout":    func(c *intake.Config) { c.Explain.Timeout = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			c := ok
			edit(&c)
			require.Error(t, config.Validate(c))
		})
	}
}

func TestMetrics(t *testing.T) {
	b := start(t, withTopics(t), func(c *intake.Config) { c.Telemetry.Admin.Address = "127.0.0.1:0" })
	b.submit(seed)
	_ = b.do("POST", "/v1/queries", "nope")
	families, err := b.app.Registry().Gather()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				require.NotContains(t, l.GetValue(), "SELECT")
				require.NotContains(t, l.GetValue(), "tenant_a")
			}
		}
	}
	for _, want := range []string{
		"pointsman_intake_request_seconds", "pointsman_intake_problems_total", "pointsman_intake_tasks_taken_total",
		"pointsman_intake_produce_seconds", "pointsman_intake_board_tasks", "pointsman_intake_board_bytes",
	} {
		require.True(t, names[want], want)
	}
}
