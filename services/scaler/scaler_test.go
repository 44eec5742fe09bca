package scaler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/cluster"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/probe"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
	"github.com/pointsman/pointsman/services/scaler"
)

func TestMain(m *testing.M) {
	chdb.MaybeRunChild()
	goleak.VerifyTestMain(m)
}

// engine is a pool's process and its engine at once.
type engine struct {
	process   atomic.Bool // it runs
	answers   atomic.Bool // the front end answers
	storage   atomic.Bool // the canary passes
	running   atomic.Int64
	starts    atomic.Int64
	stops     atomic.Int64
	killedRun atomic.Int64 // queries that ran when the process was stopped
}

func (e *engine) Start(context.Context) error {
	e.starts.Add(1)
	e.process.Store(true)
	return nil
}

func (e *engine) Stop(context.Context) error {
	e.stops.Add(1)
	e.killedRun.Add(e.running.Load())
	e.process.Store(false)
	return nil
}

func (e *engine) Alive() bool { return e.process.Load() }

func (e *engine) Observe(context.Context) (signal.Observation, error) {
	if !e.process.Load() || !e.answers.Load() {
		return signal.Observation{}, errors.New("connection refused")
	}
	at := time.Now()
	return signal.Observation{Values: map[signal.Name]signal.Value{
		signal.Healthy: signal.OfFlag(true, "engine", at), signal.Running: signal.Of(float64(e.running.Load()), signal.Count, "engine", at),
	}}, nil
}

func (e *engine) Canary(context.Context) error {
	if !e.storage.Load() {
		return errors.New("storage is out of reach")
	}
	return nil
}

type bench struct {
	t      *testing.T
	broker *streamtest.Broker
	kube   *cluster.Server
	engine *engine
	cfg    scaler.Config
	app    *scaler.App
	writer *stream.Producer
}

func topics(t *testing.T, b *streamtest.Broker) {
	t.Helper()
	for _, topic := range []string{event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes} {
		b.Topic(t, topic, 3, nil)
	}
	b.Topic(t, event.TopicSignals, 1, nil)
}

func prepare(t *testing.T, edit func(*scaler.Config)) *bench {
	t.Helper()
	b := &bench{t: t, broker: streamtest.Start(t), engine: &engine{}}
	b.engine.answers.Store(true)
	b.engine.storage.Store(true)
	topics(t, b.broker)
	none := int32(0)
	server, err := cluster.New(cluster.Options{
		MaxReplicas: 4, Resync: 5 * time.Millisecond, Groups: []cluster.Group{{UniqueID: "cg-batch", Replicas: &none, Runner: b.engine}},
	})
	require.NoError(t, err)
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	b.kube = server

	pool := scaler.PoolConfig{Name: "batch", ComputeGroup: "cg-batch"}
	pool.SetDefaults()
	pool.IdleAfter, pool.DrainFor, pool.WakeWindow, pool.WakeTimeout = 300*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond, time.Minute
	pool.UnknownFor, pool.HoldUnknown = 500*time.Millisecond, 200*time.Millisecond
	pool.Probe.Every, pool.Probe.WakeEvery = 20*time.Millisecond, 10*time.Millisecond
	cfg := scaler.Default()
	cfg.Telemetry.Admin.Address, cfg.HTTP.Address = "", "127.0.0.1:0"
	cfg.Kafka = b.broker.Config
	cfg.Kube.URL, cfg.Kube.Namespace, cfg.Kube.Name = server.URL(), server.Namespace(), server.Name()
	cfg.Pools = []scaler.PoolConfig{pool}
	cfg.Timing.Every, cfg.Timing.QueueEvery, cfg.Timing.PublishEvery = 20*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond
	cfg.Group.SessionTimeout, cfg.Group.HeartbeatEvery = 2*time.Second, 50*time.Millisecond
	if edit != nil {
		edit(&cfg)
	}
	b.cfg = cfg
	b.writer, err = stream.NewProducer(b.broker.Config, b.broker.Deps, "test")
	require.NoError(t, err)
	t.Cleanup(b.writer.Close)
	return b
}

