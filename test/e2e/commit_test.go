package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/test/e2e/scenario"
	"github.com/pointsman/pointsman/test/testkit"
)

// TestBrokerRefuses has the broker refuse what it is asked to keep, and kills whoever relied on it.
func TestBrokerRefuses(t *testing.T) {
	broker := streamtest.Start(t)
	w := testkit.New(t, testkit.Options{Brokers: broker.ListenAddrs()})
	f := w.Fleet(testkit.FleetOptions{})
	refused := broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: -1})
	f.Start(testkit.Services...)
	ids := nothingCommitted(t, w, f, broker, refused.Remove)
	load := scenario.NewLoad(w, "unacknowledged", nil)
	for _, c := range []struct{ service, topic string }{
		{"router", event.TopicDecisions}, {"executor", event.TopicAttemptState}, {"executor", event.TopicOutcomes},
	} {
		t.Run("the "+c.service+" dies while "+c.topic+" takes nothing", func(t *testing.T) {
			refused := broker.Fault(kfake.Fault{
				Keys: []kmsg.Key{kmsg.Produce}, Topic: w.Kafka.Topic(c.topic), Err: kerr.NotLeaderForPartition, Count: -1,
			})
			load.Send(t, 15, 40)
			time.Sleep(1500 * time.Millisecond) // longer than it takes to commit what counts as done
			p := f.Of(c.service)[0]
			p.Kill()
			refused.Remove()
			p.Start()
			p.Ready(time.Minute) // nobody in this broker notices who dies while joining; the embedded one does
		})
	}
	t.Log(w.Judge(append(ids, load.IDs()...), 2*scenario.Patience))
	f.Stop()
}

// nothingCommitted is case K1 for the whole system: everybody dies after all work is done and before a single offset is committed. The
// next ones read everything again, decide everything again, and run nothing again.
func nothingCommitted(t *testing.T, w *testkit.World, f *testkit.Fleet, broker *streamtest.Broker, allow func()) []string {
	load := scenario.NewLoad(w, "again", nil)
	load.Send(t, 30, 40)
	ids := load.IDs()
	require.Len(t, ids, 30)
	w.Log.Ended(ids, scenario.Patience)
	for _, service := range testkit.Services {
		f.Of(service)[0].Kill()
	}
	before, decided := w.Sent(), len(w.Log.Records(event.TopicDecisions))
	for partition := range w.Partitions(event.TopicRequests) {
		require.Less(t, broker.Offset(t, "router", event.TopicRequests, partition), int64(1), "nothing was committed")
		require.Less(t, broker.Offset(t, "executor", event.TopicDecisions, partition), int64(1), "nothing was committed")
	}
	allow()
	for _, service := range testkit.Services {
		f.Of(service)[0].Start()
	}
	for _, service := range testkit.Services {
		f.Of(service)[0].Ready(time.Minute)
	}
	w.Drained(t, scenario.Patience, "router", event.TopicRequests, event.TopicAttempts)
	w.Drained(t, scenario.Patience, "executor", event.TopicDecisions)
	w.Drained(t, scenario.Patience, "profiler", event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes)
	require.Equal(t, before, w.Sent(), "nothing has reached an engine again")
	found := w.Judge(ids, scenario.Patience)
	t.Log(found)
	require.GreaterOrEqual(t, found.DecisionRecords, decided+len(ids), "each was decided once more, under the same id")
	return ids
}
