package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/signal"
)

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// latchPolicy is the article's spill with hysteresis: a query spills when the queue has been long for 5 s, and no longer
// when it has been short for 30 s.
const latchPolicy = `
engines:
  interactive: {kind: dremio, slots: 8}
  batch: {kind: spark}
latches:
  saturated: {watch: interactive_queue_wait_ms, enter_gte: 2000, enter_hold_seconds: 5, leave_lt: 500, leave_hold_seconds: 30, absent_after_seconds: 20, keep_seconds: 300}
  sick: {watch: interactive_healthy, enter: false, enter_samples: 2, leave: true, leave_samples: 3, leave_hold_seconds: 0}
rules:
  - {name: quarantine, when: {sick: true}, route: batch}
  - {name: spill, when: {saturated: true, client_tag: [interactive], estimated_bytes_lt: 500 GB}, route: batch, notify_client: true}
  - {name: calm, when: {saturated: false}, tags: [calm]}
  - {name: default, route: interactive}
`

func loadText(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Load("p.yaml", []byte(text))
	require.NoError(t, err)
	return p
}

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func seen(at time.Time, values map[signal.Name]float64) signal.Observation {
	o := signal.Observation{Cluster: "interactive", Source: "test", At: at, Values: map[signal.Name]signal.Value{}}
	for name, v := range values {
		o.Values[name] = signal.Of(v, "", "test", at)
	}
	return o
}

func wait(seconds, ms float64) signal.Observation {
	return seen(at(seconds), map[signal.Name]float64{signal.EstWaitMs: ms})
}

func TestLatchHoldsBeforeItSwitches(t *testing.T) {
	book := policy.NewLatchBook(loadText(t, latchPolicy))
	state := func() policy.Latch { return book.States()["saturated"] }
	second := 0.0
	feed := func(n int, ms float64) {
		for range n {
			book.Observe(wait(second, ms))
			second++
		}
	}
	require.False(t, state().Known, "nothing was seen")
	feed(31, 100)
	require.True(t, state().Known)
	require.False(t, state().On)
	feed(5, 2500)
	require.False(t, state().On, "for 4 s only")
	feed(1, 2500)
	require.True(t, state().On)
	require.Equal(t, at(second-1), state().Since)
	feed(20, 1000)
	require.True(t, state().On, "between the edges it stays")
	feed(30, 100)
	require.True(t, state().On, "for 29 s only")
	feed(1, 800)
	feed(30, 100)
	require.True(t, state().On, "it was not short all the time")
	feed(1, 100)
	require.False(t, state().On)

	require.False(t, book.Observe(seen(at(second), map[signal.Name]float64{signal.Running: 3})), "no latch watches it")
	before := state()
	book.Observe(wait(3, 9000))
	require.Equal(t, before, state(), "what comes late changes nothing")
}

func TestLatchByNumberOfSamples(t *testing.T) {
	book := policy.NewLatchBook(loadText(t, latchPolicy))
	for i, c := range []struct {
		healthy   float64
		known, on bool
	}{{0, false, false}, {0, true, true}, {1, true, true}, {1, true, true}, {0, true, true}, {1, true, true}, {1, true, true}, {1, true, false}, {0, true, false}} {
		book.Observe(seen(at(float64(i)), map[signal.Name]float64{signal.Healthy: c.healthy}))
		got := book.States()["sick"]
		require.Equal(t, c.known, got.Known, i)
		require.Equal(t, c.on, got.On, i)
	}
}

// TestLatchAndMissingSignals: P10. Without signals a latch stays as it is, then it is missing, and missing is neither on nor
// off; after a gap it must earn its state anew.
func TestLatchAndMissingSignals(t *testing.T) {
	p := loadText(t, latchPolicy)
	book := policy.NewLatchBook(p)
	rule := func(now time.Time) (string, []string) {
		f := factsOf(t, p, known{"client_tag": ws("interactive"), "estimated_bytes": n(1e9)})
		for i := range p.Latches {
			f.SetLatch(i, p.Latches[i].At(book.States()[p.Latches[i].Name], now))
		}
		m := p.Match(f)
		return m.Rule.Name, m.Tags
	}
	name, tags := rule(at(0))
	require.Equal(t, "default", name)
	require.Empty(t, tags, "what is not known is not off")
	for s := range 10 {
		book.Observe(wait(float64(s), 3000))
	}
	name, _ = rule(at(9))
	require.Equal(t, "spill", name)
	name, _ = rule(at(9 + 20))
	require.Equal(t, "spill", name, "a signal that is late keeps the state")
	name, _ = rule(at(9 - 20.1))
	require.Equal(t, "default", name, "one that was observed in the future does not")
	name, tags = rule(at(9 + 20.1))
	require.Equal(t, "default", name, "one that is gone does not")
	require.Empty(t, tags)

	missing := signal.Observation{Cluster: "interactive", At: at(10), Values: map[signal.Name]signal.Value{signal.EstWaitMs: signal.Missing("test")}}
	require.False(t, book.Observe(missing), "an absent value is no observation")
	book.Observe(wait(60, 100))
	name, tags = rule(at(60))
	require.Equal(t, "default", name)
	require.Empty(t, tags, "one good sample after a gap is not enough for off")
	for s := 61; s <= 90; s++ {
		book.Observe(wait(float64(s), 100))
	}
	_, tags = rule(at(90))
	require.Equal(t, []string{"calm"}, tags)
}

