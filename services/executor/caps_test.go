package executor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/executor"
)

// patient are executors that keep their partitions on a loaded machine, too.
func patient(c *executor.Config, session time.Duration) {
	c.Group.SessionTimeout, c.Group.HeartbeatEvery = session, session/10
}

// atEngine are the Tasks that run at a cluster.
func (b *bench) atEngine(cluster string) (ids []string) {
	s := b.servers[cluster]
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.running {
		task, _, _ := strings.Cut(id, "/")
		ids = append(ids, task)
	}
	return ids
}

// One file is edited while two executors run: a lower cap admits nothing, in either, before fewer run than it allows; a higher one admits at
// once. So does the number of slots of one process.
func TestALowerCapWithoutARestart(t *testing.T) {
	const tasks = 20
	b := newBench(t, 4)
	var shared, local atomic.Int64
	shared.Store(8)
	local.Store(50)
	b.config = func(c *executor.Config) {
		c.Engines[0].Slots, c.Engines[0].SharedSlots, c.Caps.Reload = 50, 8, 20*time.Millisecond
		patient(c, patience)
	}
	var broken atomic.Bool
	b.again = func() (executor.Config, error) {
		c := b.cfg()
		c.Engines[0].SharedSlots, c.Engines[0].Slots = int(shared.Load()), int(local.Load())
		if broken.Load() {
			return c, errors.New("no YAML")
		}
		return c, nil
	}
	release := make(chan struct{})
	b.servers[interactive].on("HOLD", behaviour{rows: 1, hold: release})
	one, two := b.two()
	for i := range tasks {
		b.decide(b.route(fmt.Sprintf("t%d", i), "HOLD"))
	}
	runs := func() int { return len(b.atEngine(interactive)) }
	held := func(n int) func() bool {
		return func() bool {
			return metric(t, one, "pointsman_executor_shared_slots_used") == float64(n) && metric(t, two, "pointsman_executor_shared_slots_used") == float64(n)
		}
	}
	require.Eventually(t, func() bool { return held(8)() && runs() == 8 }, patience, 10*time.Millisecond)

	shared.Store(3)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(b.broker.Records(t, event.TopicSlots), func(r *kgo.Record) bool {
			return strings.Contains(string(r.Value), `"kind":"caps"`) && strings.Contains(string(r.Value), `{"clusters":{"interactive":3}}`)
		})
	}, patience, 10*time.Millisecond)
	last, cancelled := 8, 0
	for last > 3 { // one after the other is taken back
		id := b.atEngine(interactive)[0]
		cancelled++
		b.decide(cancelOf(id))
		require.Equal(t, event.Cancelled, b.outcome(id).Status)
		for range 5 {
			now := runs()
			require.Less(t, now, max(last, 4), "nothing takes the place of what ends")
			time.Sleep(10 * time.Millisecond)
		}
		last = runs()
	}
	require.Eventually(t, func() bool { return held(3)() && runs() == 3 }, patience, 10*time.Millisecond)
	broken.Store(true)
	shared.Store(20)
	time.Sleep(200 * time.Millisecond)
	require.True(t, held(3)(), "a configuration with faults changes nothing")
	broken.Store(false)
	require.Eventually(t, func() bool { return runs() == tasks-cancelled }, patience, 10*time.Millisecond, "a higher cap admits at once")

	local.Store(2)
	require.Eventually(t, func() bool { return metric(t, one, "pointsman_executor_slots") == 2+4 }, patience, 10*time.Millisecond)
	local.Store(70)
	require.Eventually(t, func() bool { return metric(t, one, "pointsman_executor_slots") == 50+4 }, patience, 10*time.Millisecond, "no more than at its start")
	close(release)
	for i := range tasks {
		b.outcome(fmt.Sprintf("t%d", i))
	}
	b.committed()
	b.once()
}

