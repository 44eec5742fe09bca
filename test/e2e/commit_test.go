package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/test/e2e/scenario"
	"github.com/pointsman/pointsman/test/testkit"
)

// TestNothingWasCommitted is case K1 for the whole system: everybody dies after all work is done and before a single offset is
// committed. The next ones read everything again, decide everything again, and run nothing again.
func TestNothingWasCommitted(t *testing.T) {
	broker := streamtest.Start(t)
	w := testkit.New(t, testkit.Options{Brokers: broker.ListenAddrs()})
	refused := broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: -1})
	f := w.Fleet(testkit.FleetOptions{})
	f.Start(testkit.Services...)
	load := scenario.NewLoad(w, "again", nil)
	load.Send(t, 30, 40)
	ids := load.IDs()
	w.Log.Ended(ids, scenario.Patience)
	for _, service := range testkit.Services {
		f.Of(service)[0].Kill()
	}
	before, decided := w.Sent(), len(w.Log.Records(event.TopicDecisions))
	for _, group := range []string{"router", "executor"} {
		for _, topic := range []string{event.TopicRequests, event.TopicDecisions} {
			require.Less(t, broker.Offset(t, group, topic, 0), int64(1), "nothing was committed")
		}
	}
	refused.Remove()
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
	require.Len(t, ids, 30)
	f.Stop()
}
