package executor_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/services/executor"
)

// pool publishes the state of a pool as the scaler sees it.
func (b *bench) pool(cluster string, ready, replicas float64) {
	b.t.Helper()
	now := time.Now().UTC()
	o := signal.Observation{Cluster: cluster, Source: "scaler", At: now, Values: map[signal.Name]signal.Value{
		signal.Ready: signal.Of(ready, signal.Flag, "scaler", now), signal.Replicas: signal.Of(replicas, signal.Count, "scaler", now),
	}}
	data, err := json.Marshal(o)
	require.NoError(b.t, err)
	require.NoError(b.t, b.producer.Send(b.t.Context(), stream.Message{
		Topic: event.TopicSignals, Key: cluster + "/scaler", Type: event.ClusterObserved, ID: "x", Data: data,
	}))
}

func toBatch(d *event.RouteDecision) { d.Cluster, d.Fallbacks = batch, nil }

func TestASleepingPoolIsWaitedFor(t *testing.T) {
	b := newBench(t, 1)
	b.servers[batch].on("HEAVY", behaviour{rows: 1})
	b.pool(batch, 0, 0)
	b.start()
	time.Sleep(300 * time.Millisecond) // the signal is read
	b.decide(b.route("t1", "HEAVY", toBatch))
	b.change("t1/1", "awaiting_capacity")
	require.Empty(t, b.servers[batch].counts(), "nothing is sent to a pool that sleeps")
	b.pool(batch, 0, 1)
	time.Sleep(100 * time.Millisecond)
	require.Empty(t, b.servers[batch].counts(), "nor to one that wakes")
	b.pool(batch, 1, 1)
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.GreaterOrEqual(t, *o.Stats.AcquireMs, int64(100), "waking the pool counts as acquisition")
	require.Less(t, *o.Stats.QueueMs, *o.Stats.AcquireMs)
	require.Equal(t, []string{"awaiting_slot", "awaiting_capacity", "awaiting_slot", "claimed", "submitting", "running", "delivering", "succeeded"}, b.states("t1/1"))
	b.committed()
}

func TestAPoolThatNeverWakesIsRoutedAround(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Attempts.CapacityWait = 300 * time.Millisecond }
	b.pool(batch, 0, 0)
	b.start()
	time.Sleep(300 * time.Millisecond)
	b.decide(b.route("t1", "HEAVY", toBatch), b.route("write", "INSERT", toBatch, func(d *event.RouteDecision) { d.ReadOnly = false }))
	for _, id := range []string{"t1/1", "write/1"} {
		failed := b.change(id, "failed")
		require.Equal(t, string(failure.EngineStart), failed.Failure.Class)
		require.Equal(t, event.RemedyReroute, failed.Remedy, "nothing was sent, so even a write may go elsewhere")
	}
	require.Empty(t, b.servers[batch].counts())
}

func TestCancelWhileThePoolSleeps(t *testing.T) {
	b := newBench(t, 1)
	b.pool(batch, 0, 0)
	b.start()
	time.Sleep(300 * time.Millisecond)
	b.decide(b.route("t1", "HEAVY", toBatch))
	b.change("t1/1", "awaiting_capacity")
	b.decide(cancelOf("t1"))
	o := b.outcome("t1")
	require.Equal(t, event.Cancelled, o.Status)
	require.Zero(t, o.Attempts)
	b.committed()
}

func TestASignalThatGrowsOldHoldsNothingUp(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Attempts.SignalAge = 800 * time.Millisecond }
	b.servers[batch].on("HEAVY", behaviour{rows: 1})
	b.start()
	b.pool(batch, 0, 0)
	time.Sleep(200 * time.Millisecond)
	b.decide(b.route("t1", "HEAVY", toBatch))
	b.change("t1/1", "awaiting_capacity")
	require.Equal(t, event.Succeeded, b.outcome("t1").Status, "a pool nobody speaks of any more is tried")
}

// TestADeadLetterThatCantBeWritten is case K7: until it is, the partition does not advance.
func TestADeadLetterThatCantBeWritten(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("SELECT", behaviour{rows: 1})
	fault := b.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: event.TopicDeadLetter, Err: kerr.NotLeaderForPartition, Count: -1})
	b.start()
	b.raw("a", []byte("no JSON"))
	b.decide(b.route("t1", "SELECT"))
	time.Sleep(500 * time.Millisecond)
	require.LessOrEqual(t, b.broker.Offset(t, "executor", event.TopicDecisions, 0), int64(0))
	require.Empty(t, b.broker.Records(t, event.TopicDeadLetter))
	fault.Remove()
	require.Equal(t, event.Succeeded, b.outcome("t1").Status)
	b.committed()
	require.Len(t, b.broker.Records(t, event.TopicDeadLetter), 1)
}
