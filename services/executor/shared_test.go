package executor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/services/executor"
)

func partitions(t *testing.T, p *proc) float64 {
	t.Helper()
	return metric(t, p, "pointsman_executor_partitions")
}

func metric(t *testing.T, p *proc, name string) float64 {
	t.Helper()
	families, err := p.tel.Registry.Gather()
	require.NoError(t, err)
	sum := 0.0
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// two executors with half of the partitions each.
func (b *bench) two() (one, two *proc) {
	b.t.Helper()
	one, two = b.start(), b.start()
	require.Eventually(b.t, func() bool { return partitions(b.t, one) == 2 && partitions(b.t, two) == 2 }, patience, 20*time.Millisecond)
	return one, two
}

// A cap is never exceeded, counted at the engine, while two executors always have something to run, one of them dies in the midst, and
// a third stands still for so long that its partitions go to others, and wakes.
func TestCapsHoldAcrossExecutors(t *testing.T) {
	const most = 5
	b := newBench(t, 4)
	b.config = func(c *executor.Config) {
		c.Engines[0].Slots, c.Engines[0].SharedSlots = 50, most
		patient(c, 2*time.Second)
	}
	engine := b.servers[interactive]
	engine.on("Q", behaviour{rows: 1, slow: 50 * time.Millisecond})
	b.servers[batch].on("Q", behaviour{rows: 1}) // a read that moves often enough may end there
	tasks := 0
	until := func(what string, so func() bool) { // there is always something to run
		t.Helper()
		for began := time.Now(); !so(); time.Sleep(20 * time.Millisecond) {
			require.Less(t, time.Since(began), 3*patience, what)
			for tasks-len(engine.counts()) < 30 {
				b.decide(b.route(fmt.Sprintf("t%d", tasks), "Q"))
				tasks++
			}
		}
	}
	submitted := func(p *proc) float64 { return metric(t, p, "pointsman_executor_submissions_total") }
	one, two := b.two()
	defer func() { t.Logf("%d tasks", tasks) }()
	until("both take part", func() bool { return submitted(one) > 20 && submitted(two) > 20 })
	one.crash()
	three := b.start()
	until("the third has a part of it", func() bool { return submitted(three) > 20 })
	three.network.freeze()
	before := submitted(two)
	until("the second goes on without it", func() bool { return submitted(two) > before+20 })
	time.Sleep(3 * time.Second) // more than a session timeout
	three.network.thaw()
	before = submitted(three)
	until("the third is back", func() bool { return submitted(three) > before+20 })
	require.Eventually(t, func() bool { return len(b.outcomes()) == tasks }, 3*patience, 50*time.Millisecond)
	for id, o := range b.outcomes() {
		require.Equal(t, event.Succeeded, o[0].Status, id)
	}
	require.Equal(t, most, engine.mostAtOnce(), "no more, and the cap is made use of")
	for _, p := range []*proc{two, three} {
		require.Eventually(t, func() bool { return metric(t, p, "pointsman_executor_shared_slots_used") == 0 }, patience, 20*time.Millisecond, "all are free again")
	}
	b.committed()
	b.once()
}

// A tenant's cap holds over clusters and executors, and holds up nobody else.
func TestATenantsCap(t *testing.T) {
	b := newBench(t, 4)
	b.config = func(c *executor.Config) { c.Caps.Tenants = map[string]int{"tenant_a": 2} }
	hold := make(chan struct{})
	for _, s := range b.servers {
		s.on("HOLD", behaviour{rows: 1, hold: hold})
		s.on("Q", behaviour{rows: 1})
	}
	b.two()
	for i := range 8 {
		b.decide(b.route(fmt.Sprintf("t%d", i), "HOLD", func(d *event.RouteDecision) {
			if i%2 == 1 {
				d.Cluster = batch
			}
		}))
	}
	running := func() int {
		n := 0
		for i := range 8 {
			for _, s := range b.servers {
				if s.active(query.AttemptID(fmt.Sprintf("t%d", i), 1)) {
					n++
				}
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return running() >= 2 }, patience, 10*time.Millisecond)
	b.decide(b.route("other", "Q", func(d *event.RouteDecision) { d.Task.Tenant = "tenant_b"; d.TaskDigest = d.Task.Digest() }))
	require.Equal(t, event.Succeeded, b.outcome("other").Status, "another tenant passes those that wait")
	require.LessOrEqual(t, running(), 2)
	close(hold)
	for i := range 8 {
		require.Equal(t, event.Succeeded, b.outcome(fmt.Sprintf("t%d", i)).Status)
	}
	b.once()
}

// The slots of an executor that is gone come back once its attempts are ended by the next owner: case P8.
func TestSlotsOfADeadExecutorComeBack(t *testing.T) {
	b := newBench(t, 4)
	b.config = func(c *executor.Config) { c.Engines[0].Slots, c.Engines[0].SharedSlots = 50, 3 }
	b.servers[interactive].on("HOLD", behaviour{rows: 1, hold: make(chan struct{})})
	b.servers[interactive].on("Q", behaviour{rows: 1})
	dies := b.start()
	for i := range 3 {
		b.decide(b.route(fmt.Sprintf("h%d", i), "HOLD"))
	}
	for i := range 3 {
		b.change(fmt.Sprintf("h%d/1", i), "running")
	}
	b.decide(b.route("waits", "Q"))
	b.change("waits/1", "awaiting_slot")
	dies.crash()
	b.servers[interactive].on("HOLD", behaviour{rows: 1})
	begun := time.Now()
	b.start()
	require.Equal(t, event.Succeeded, b.outcome("waits").Status)
	t.Logf("the slots were free %s after the crash", time.Since(begun).Round(10*time.Millisecond))
	for i := range 3 {
		require.Equal(t, event.Succeeded, b.outcome(fmt.Sprintf("h%d", i)).Status)
	}
	b.committed()
	b.once()
}

// A storm of cancels needs no slot, while every slot is taken and many wait.
func TestCancelsNeedNoSlot(t *testing.T) {
	const n = 100
	b := newBench(t, 2)
	b.config = func(c *executor.Config) { c.Engines[0].Slots, c.Engines[0].SharedSlots = 4, 4 }
	b.servers[interactive].on("HOLD", behaviour{hold: make(chan struct{})})
	p := b.start()
	for i := range n {
		b.decide(b.route(fmt.Sprintf("t%d", i), "HOLD"))
	}
	require.Eventually(t, func() bool { return b.servers[interactive].mostAtOnce() == 4 }, patience, 10*time.Millisecond)
	for i := range n {
		b.decide(cancelOf(fmt.Sprintf("t%d", i)))
	}
	for i := range n {
		require.Equal(t, event.Cancelled, b.outcome(fmt.Sprintf("t%d", i)).Status)
	}
	require.Equal(t, 4, b.servers[interactive].mostAtOnce())
	require.Eventually(t, func() bool { return metric(t, p, "pointsman_executor_shared_slots_used") == 0 }, patience, 20*time.Millisecond)
	b.committed()
	b.once()
}

func TestCapConfig(t *testing.T) {
	for path, edit := range map[string]func(*executor.Config){
		"caps.tenant":            func(c *executor.Config) { c.Caps.Tenant = -1 },
		"caps.tenants.x":         func(c *executor.Config) { c.Caps.Tenants = map[string]int{"x": -1} },
		"engines[0].sharedSlots": func(c *executor.Config) { c.Engines[0].SharedSlots = -1 },
		"engines[0].queues.q.cap": func(c *executor.Config) {
			c.Engines[0].Queues = map[string]executor.QueueConfig{"q": {Cap: -1}}
		},
	} {
		c := executor.Default()
		c.Engines = []executor.EngineConfig{{Name: "x", Kind: "clickhouse", Slots: 1, URL: "http://127.0.0.1:1"}}
		edit(&c)
		require.ErrorContains(t, config.Validate(c), path)
	}
}
