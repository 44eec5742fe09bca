package scaler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
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
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
	"github.com/pointsman/pointsman/services/scaler"
)

func TestMain(m *testing.M) {
	chdb.MaybeRunChild()
	goleak.VerifyTestMain(m)
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