// run starts a scaler; the returned function stops it.
func (b *bench) run() (stop func()) {
	b.t.Helper()
	tel, _ := telemetrytest.New(b.t, "scaler")
	app, err := scaler.New(b.t.Context(), b.cfg, tel, scaler.Options{Engines: map[string]probe.Engine{"batch": b.engine}})
	require.NoError(b.t, err)
	require.NoError(b.t, app.Start(b.t.Context()))
	b.app = app
	stop = sync.OnceFunc(func() { require.NoError(b.t, app.Stop(context.Background())) })
	b.t.Cleanup(stop)
	return stop
}

func start(t *testing.T, edit func(*scaler.Config)) *bench {
	t.Helper()
	b := prepare(t, edit)
	b.run()
	b.eventually(b.app.Leads, "it leads")
	return b
}

func (b *bench) eventually(ok func() bool, what string) {
	b.t.Helper()
	require.Eventually(b.t, ok, 15*time.Second, 2*time.Millisecond, what)
}

// steadily asserts that something holds for a while.
func (b *bench) steadily(ok func() bool, d time.Duration, what string) {
	b.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		require.True(b.t, ok(), what)
	}
}

func (b *bench) send(topic, key string, kind event.Type, id string, v any) {
	b.t.Helper()
	data, err := event.Marshal(v)
	require.NoError(b.t, err)
	require.NoError(b.t, b.writer.Send(b.t.Context(), stream.Message{Topic: topic, Key: key, Type: kind, ID: id, Data: data}))
}

func (b *bench) decide(id string, n int, cluster string) {
	b.t.Helper()
	d := event.RouteDecision{
		DecisionID: query.AttemptID(id, n), TaskID: id, Attempt: n, Kind: event.Route, Verdict: "heavy", Deadline: time.Now().Add(time.Hour),
		Target: event.Target{Engine: "clickhouse", Cluster: cluster},
	}
	b.send(event.TopicDecisions, id, d.Type(), d.DecisionID, d)
}

func (b *bench) attempt(id string, n, seq int, state, cluster string, remedy event.Remedy, next *event.Target) {
	b.t.Helper()
	a := event.Attempt{
		AttemptID: query.AttemptID(id, n), TaskID: id, Number: n, Seq: seq, State: state, Remedy: remedy, Next: next,
		Target: event.Target{Engine: "clickhouse", Cluster: cluster},
	}
	b.send(event.TopicAttempts, id, a.Type(), a.AttemptID, a)
}

func (b *bench) end(id string) {
	b.t.Helper()
	b.send(event.TopicOutcomes, id, event.TaskEnded, id, event.Outcome{TaskID: id, Status: event.Succeeded})
}

func (b *bench) replicas() int32 {
	b.t.Helper()
	var doc struct {
		Spec struct {
			ComputeGroups []struct {
				Replicas int32 `json:"replicas"`
			} `json:"computeGroups"`
		} `json:"spec"`
	}
	resp, err := http.Get(b.kube.URL() + "/apis/disaggregated.cluster.doris.com/v1/namespaces/pointsman/dorisdisaggregatedclusters/lakehouse")
	require.NoError(b.t, err)
	defer resp.Body.Close()
	require.NoError(b.t, json.NewDecoder(resp.Body).Decode(&doc))
	return doc.Spec.ComputeGroups[0].Replicas
}

// observations are the scaler's signals so far, in order.
func (b *bench) observations() []signal.Observation {
	b.t.Helper()
	var out []signal.Observation
	for _, rec := range b.broker.Records(b.t, event.TopicSignals) {
		var o signal.Observation
		require.NoError(b.t, json.Unmarshal(rec.Value, &o))
		require.Equal(b.t, o.Cluster+"/"+o.Source, string(rec.Key))
		if o.Source == "scaler" {
			out = append(out, o)
		}
	}
	return out
}

func (b *bench) latest() signal.Observation {
	b.t.Helper()
	all := b.observations()
	if len(all) == 0 {
		return signal.Observation{}
	}
	return all[len(all)-1]
}

