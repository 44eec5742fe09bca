package profiler_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/services/profiler"
)

// fakeEngine is an engine whose health the test sets. It counts what it was asked.
type fakeEngine struct {
	engine.Engine
	name          string
	down, sick    atomic.Bool
	asked, canary atomic.Int64
}

func (e *fakeEngine) Observe(context.Context) (signal.Observation, error) {
	e.asked.Add(1)
	if e.down.Load() {
		return signal.Observation{}, errors.New("connection refused")
	}
	at := time.Now().UTC()
	return signal.Observation{Cluster: "whatever", Source: "self", At: at, Values: map[signal.Name]signal.Value{
		signal.Running: signal.Of(0, signal.Count, "self", at), signal.MemoryUsedBytes: signal.Missing("self"),
	}}, nil
}

func (e *fakeEngine) Canary(context.Context) error {
	e.canary.Add(1)
	if e.sick.Load() {
		return errors.New("disk is read-only")
	}
	return nil
}

func (e *fakeEngine) Close() error { return nil }

// newest is the newest observation of a cluster by a source.
func (b *bench) newest(cluster, source string) (signal.Observation, bool) {
	b.t.Helper()
	var out signal.Observation
	found := false
	for _, r := range b.broker.Records(b.t, event.TopicSignals) {
		if string(r.Key) != cluster+"/"+source {
			continue
		}
		var o signal.Observation
		require.NoError(b.t, json.Unmarshal(r.Value, &o))
		if !found || o.At.After(out.At) {
			out, found = o, true
		}
	}
	return out, found
}

func (b *bench) healthy(cluster string, want float64) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		o, ok := b.newest(cluster, "engine")
		if !ok {
			return false
		}
		v, known := o.Values[signal.Healthy].Get()
		return known && v == want
	}, 10*time.Second, 20*time.Millisecond)
}

func TestEnginesAreWatched(t *testing.T) {
	b := newBench(t)
	fake := &fakeEngine{name: "c1"}
	cfg := b.cfg
	cfg.Watch = profiler.WatchConfig{Every: 20 * time.Millisecond, CanaryEvery: 60 * time.Millisecond, Timeout: time.Second}
	cfg.Engines = []profiler.EngineConfig{{Name: "c1", Kind: "clickhouse", Addr: []string{"127.0.0.1:1"}, Slots: new(2)}}
	b.start(cfg, profiler.WithEngines(func(profiler.EngineConfig) (engine.Engine, error) { return fake, nil }))

	b.healthy("c1", 1)
	o, _ := b.newest("c1", "engine")
	require.Equal(t, "c1", o.Cluster, "the configured name counts")
	running, known := o.Values[signal.Running].Get()
	require.True(t, known)
	require.Zero(t, running)
	require.Equal(t, signal.Absent, o.Values[signal.MemoryUsedBytes].State())
	require.Equal(t, "engine", o.Values[signal.Running].Source)
	require.Eventually(t, func() bool { return fake.asked.Load() > 10 }, 10*time.Second, 10*time.Millisecond)
	require.Less(t, fake.canary.Load(), fake.asked.Load(), "the canary is dearer, and rarer")

	fake.sick.Store(true)
	b.healthy("c1", 0)
	o, _ = b.newest("c1", "engine")
	_, known = o.Values[signal.Running].Get()
	require.True(t, known, "it answers, but can't run a query")
	fake.sick.Store(false)
	b.healthy("c1", 1)
	fake.down.Store(true)
	b.healthy("c1", 0)
	o, _ = b.newest("c1", "engine")
	require.Equal(t, signal.Absent, o.Values[signal.Running].State(), "absent is not zero")
	b.eventually(1, "SELECT toUInt64(count() > 0) FROM queue_samples WHERE cluster = 'c1' AND source = 'engine' AND healthy = false AND running IS NULL")
}

func TestLoadsAreFoldedFromAttempts(t *testing.T) {
	b := newBench(t)
	attempt := func(id string, seq int, state string) {
		a := event.Attempt{AttemptID: id + "/1", TaskID: id, Number: 1, Seq: seq, State: state, At: time.Now().UTC(), Target: event.Target{Engine: "e", Cluster: "c1"}}
		b.send(event.TopicAttempts, id, a.Type(), a)
	}
	attempt("before", 1, "awaiting_slot") // before the profiler starts
	attempt("before", 2, "running")
	cfg := b.cfg
	cfg.Load = profiler.LoadConfig{Every: 20 * time.Millisecond, Heartbeat: 200 * time.Millisecond, LookBack: time.Hour}
	cfg.Engines = []profiler.EngineConfig{{Name: "c1", Kind: "clickhouse", Addr: []string{"127.0.0.1:1"}, Slots: new(1)}, {Name: "idle", Kind: "clickhouse", Addr: []string{"127.0.0.1:1"}}}
	b.start(cfg, profiler.WithEngines(func(c profiler.EngineConfig) (engine.Engine, error) { return &fakeEngine{name: c.Name}, nil }))

	load := func(queued, running float64) signal.Observation {
		t.Helper()
		var o signal.Observation
		require.Eventually(t, func() bool {
			var ok bool
			o, ok = b.newest("c1", "attempts")
			q, _ := o.Values[signal.Queued].Get()
			r, known := o.Values[signal.Running].Get()
			return ok && known && q == queued && r == running
		}, 10*time.Second, 20*time.Millisecond)
		return o
	}
	o := load(0, 1)
	require.Equal(t, signal.Absent, o.Values[signal.EstWaitMs].State(), "full, and nothing has ended yet")
	attempt("waits", 1, "awaiting_slot")
	load(1, 1)
	attempt("before", 3, "succeeded")
	attempt("waits", 2, "running")
	o = load(0, 1)
	require.Equal(t, "attempts/little", o.Values[signal.EstWaitMs].Source)
	attempt("waits", 3, "failed")
	o = load(0, 0)
	wait, known := o.Values[signal.EstWaitMs].Get()
	require.True(t, known)
	require.Zero(t, wait)

	idle, ok := b.newest("idle", "attempts")
	require.True(t, ok, "a cluster nobody uses is told of as well")
	require.Equal(t, signal.Absent, idle.Values[signal.Slots].State())

	// What does not change is told again before it is stale, but not more often than that.
	first, _ := b.newest("c1", "attempts")
	time.Sleep(700 * time.Millisecond)
	var since int
	for _, r := range b.broker.Records(t, event.TopicSignals) {
		var o signal.Observation
		require.NoError(t, json.Unmarshal(r.Value, &o))
		if string(r.Key) == "c1/attempts" && o.At.After(first.At) {
			since++
		}
	}
	require.GreaterOrEqual(t, since, 2)
	require.LessOrEqual(t, since, 6)
}