func TestLatchForgetsWhatNothingConfirms(t *testing.T) {
	book := policy.NewLatchBook(loadText(t, latchPolicy))
	for s := range 10 {
		book.Observe(wait(float64(s), 3000))
	}
	for s := 10; s <= 309; s++ {
		book.Observe(wait(float64(s), 1000))
	}
	require.True(t, book.States()["saturated"].On)
	book.Observe(wait(310, 1000))
	require.False(t, book.States()["saturated"].Known, "300 s between the edges")
}

func TestWatchedFacts(t *testing.T) {
	for name, c := range map[string]struct {
		fact   policy.PoolFact
		values map[signal.Name]float64
		want   float64
		ok     bool
	}{
		"predicted":          {policy.PoolQueueWaitMs, map[signal.Name]float64{signal.EstWaitMs: 7, signal.Queued: 9}, 7, true},
		"empty queue":        {policy.PoolQueueWaitMs, map[signal.Name]float64{signal.Queued: 0}, 0, true},
		"queue and rate":     {policy.PoolQueueWaitMs, map[signal.Name]float64{signal.Queued: 10, signal.DonePerSecond: 4}, 2500, true},
		"queue without rate": {policy.PoolQueueWaitMs, map[signal.Name]float64{signal.Queued: 10}, 0, false},
		"nothing done":       {policy.PoolQueueWaitMs, map[signal.Name]float64{signal.Queued: 10, signal.DonePerSecond: 0}, 0, false},
		"load":               {policy.PoolLoad, map[signal.Name]float64{signal.Running: 3, signal.Queued: 5, signal.Slots: 4}, 2, true},
		"load without slots": {policy.PoolLoad, map[signal.Name]float64{signal.Running: 3, signal.Queued: 5}, 0, false},
		"memory":             {policy.PoolMemoryUsedBytes, map[signal.Name]float64{signal.MemoryUsedBytes: 5}, 5, true},
	} {
		t.Run(name, func(t *testing.T) {
			n, when, ok := policy.Watched(seen(at(3), c.values), c.fact)
			require.Equal(t, c.ok, ok)
			if ok {
				require.Equal(t, c.want, n)
				require.Equal(t, at(3), when)
			}
		})
	}
}

// TestLatchDependsOnTheRecentPastAlone: whoever begins to read later has the same state, once it has seen as much as the
// latch may depend on. So routers that start at different times agree.
func TestLatchDependsOnTheRecentPastAlone(t *testing.T) {
	p := loadText(t, latchPolicy)
	rapid.Check(t, func(t *rapid.T) {
		long, short := policy.NewLatchBook(p), policy.NewLatchBook(p)
		level := rapid.SampledFrom([]float64{100, 1000, 3000})
		var all []signal.Observation
		second := 0.0
		for len(all) < 900 {
			ms, n := level.Draw(t, "ms"), rapid.IntRange(1, 60).Draw(t, "n")
			for range n {
				second += rapid.SampledFrom([]float64{1, 1, 1, 2, 25}).Draw(t, "step")
				all = append(all, wait(second, ms))
			}
		}
		from := rapid.IntRange(0, len(all)/2).Draw(t, "from")
		begun := all[from].At
		for i, o := range all {
			long.Observe(o)
			if i < from {
				continue
			}
			short.Observe(o)
			// 300 s keep, 30 s hold, and the gap before the first observation.
			if o.At.Sub(begun) > (300+30+25)*time.Second {
				a, b := long.States()["saturated"], short.States()["saturated"]
				if a.Known != b.Known || a.On != b.On {
					t.Fatalf("at %s: %+v and %+v", o.At.Sub(start), a, b)
				}
			}
		}
	})
}