func (b *bench) says(name signal.Name, want float64) bool {
	b.t.Helper()
	n, known := b.latest().Values[name].Get()
	return known && n == want
}

func TestAHundredHeavyDecisionsAreOnePatch(t *testing.T) {
	b := start(t, nil)
	b.eventually(func() bool { return b.says(signal.Replicas, 0) }, "asleep, and said so")
	require.True(t, b.says(signal.Ready, 0))
	require.Equal(t, signal.Absent, b.latest().Values[signal.WakeMs].State(), "no wake was measured yet")
	require.Equal(t, signal.Absent, b.latest().Values[signal.Healthy].State(), "nobody asks a pool that sleeps")

	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() { b.decide(fmt.Sprint("t-", i), 1, "batch") })
	}
	all.Wait()
	b.eventually(func() bool { return b.says(signal.Ready, 1) }, "awake")
	require.EqualValues(t, 1, b.replicas())
	require.EqualValues(t, 1, b.kube.Writes(), "one patch for all of them")
	require.EqualValues(t, 1, b.engine.starts.Load())
	wake, known := b.latest().Values[signal.WakeMs].Get()
	require.True(t, known)
	require.Greater(t, wake, 0.0)
	require.True(t, b.says(signal.Healthy, 1))
	require.True(t, b.says(signal.ReadyReplicas, 1))

	// The Tasks run on; nothing puts the pool to sleep, however long it takes.
	b.steadily(func() bool { return b.engine.stops.Load() == 0 }, time.Second, "a pool with open tasks stays")
	for i := range 100 {
		b.end(fmt.Sprint("t-", i))
	}
	b.eventually(func() bool { return b.replicas() == 0 }, "idle, so asleep")
	b.eventually(func() bool {
		return b.engine.stops.Load() == 1 && b.says(signal.Ready, 0) && b.says(signal.Replicas, 0)
	}, "and said so")
	require.EqualValues(t, 2, b.kube.Writes())
	require.Equal(t, signal.Known, b.latest().Values[signal.WakeMs].State(), "the wake time is remembered")

	// It was announced as going before it went.
	seen := b.observations()
	for i := 1; i < len(seen); i++ {
		before, _ := seen[i-1].Values[signal.Replicas].Get()
		after, _ := seen[i].Values[signal.Replicas].Get()
		if before == 1 && after == 0 {
			ready, _ := seen[i-1].Values[signal.Ready].Get()
			require.Zero(t, ready, "not ready while it still had replicas")
		}
	}
}

func TestReadyOnlyAfterAllThreeLayers(t *testing.T) {
	b := prepare(t, nil)
	b.engine.answers.Store(false)
	b.engine.storage.Store(false)
	b.run()
	b.eventually(b.app.Leads, "it leads")
	b.decide("x", 1, "batch")
	b.eventually(func() bool { return b.says(signal.ReadyReplicas, 1) }, "the control plane says running")
	b.steadily(func() bool { return !b.says(signal.Ready, 1) }, 150*time.Millisecond, "pods alone are not ready")
	require.Equal(t, "backends", b.stuck())

	b.engine.answers.Store(true)
	b.eventually(func() bool { return b.stuck() == "canary" }, "the engine answers")
	b.steadily(func() bool { return !b.says(signal.Ready, 1) }, 150*time.Millisecond, "an answer alone is not ready")

	b.engine.storage.Store(true)
	b.eventually(func() bool { return b.says(signal.Ready, 1) }, "the canary passes")
	require.Empty(t, b.stuck())

	// And it is taken back when the engine dies under load.
	b.engine.answers.Store(false)
	b.eventually(func() bool { return b.says(signal.Ready, 0) && b.says(signal.Healthy, 0) }, "the engine is gone")
	require.EqualValues(t, 1, b.replicas(), "which is no reason to reap a pool that tasks wait for")
}

