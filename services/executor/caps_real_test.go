//go:build real

package executor_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/services/executor"
	"github.com/pointsman/pointsman/test/real/kafka"
)

// realBench is a bench with Apache Kafka for a broker.
func realBench(t *testing.T) *bench {
	cluster := kafka.Start(t, kafka.Options{})
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.ClientID = cluster.Addrs(), "test"
	specs, err := topicadmin.Specs()
	require.NoError(t, err)
	deps := stream.Deps{Log: slog.New(slog.DiscardHandler), MaxBytes: topicadmin.MaxBytes(specs)}
	_, err = topicadmin.Apply(t.Context(), cfg, deps, specs, topicadmin.Options{MinInSync: 1})
	require.NoError(t, err)
	producer, err := stream.NewProducer(cfg, deps, "router")
	require.NoError(t, err)
	t.Cleanup(producer.Close)
	return &bench{
		t: t, broker: &streamtest.Broker{Config: cfg, Deps: deps}, producer: producer, results: t.TempDir(),
		servers: map[string]*server{interactive: newServer(), batch: newServer()},
	}
}

// TestCapsOnRealKafka shows what a cap costs an attempt that has room, and that the cap holds when there is none.
func TestCapsOnRealKafka(t *testing.T) {
	const most, pairs, crowd = 5, 300, 200
	b := realBench(t)
	b.config = func(c *executor.Config) {
		c.Group.SessionTimeout, c.Group.HeartbeatEvery = 6*time.Second, time.Second
		c.Engines[0].Slots, c.Engines[0].SharedSlots = 50, most
	}
	var mu sync.Mutex
	began, submitted := map[string]time.Time{}, map[string]time.Time{}
	b.effects = func(_ context.Context, id string, _ attempt.State, _ attempt.Event, effect attempt.Effect) {
		mu.Lock()
		defer mu.Unlock()
		switch effect {
		case attempt.TakeSlot:
			began[id] = time.Now()
		case attempt.Submit:
			submitted[id] = time.Now()
		}
	}
	for _, s := range b.servers {
		s.on("Q", behaviour{rows: 1})
		s.on("SLOW", behaviour{rows: 1, slow: 20 * time.Millisecond})
	}
	one := b.start()
	ran := func(id string) bool {
		mu.Lock()
		defer mu.Unlock()
		return !submitted[id+"/1"].IsZero()
	}
	took := map[bool][]time.Duration{}
	for i := range 2*pairs + 40 {
		capped, id := i%2 == 0, fmt.Sprintf("t%d", i)
		b.decide(b.route(id, "Q", func(d *event.RouteDecision) {
			if !capped {
				d.Cluster = batch
			}
		}))
		require.Eventually(t, func() bool { return ran(id) }, patience, time.Millisecond)
		if i >= 40 { // the first ones warm up
			mu.Lock()
			took[capped] = append(took[capped], submitted[id+"/1"].Sub(began[id+"/1"]))
			mu.Unlock()
		}
	}
	at := func(capped bool, p float64) time.Duration {
		slices.Sort(took[capped])
		return took[capped][int(p*float64(len(took[capped])))].Round(10 * time.Microsecond)
	}
	t.Logf("from taking a slot to the submission, %d attempts each: p50 %s, p99 %s with a cap; p50 %s, p99 %s without", pairs,
		at(true, 0.5), at(true, 0.99), at(false, 0.5), at(false, 0.99))
	require.Less(t, at(true, 0.5), 3*at(false, 0.5)+10*time.Millisecond, "one more write and its read-back")

	two := b.start()
	require.Eventually(t, func() bool { return partitions(t, one) == 3 && partitions(t, two) == 3 }, 2*patience, 20*time.Millisecond)
	before := metric(t, one, "pointsman_executor_outcomes_total")
	for i := range crowd {
		b.decide(b.route(fmt.Sprintf("crowd%d", i), "SLOW"))
	}
	ended := func() float64 {
		return metric(t, one, "pointsman_executor_outcomes_total") - before + metric(t, two, "pointsman_executor_outcomes_total")
	}
	require.Eventually(t, func() bool { return ended() == crowd }, 4*patience, 20*time.Millisecond)
	require.Equal(t, most, b.servers[interactive].mostAtOnce(), "with two executors")
	for id, n := range b.servers[interactive].counts() {
		require.True(t, n == 1 || !strings.HasPrefix(id, "crowd"), "%s was submitted %d times", id, n)
	}
	require.Eventually(t, func() bool { return metric(t, two, "pointsman_executor_shared_slots_used") == 0 }, patience, 20*time.Millisecond)
}
