//go:build real

package real_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/test/real/kafka"
	"github.com/pointsman/pointsman/test/testkit"
)

// TestAThreeMinuteAttempt runs reads of three minutes on one executor, 30 times its session timeout and 18 times its rebalance timeout. A
// second executor joins while they run, and leaves. What stays where it is ends in its first attempt; what moved is stopped at the engine
// and run again by its new owner, and no attempt is submitted twice.
func TestAThreeMinuteAttempt(t *testing.T) {
	t.Parallel()
	const long = 3 * time.Minute
	c := kafka.Start(t, kafka.Options{})
	w := testkit.New(t, testkit.Options{Brokers: c.Addrs()})
	f := w.Fleet(testkit.FleetOptions{SessionTimeout: 6 * time.Second})
	f.Start(testkit.Services...)
	ids := onPartitions(t, 4)
	for i, id := range ids {
		data, err := json.Marshal(map[string]any{
			"id": id, "tenant": "tenant_a", "slaSeconds": 900, "timeoutSeconds": 1200,
			"sql": fmt.Sprintf("SELECT sum(sleepEachRow(0.5)), %d FROM numbers(%d) SETTINGS max_block_size = 1", i, int(2*long.Seconds())),
		})
		require.NoError(t, err)
		w.Produce(&kgo.Record{Key: []byte(id), Value: data})
	}
	for _, id := range ids {
		w.Log.Attempt(id, 1, "running", time.Minute)
	}
	time.Sleep(15 * time.Second)
	f.Start("executor")
	time.Sleep(15 * time.Second)
	second := f.Of("executor")[1]
	require.Zero(t, second.Stop(40*time.Second))
	f.Forget(second)

	stayed := 0
	for _, id := range ids {
		o := w.Log.Outcome(id, 8*time.Minute)
		require.Equal(t, event.Succeeded, o.Status, "%+v", o.Failure)
		require.LessOrEqual(t, o.Attempts, 3, "it moves when the second one comes, and when it leaves")
		require.NotNil(t, o.Stats.ExecMs)
		require.GreaterOrEqual(t, *o.Stats.ExecMs, long.Milliseconds())
		if o.Attempts == 1 {
			stayed++
		}
		t.Logf("%s: %d attempts, %d ms", id, o.Attempts, o.TotalMs)
	}
	require.Positive(t, stayed, "half of the partitions never moved")
	require.Less(t, stayed, len(ids), "and half did")
	found := w.Judge(ids, 5*time.Minute)
	t.Log(found)
	require.LessOrEqual(t, found.Leases, partitions+2*partitions/2, "no lease has changed hands but when the second one came and left")
	f.Stop()
}

// partitions are those of topics/decisions.yaml.
const partitions = 6

// onPartitions are ids of Tasks on partitions of their own.
func onPartitions(t *testing.T, n int) (ids []string) {
	t.Helper()
	taken := map[int32]bool{}
	for i := 0; len(ids) < n; i++ {
		id := fmt.Sprintf("long-%d", i)
		if p := stream.PartitionOf(event.TopicDecisions, id, partitions); !taken[p] {
			taken[p] = true
			ids = append(ids, id)
		}
	}
	return ids
}