// stuck is the layer that the status page says the pool has not passed.
func (b *bench) stuck() string {
	b.t.Helper()
	resp, err := http.Get("http://" + b.app.Addr().String() + "/v1/pools")
	require.NoError(b.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	var doc struct {
		Pools []scaler.Status `json:"pools"`
	}
	require.NoError(b.t, json.Unmarshal(data, &doc), string(data))
	for _, l := range doc.Pools[0].Layers {
		if l.Verdict != probe.Passed {
			return string(l.Layer)
		}
	}
	return ""
}

func TestAFailoverWakesThePool(t *testing.T) {
	b := start(t, nil)
	b.decide("x", 1, "interactive")
	b.attempt("x", 1, 1, "running", "interactive", "", nil)
	b.steadily(func() bool { return b.replicas() == 0 }, 150*time.Millisecond, "another pool's task wakes nobody")
	b.attempt("x", 1, 2, "failed", "interactive", event.RemedyFailover, &event.Target{Engine: "clickhouse", Cluster: "batch"})
	b.eventually(func() bool { return b.says(signal.Ready, 1) }, "it needs this pool now")
}

func TestRejectedAndCancelledTasksWakeNobody(t *testing.T) {
	b := start(t, nil)
	for _, kind := range []event.DecisionKind{event.Reject, event.PassCancel} {
		d := event.RouteDecision{DecisionID: string(kind), TaskID: string(kind), Attempt: 1, Kind: kind, Target: event.Target{Cluster: "batch"}}
		b.send(event.TopicDecisions, d.TaskID, d.Type(), d.DecisionID, d)
	}
	b.steadily(func() bool { return b.replicas() == 0 }, 200*time.Millisecond, "asleep")
}

// A query that did not come through our topics holds the pool too; and work that comes while the pool is going keeps it.
func TestWorkIsNeverReaped(t *testing.T) {
	b := start(t, nil)
	b.decide("x", 1, "batch")
	b.eventually(func() bool { return b.says(signal.Ready, 1) }, "awake")
	b.engine.running.Store(1)
	b.end("x")
	b.steadily(func() bool { return b.engine.stops.Load() == 0 }, 800*time.Millisecond, "the engine has other work")
	b.engine.running.Store(0)
	b.eventually(func() bool { return b.engine.stops.Load() == 1 }, "idle")
	require.Zero(t, b.engine.killedRun.Load())

	// Tasks come and go at random; whenever one is open and the pool is announced as ready it runs, and none is killed.
	for i := range 15 {
		id := fmt.Sprint("r-", i)
		b.decide(id, 1, "batch")
		b.eventually(func() bool { return b.says(signal.Ready, 1) }, "ready")
		b.engine.running.Add(1)
		time.Sleep(time.Duration(i%7) * 5 * time.Millisecond)
		b.engine.running.Add(-1)
		b.end(id)
		time.Sleep(time.Duration(i%5) * 90 * time.Millisecond) // around the idle time
	}
	require.Zero(t, b.engine.killedRun.Load())
}

// K12: an outside producer's transactions leave markers at the end of the logs, and the pool still goes to zero.
func TestMarkersDoNotKeepThePoolAwake(t *testing.T) {
	b := prepare(t, nil)
	b.decide("x", 1, "batch")
	mark := func() {
		tx := b.broker.Client(t, kgo.TransactionalID("outside"))
		for _, topic := range []string{event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes} {
			for p := range int32(3) {
				require.NoError(t, tx.BeginTransaction())
				rec := &kgo.Record{Topic: topic, Partition: p, Key: []byte("k"), Value: []byte(`{"odd":true}`)}
				require.NoError(t, tx.ProduceSync(t.Context(), rec).FirstErr())
				require.NoError(t, tx.EndTransaction(t.Context(), kgo.TryCommit))
			}
		}
		tx.Close()
	}
	mark()
	b.run()
	b.eventually(func() bool { return b.says(signal.Ready, 1) }, "awake")
	b.end("x")
	mark()
	b.eventually(func() bool { return b.replicas() == 0 }, "asleep")
	b.eventually(func() bool {
		lags, err := b.app.Lag(t.Context())
		records, unknown := stream.TotalLag(lags)
		return err == nil && records == 0 && unknown == 0
	}, "and nothing pending")
}

// K13: no commit yet and history expired. The lag is what is left, and nothing of what is gone wakes the pool.
func TestExpiredHistoryIsNoWork(t *testing.T) {
	b := prepare(t, nil)
	for i := range 10 {
		b.decide(fmt.Sprint("t-", i), 1, "batch")
	}
	for p := range int32(3) {
		info := b.broker.PartitionInfo(event.TopicDecisions, p)
		require.NoError(t, b.broker.DeleteRecords(event.TopicDecisions, p, info.HighWatermark))
	}
	b.run()
	b.eventually(b.app.Leads, "it leads")
	lags, err := b.app.Lag(t.Context())
	require.NoError(t, err)
	records, unknown := stream.TotalLag(lags)
	require.Zero(t, records)
	require.Zero(t, unknown)
	b.steadily(func() bool { return b.replicas() == 0 }, 300*time.Millisecond, "asleep")
}

func TestRestart(t *testing.T) {
	b := prepare(t, nil)
	stop := b.run()
	b.decide("x", 1, "batch")
	b.eventually(func() bool { return b.says(signal.Ready, 1) }, "awake")
	before, _ := b.latest().Values[signal.WakeMs].Get()
	stop()

	// Ended and decided anew while nobody looked.
	b.end("x")
	b.decide("y", 1, "batch")
	stop = b.run()
	b.eventually(b.app.Leads, "it leads again")
	b.eventually(func() bool { return b.says(signal.Ready, 1) && b.latest().At.After(time.Now().Add(-time.Second)) }, "as before")
	after, known := b.latest().Values[signal.WakeMs].Get()
	require.True(t, known)
	require.Equal(t, before, after, "the wake time outlives the process")
	require.EqualValues(t, 1, b.kube.Writes(), "nothing is patched again")
	stop()
	b.end("y")
	b.run()
	b.eventually(func() bool { return b.replicas() == 0 }, "idle, found after a restart")
}

// Two instances: one acts, and when it goes the other does.
func TestOneActs(t *testing.T) {
	b := prepare(t, nil)
	stopFirst := b.run()
	first := b.app
	b.eventually(first.Leads, "alone it leads")
	b.run()
	second := b.app
	b.steadily(func() bool { return !first.Leads() || !second.Leads() }, 300*time.Millisecond, "never both")
	b.eventually(func() bool { return first.Leads() != second.Leads() }, "one of them")
	b.decide("x", 1, "batch")
	b.eventually(func() bool { return b.says(signal.Ready, 1) }, "awake")
	require.EqualValues(t, 1, b.kube.Writes())
	stopFirst()
	b.eventually(second.Leads, "the other takes over")
	b.end("x")
	b.eventually(func() bool { return b.replicas() == 0 }, "and acts")
}

func TestControlPlaneAway(t *testing.T) {
	b := start(t, nil)
	b.decide("x", 1, "batch")
	b.eventually(func() bool { return b.says(signal.Ready, 1) }, "awake")
	b.end("x")
	require.NoError(t, b.kube.Stop(context.Background()))
	b.engine.process.Store(true) // it runs on; only the API server is gone
	b.eventually(func() bool {
		o := b.latest()
		return o.Values[signal.Replicas].State() == signal.Absent && o.Values[signal.Ready].State() == signal.Absent
	}, "what nobody knows is absent, not zero")
}

func TestPausedWritesNothing(t *testing.T) {
	b := start(t, func(c *scaler.Config) { c.Paused = true })
	b.decide("x", 1, "batch")
	b.steadily(func() bool { return b.kube.Writes() == 0 }, 300*time.Millisecond, "paused")
	b.eventually(func() bool { return b.says(signal.Replicas, 0) }, "signals go on")
}

// Somebody else scales while we do: nothing is lowered by a raise, and the group's other fields stay.
func TestOthersScaleToo(t *testing.T) {
	b := start(t, func(c *scaler.Config) { c.Pools[0].Max = 4 })
	patch(t, b.kube, `[{"op":"replace","path":"/spec/computeGroups/0/replicas","value":3}]`)
	b.decide("x", 1, "batch")
	b.eventually(func() bool { return b.says(signal.Ready, 1) }, "awake")
	b.steadily(func() bool { return b.replicas() == 3 }, 200*time.Millisecond, "a wish for one does not lower three")
	b.end("x")
	b.eventually(func() bool { return b.replicas() == 0 }, "idle")
}

func patch(t *testing.T, s *cluster.Server, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch,
		s.URL()+"/apis/disaggregated.cluster.doris.com/v1/namespaces/pointsman/dorisdisaggregatedclusters/lakehouse", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json-patch+json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 200, resp.StatusCode)
}

