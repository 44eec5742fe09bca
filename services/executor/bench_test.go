package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
	"github.com/pointsman/pointsman/services/executor"
)

func TestMain(m *testing.M) {
	chdb.MaybeRunChild()
	goleak.VerifyTestMain(m)
}

const patience = strain * 20 * time.Second

// bench is a broker, two clusters, and any number of executors.
type bench struct {
	t        *testing.T
	broker   *streamtest.Broker
	producer *stream.Producer
	servers  map[string]*server
	results  string
	config   func(*executor.Config)
	again    func() (executor.Config, error)                                                                  // loads the configuration anew
	effects  func(ctx context.Context, id string, from attempt.State, e attempt.Event, effect attempt.Effect) // of executors that are started from now on
	wrap     func(*client) engine.Engine                                                                      // theirs to the clusters; nil takes them as they are
	maxBytes func(topic string) int
	log      *slog.Logger            // nil means warnings only
	spans    *tracetest.SpanRecorder // of the newest executor
}

// The clusters of every bench.
const (
	interactive = "interactive"
	batch       = "batch"
)

func newBench(t *testing.T, partitions int32) *bench {
	t.Helper()
	return newBenchWith(t, partitions, nil)
}

// newBenchWith makes the topics with configurations of their own.
func newBenchWith(t *testing.T, partitions int32, topics map[string]string) *bench {
	t.Helper()
	t.Parallel() // they mostly wait
	broker := streamtest.Start(t)
	for _, topic := range []string{event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes, event.TopicAttemptState} {
		broker.Topic(t, topic, partitions, topics)
	}
	broker.Topic(t, event.TopicSlots, 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
	broker.Topic(t, event.TopicSignals, 1, map[string]string{"cleanup.policy": "compact"})
	broker.Topic(t, event.TopicDeadLetter, 1, nil)
	producer, err := stream.NewProducer(broker.Config, broker.Deps, "router")
	require.NoError(t, err)
	t.Cleanup(producer.Close)
	return &bench{t: t, broker: broker, producer: producer, servers: map[string]*server{interactive: newServer(), batch: newServer()}, results: t.TempDir()}
}

// proc is an executor with its own way to the broker and to the engines.
type proc struct {
	*executor.App
	network *network
	tel     *telemetry.Telemetry
	clients []*client
	steps   *steps
	stop    sync.Once
}

// steps stops an executor at chosen points.
type steps struct {
	mu    sync.Mutex
	at    map[string]chan struct{} // reached
	until map[string]chan struct{} // released
}

func (s *steps) hook(ctx context.Context, step executor.Step, id string) {
	s.mu.Lock()
	key := string(step) + " " + id
	reached, until := s.at[key], s.until[key]
	if reached != nil {
		delete(s.at, key)
		close(reached)
	}
	s.mu.Unlock()
	if until != nil {
		<-until
	}
}

// stopAt makes the executor stand still when the attempt reaches a step. The first channel says that it has, the function lets it
// go on.
func (s *steps) stopAt(step executor.Step, id string) (<-chan struct{}, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := string(step) + " " + id
	reached, until := make(chan struct{}), make(chan struct{})
	s.at[key], s.until[key] = reached, until
	return reached, sync.OnceFunc(func() {
		s.mu.Lock()
		delete(s.until, key)
		s.mu.Unlock()
		close(until)
	})
}

func (b *bench) cfg() executor.Config {
	cfg := executor.Default()
	cfg.Telemetry.Admin.Address = ""
	cfg.Kafka = b.broker.Config
	cfg.Group.SessionTimeout, cfg.Group.HeartbeatEvery, cfg.Group.RebalanceTimeout = strain*600*time.Millisecond, 60*time.Millisecond, strain*5*time.Second
	cfg.Group.CommitEvery = 50 * time.Millisecond
	cfg.Attempts.GuardLeave, cfg.Attempts.GuardSettle = strain*time.Second, 100*time.Millisecond
	cfg.Attempts.BackoffFirst, cfg.Attempts.BackoffMax = time.Millisecond, 10*time.Millisecond
	cfg.Attempts.LookUpTimeout, cfg.Attempts.Grace = 300*time.Millisecond, 500*time.Millisecond
	cfg.Attempts.SeenAfter = 30 * time.Millisecond
	cfg.Results.Folder = b.results
	for _, name := range []string{interactive, batch} {
		cfg.Engines = append(cfg.Engines, executor.EngineConfig{Name: name, Kind: "clickhouse", URL: "http://127.0.0.1:1", Slots: 4})
	}
	if b.config != nil {
		b.config(&cfg)
	}
	return cfg
}

// start runs an executor until the test ends.
func (b *bench) start() *proc {
	b.t.Helper()
	p := &proc{network: &network{}, steps: &steps{at: map[string]chan struct{}{}, until: map[string]chan struct{}{}}}
	engines := map[string]engine.Engine{}
	for name, s := range b.servers {
		c := s.client()
		p.clients = append(p.clients, c)
		engines[name] = c
		if b.wrap != nil {
			engines[name] = b.wrap(c)
		}
	}
	if len(engines) == 0 {
		engines = nil // those of the configuration
	}
	tel, spans := telemetrytest.New(b.t, "executor")
	p.tel, b.spans = tel, spans
	tel.Log = b.broker.Deps.Log // warnings only: the clients' debug lines would cost more than the test
	if b.log != nil {
		tel.Log = b.log
	}
	app, err := executor.New(b.t.Context(), b.cfg(), tel, executor.Options{Engines: engines, Hooks: executor.Hooks{At: p.steps.hook, Effect: b.effects}, Dialer: p.network.dial, MaxBytes: b.maxBytes, Again: b.again})
	require.NoError(b.t, err)
	require.NoError(b.t, app.Start(b.t.Context()))
	p.App = app
	b.t.Cleanup(func() { p.end() })
	return p
}

// end stops an executor in the normal way.
func (p *proc) end() {
	p.stop.Do(func() {
		p.steps.mu.Lock()
		for _, until := range p.steps.until {
			close(until)
		}
		p.steps.until = map[string]chan struct{}{}
		p.steps.mu.Unlock()
		p.network.revive()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = p.Stop(ctx)
	})
}

// crash is a kill -9: the broker and the engines hear nothing more.
func (p *proc) crash() {
	for _, c := range p.clients {
		c.crash()
	}
	p.network.kill()
}

// route makes a decision for a new Task.
func (b *bench) route(id, sql string, edit ...func(*event.RouteDecision)) event.RouteDecision {
	now := time.Now().UTC().Truncate(time.Millisecond)
	sla, timeout := 10.0, 60.0
	task := &query.Task{ID: id, SQL: sql, Tenant: "tenant_a", User: "u", SubmittedAt: &now, SLASeconds: &sla, TimeoutSeconds: &timeout}
	d := event.RouteDecision{
		DecisionID: query.AttemptID(id, 1), TaskID: id, Attempt: 1, Kind: event.Route, Task: task, TaskDigest: task.Digest(),
		DecidedAt: now, Deadline: now.Add(time.Minute), Target: event.Target{Engine: "clickhouse", Cluster: interactive, Queue: "default"},
		Fallbacks: []event.Target{{Engine: "clickhouse", Cluster: batch, Queue: "default"}},
		Reasons:   []event.Reason{{Code: "meets_sla"}}, Fingerprint: "f", ReadOnly: true,
	}
	for _, e := range edit {
		e(&d)
	}
	return d
}

// decide publishes decisions in order.
func (b *bench) decide(ds ...event.RouteDecision) {
	b.t.Helper()
	for _, d := range ds {
		data, err := event.Marshal(d)
		require.NoError(b.t, err)
		require.NoError(b.t, b.producer.Send(b.t.Context(), stream.Message{
			Topic: event.TopicDecisions, Key: d.TaskID, Type: d.Type(), ID: d.DecisionID, Time: d.DecidedAt, Data: data,
		}))
	}
}

// raw publishes bytes on decisions.
func (b *bench) raw(key string, value []byte, headers ...kgo.RecordHeader) {
	b.t.Helper()
	require.NoError(b.t, b.producer.Write(b.t.Context(), &kgo.Record{Topic: event.TopicDecisions, Key: []byte(key), Value: value, Headers: headers}))
}

// outcomes are all that were published, by Task.
func (b *bench) outcomes() map[string][]event.Outcome {
	b.t.Helper()
	out := map[string][]event.Outcome{}
	bytesOf := map[string]string{}
	for _, rec := range b.broker.Records(b.t, event.TopicOutcomes) {
		var o event.Outcome
		require.NoError(b.t, json.Unmarshal(rec.Value, &o))
		require.Equal(b.t, o.TaskID, string(rec.Key))
		if before, ok := bytesOf[o.TaskID]; ok {
			require.Equal(b.t, before, whole(rec), "an outcome that appears twice is the same, byte for byte")
		}
		bytesOf[o.TaskID] = whole(rec)
		out[o.TaskID] = append(out[o.TaskID], o)
	}
	return out
}

func whole(rec *kgo.Record) string {
	var s strings.Builder
	s.Write(rec.Value)
	for _, h := range rec.Headers {
		if h.Key != "traceparent" && h.Key != "tracestate" {
			fmt.Fprintf(&s, "\n%s=%s", h.Key, h.Value)
		}
	}
	return s.String()
}

// outcome waits for a Task's.
func (b *bench) outcome(id string) event.Outcome {
	b.t.Helper()
	var found event.Outcome
	require.Eventually(b.t, func() bool {
		o := b.outcomes()[id]
		if len(o) > 0 {
			found = o[0]
		}
		return len(o) > 0
	}, patience, 20*time.Millisecond, "no outcome of %s", id)
	return found
}

// changes are an attempt's events as a reader keeps them: the first of each number, in order.
func (b *bench) changes(attemptID string) []event.Attempt {
	b.t.Helper()
	recs := b.broker.Records(b.t, event.TopicAttempts)
	slices.SortStableFunc(recs, func(x, y *kgo.Record) int { return int(x.Offset - y.Offset) })
	seen := map[int]bool{}
	var out []event.Attempt
	for _, rec := range recs {
		var a event.Attempt
		require.NoError(b.t, json.Unmarshal(rec.Value, &a))
		if a.AttemptID == attemptID && !seen[a.Seq] {
			seen[a.Seq] = true
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(x, y event.Attempt) int { return x.Seq - y.Seq })
	return out
}

func (b *bench) states(attemptID string) []string {
	var out []string
	for _, a := range b.changes(attemptID) {
		out = append(out, a.State)
	}
	return out
}

// change waits for an attempt's event in a state.
func (b *bench) change(attemptID, state string) event.Attempt {
	b.t.Helper()
	var found event.Attempt
	require.Eventually(b.t, func() bool {
		for _, a := range b.changes(attemptID) {
			if a.State == state {
				found = a
				return true
			}
		}
		return false
	}, patience, 20*time.Millisecond, "%s never was %s", attemptID, state)
	return found
}

// committed waits until everything that was decided is committed.
func (b *bench) committed() {
	b.t.Helper()
	want := map[int32]int64{}
	for _, rec := range b.broker.Records(b.t, event.TopicDecisions) {
		want[rec.Partition] = max(want[rec.Partition], rec.Offset+1)
	}
	require.Eventually(b.t, func() bool {
		for p, o := range want {
			if b.broker.Offset(b.t, "executor", event.TopicDecisions, p) != o {
				return false
			}
		}
		return true
	}, patience, 20*time.Millisecond, "the offsets of finished decisions are committed")
}

// once checks what must hold whatever happened: no attempt was submitted twice, and no Task has two different Outcomes (which
// outcomes itself checks).
func (b *bench) once() {
	b.t.Helper()
	for name, s := range b.servers {
		for id, n := range s.counts() {
			require.Equal(b.t, 1, n, "%s saw %d submissions of %s", name, n, id)
		}
	}
	b.outcomes()
}

func reached(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("the step was not reached")
	}
}

// steal takes a partition's lease without being its owner in the group.
func (b *bench) steal(partition int32) (done func()) {
	b.t.Helper()
	cfg := b.broker.Config
	cfg.ClientID = "thief"
	l, err := stream.OpenLedger(b.t.Context(), cfg, b.broker.Deps, stream.DefaultLedgerConfig(partition, "thief"))
	require.NoError(b.t, err)
	return func() { _ = l.Close(context.Background()) }
}