// While the slots can't be had, attempts that a cap applies to wait and say why, others run, and nothing is lost.
func TestSlotsThatCantBeHad(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) {
		c.Engines[0].SharedSlots = 2
		patient(c, patience)
	}
	for _, s := range b.servers {
		s.on("Q", behaviour{rows: 1})
	}
	b.start()
	b.decide(b.route("before", "Q"))
	require.Equal(t, event.Succeeded, b.outcome("before").Status)
	fault := b.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: event.TopicSlots, Err: kerr.NotLeaderForPartition, Count: -1})
	b.decide(b.route("waits", "Q"), b.route("goes", "Q", toBatch), b.route("gone", "Q"))
	require.Equal(t, event.Succeeded, b.outcome("goes").Status, "no cap applies to it")
	require.Eventually(t, func() bool {
		c := b.changes("waits/1")
		return len(c) > 1 && strings.Contains(c[len(c)-1].WaitsFor, "can't be had: the broker has not answered")
	}, patience, 10*time.Millisecond)
	b.decide(cancelOf("gone"))
	require.Equal(t, event.Cancelled, b.outcome("gone").Status)
	fault.Remove()
	require.Equal(t, event.Succeeded, b.outcome("waits").Status)
	b.committed()
	b.once()
}

// An attempt that waits for a cap says which.
func TestWhatAnAttemptWaitsFor(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) {
		c.Engines[0].Queues, c.Caps.Tenant = map[string]executor.QueueConfig{"default": {Cap: 1}}, 1
		patient(c, patience)
	}
	hold := make(chan struct{})
	b.servers[interactive].on("HOLD", behaviour{rows: 1, hold: hold})
	b.start()
	b.decide(b.route("runs", "HOLD"))
	b.change("runs/1", "running")
	for _, c := range b.changes("runs/1") {
		require.Empty(t, c.WaitsFor, "who need not wait is not said to")
	}
	b.decide(b.route("waits", "HOLD"))
	require.Eventually(t, func() bool {
		c := b.changes("waits/1")
		return len(c) > 1 && c[1].WaitsFor == "queue default has 1 of 1, tenant tenant_a has 1 of 1" && c[1].QueuePosition == 1
	}, patience, 10*time.Millisecond)
	close(hold)
	require.Equal(t, event.Succeeded, b.outcome("waits").Status)
}

// An executor stands still with a slot that it has not used, another has its partitions, and it wakes: in between the slot is not its own.
func TestASleeperLosesItsSlot(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) {
		c.Engines[0].SharedSlots = 1
		patient(c, 2*time.Second)
	}
	hold := make(chan struct{})
	b.servers[interactive].on("Q", behaviour{rows: 1, hold: hold})
	b.servers[batch].on("Q", behaviour{rows: 1}) // a read that moves often enough may end there
	sleeper := b.start()
	at, release := sleeper.steps.stopAt(executor.StepClaiming, "t0/1")
	b.decide(b.route("t0", "Q"))
	reached(t, at)
	sleeper.network.freeze()
	b.start()
	for i := 1; i < 4; i++ {
		b.decide(b.route(fmt.Sprintf("t%d", i), "Q"))
	}
	require.Eventually(t, func() bool { return len(b.atEngine(interactive)) == 1 }, patience, 10*time.Millisecond)
	sleeper.network.thaw()
	release()
	time.Sleep(time.Second) // what the sleeper still does, it does now
	require.Len(t, b.atEngine(interactive), 1)
	close(hold)
	for i := range 4 {
		o := b.outcome(fmt.Sprintf("t%d", i))
		require.Equal(t, event.Succeeded, o.Status, "%s: %v", o.TaskID, o.Failure)
	}
	require.Equal(t, 1, b.servers[interactive].mostAtOnce())
	b.committed()
	b.once()
}

// Half of a file that is being written may be a configuration without caps.
func TestAConfigurationThatChangesAsItIsRead(t *testing.T) {
	b := newBench(t, 1)
	b.config = func(c *executor.Config) { c.Engines[0].SharedSlots, c.Caps.Reload = 8, 5*time.Millisecond }
	var looks atomic.Int64
	b.again = func() (executor.Config, error) {
		c := b.cfg()
		if looks.Add(1)%2 == 0 {
			c.Engines[0].SharedSlots = 0
		}
		return c, nil
	}
	b.start()
	capsOf := func() (caps []int) {
		for _, rec := range b.broker.Records(t, event.TopicSlots) {
			var r event.SlotRecord
			require.NoError(t, json.Unmarshal(rec.Value, &r))
			if r.Kind == event.SlotCaps {
				caps = append(caps, r.Caps.Clusters[interactive])
			}
		}
		return caps
	}
	require.Eventually(t, func() bool { return len(capsOf()) > 0 && looks.Load() > 20 }, patience, 10*time.Millisecond)
	require.Equal(t, []int{8}, capsOf())
}