// K8: records that others got wrong stop nothing.
func TestOddRecordsArePassedOver(t *testing.T) {
	b := start(t, nil)
	raw := b.broker.Client(t, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	for _, topic := range []string{event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes, event.TopicSignals} {
		for _, rec := range []*kgo.Record{
			{Key: []byte("k")},
			{Key: []byte("k"), Value: []byte("nope"), Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte("x")}}},
			{Key: []byte("k"), Value: []byte(`{"taskId":7,"cluster":7}`), Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte("x")}, {Key: "traceparent", Value: []byte("zz")}}},
			{Key: []byte("k"), Value: []byte(`[]`), Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte("x")}}},
			{Value: []byte(`{}`)},
		} {
			rec.Topic = topic
			require.NoError(t, raw.ProduceSync(t.Context(), rec).FirstErr())
		}
	}
	b.decide("x", 1, "batch")
	b.eventually(func() bool { return b.replicas() == 1 }, "it goes on")
}

func TestConfigIsChecked(t *testing.T) {
	b := prepare(t, nil)
	require.NoError(t, config.Validate(b.cfg))
	require.NoError(t, config.Validate(scaler.Default()))
	for name, edit := range map[string]func(*scaler.Config){
		"no name":       func(c *scaler.Config) { c.Pools[0].Name = "" },
		"no group":      func(c *scaler.Config) { c.Pools[0].ComputeGroup = "" },
		"two of a name": func(c *scaler.Config) { c.Pools = append(c.Pools, c.Pools[0]) },
		"below zero":    func(c *scaler.Config) { c.Pools[0].Min = -1 },
		"no cap":        func(c *scaler.Config) { c.Pools[0].Max = 0 },
		"no idle time":  func(c *scaler.Config) { c.Pools[0].IdleAfter = 0 },
		"no probe":      func(c *scaler.Config) { c.Pools[0].Probe.Every = 0 },
		"no limits":     func(c *scaler.Config) { c.Pools[0].Probe.Limits = probe.Limits{} },
		"no timing":     func(c *scaler.Config) { c.Timing.Every = 0 },
		"address":       func(c *scaler.Config) { c.HTTP.Address = "x" },
		"kube":          func(c *scaler.Config) { c.Kube.URL = "" },
	} {
		t.Run(name, func(t *testing.T) {
			c := b.cfg
			c.Pools = append([]scaler.PoolConfig(nil), b.cfg.Pools...)
			edit(&c)
			require.Error(t, config.Validate(c))
		})
	}
	for name, engine := range map[string]scaler.EngineConfig{
		"kind": {Kind: "trino", URL: "http://x:1", Canary: "c"}, "url": {Kind: "clickhouse", URL: "x", Canary: "c"},
		"scheme": {Kind: "clickhouse", URL: "ftp://x:1", Canary: "c"}, "canary": {Kind: "clickhouse", URL: "http://x:1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := b.cfg
			c.Pools = append([]scaler.PoolConfig(nil), b.cfg.Pools...)
			c.Pools[0].Engine = engine
			tel, _ := telemetrytest.New(t, "scaler")
			_, err := scaler.New(t.Context(), c, tel, scaler.Options{})
			require.Error(t, err)
		})
	}
}
