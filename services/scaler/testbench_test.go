package scaler_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
