package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/test/testkit"
)

// Trace follows two Tasks whose producers have begun a trace, one by HTTP and one on the topic, and requires that every record of
// them carries that trace: request, decision, changes of the attempt and Outcome (the ledger is the executor's own and carries none). One goes over a pool's memory limit, so that
// the way back from the executor to the other pool is part of it. It returns the trace ids and the Tasks' ids.
func Trace(t *testing.T, w *testkit.World, api *testkit.API) (traces, ids []string) {
	const (
		byHTTP  = "4bf92f3577b34da6a3ce929d0e0e4736"
		byTopic = "0af7651916cd43dd8448eb211c80319c"
	)
	parent := func(trace string) string { return "00-" + trace + "-00f067aa0ba902b7-01" }
	// Its fingerprint is another one than that of wide, which the main path needs without a history.
	other := strings.ReplaceAll(wide, "l_partkey", "l_suppkey")
	answer := api.Wait(other, "traceparent", parent(byHTTP))
	follow(t, w, answer.TaskID, byHTTP)
	rec := w.Produce(&kgo.Record{
		Value: []byte(small(`,"timeoutSeconds":60`)), Headers: []kgo.RecordHeader{{Key: "traceparent", Value: []byte(parent(byTopic))}},
	})[0]
	id := query.IDFromRecord(event.TopicRequests, rec.Partition, rec.Offset)
	w.Log.Outcome(id, Patience)
	follow(t, w, id, byTopic)
	return []string{byHTTP, byTopic}, []string{answer.TaskID, id}
}

func follow(t *testing.T, w *testkit.World, id, trace string) {
	t.Helper()
	w.Log.CatchUp(time.Minute)
	n := map[string]int{}
	for _, topic := range []string{event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes} {
		for _, rec := range w.Log.Records(topic) {
			if !testkit.Concerns(rec, id) {
				continue
			}
			n[topic]++
			require.Contains(t, testkit.Header(rec, "traceparent"), trace, "%s[%d]@%d, %s", topic, rec.Partition, rec.Offset, testkit.Header(rec, "ce_type"))
		}
	}
	require.GreaterOrEqual(t, n[event.TopicDecisions], 1)
	require.GreaterOrEqual(t, n[event.TopicAttempts], 3)
	require.Equal(t, 1, n[event.TopicOutcomes])
}
