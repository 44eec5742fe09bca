package scaler

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/probe"
	"github.com/pointsman/pointsman/pkg/signal"
)

func TestTheVerdictIsPatchedAtOnce(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world, _ *pool) {
		pass(10 * time.Second)
		require.Empty(t, w.written())
		w.tasks(1)
		pass(stepGap)
		require.Equal(t, []int32{1}, w.written(), "not at the next tick")
		require.EqualValues(t, 1, number(t, w.says(signal.Ready)), "and checked at once")
	})
}

func TestManyChangesAreFewReads(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world, _ *pool) {
		for i := range 1000 {
			w.tasks(i + 1)
			time.Sleep(time.Millisecond)
		}
		pass(time.Second)
		w.set(func() { require.Less(t, w.reads, 60) })
		require.Equal(t, []int32{1}, w.written())
	})
}

func TestSignalsNeverGrowOld(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world, _ *pool) {
		pass(time.Second)
		before := w.count()
		for range 30 {
			pass(time.Second)
			require.LessOrEqual(t, time.Since(w.last().At), 2*time.Second)
		}
		require.LessOrEqual(t, w.count()-before, 31, "and nothing is repeated without need")
		w.set(func() { w.failing = true })
		pass(5 * time.Second)
		w.set(func() { w.failing = false })
		pass(time.Second)
		require.LessOrEqual(t, time.Since(w.last().At), time.Second, "what could not be sent is sent as soon as it can")
	})
}

func TestATimeOutProvesNothing(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world, _ *pool) {
		w.set(func() { w.layers[2] = probe.Unknown })
		w.tasks(1)
		pass(20 * time.Second)
		require.EqualValues(t, 0, number(t, w.says(signal.Ready)), "it gives no readiness")
		w.set(func() { w.layers = up })
		pass(2 * time.Second)
		require.EqualValues(t, 1, number(t, w.says(signal.Ready)))

		w.set(func() { w.layers[2] = probe.Unknown })
		pass(7 * time.Second)
		require.EqualValues(t, 1, number(t, w.says(signal.Ready)), "and takes none, for a while")
		pass(15 * time.Second)
		require.Equal(t, signal.Absent, w.says(signal.Ready).State(), "after that nobody knows")

		w.set(func() { w.layers[1] = probe.Failed })
		pass(2 * time.Second)
		require.EqualValues(t, 0, number(t, w.says(signal.Ready)), "an answer of no is another matter")
		require.EqualValues(t, 0, number(t, w.says(signal.Healthy)))
		w.set(func() { w.layers = up })
		pass(2 * time.Second)
		require.EqualValues(t, 1, number(t, w.says(signal.Ready)))
		require.EqualValues(t, 1, w.size())
	})
}

func TestWakeTimeIsAnAverage(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world, _ *pool) {
		wake := func(d time.Duration) float64 {
			w.set(func() { w.layers[1] = probe.Failed })
			w.tasks(1)
			pass(d - 100*time.Millisecond)
			require.EqualValues(t, 0, number(t, w.says(signal.Ready)))
			w.set(func() { w.layers = up })
			pass(2 * time.Second)
			ms := number(t, w.says(signal.WakeMs))
			w.tasks(0)
			pass(3 * time.Minute)
			require.Zero(t, w.size())
			return ms
		}
		require.Equal(t, signal.Absent, w.says(signal.WakeMs).State())
		require.InDelta(t, 20_000, wake(20*time.Second), 1100)
		require.InDelta(t, 0.3*50_000+0.7*20_000, wake(50*time.Second), 1500)
	})
}

func TestReaping(t *testing.T) {
	// asleep runs the usual story up to the moment where the pool may go: two minutes without work.
	story := func(t *testing.T, w *world) {
		w.tasks(3)
		pass(5 * time.Second)
		require.EqualValues(t, 1, w.size())
		w.tasks(0)
		pass(50 * time.Second)
		require.EqualValues(t, 1, w.size(), "not idle long enough")
	}
	for name, c := range map[string]struct {
		meddle func(w *world)
		gone   bool
		why    string
	}{
		"idle":                          {func(*world) {}, true, "nothing speaks against it"},
		"no proof":                      {func(w *world) { w.verifyErr = errors.New("no broker") }, false, "what was not read may be work"},
		"the topics are not read":       {func(w *world) { w.complete = false }, false, "unknown is not idle"},
		"work comes at the last moment": {func(w *world) { w.onVerify = func() { w.open = 1 } }, false, "a claim between check and patch wins"},
		"others use the engine":         {func(w *world) { w.running = signal.Of(1, signal.Count, "e", time.Now()) }, false, "their query counts too"},
		"the control plane is away":     {func(w *world) { w.readErr = errors.New("refused") }, false, "nobody knows how large it is"},
		"writes fail":                   {func(w *world) { w.writeErr = errors.New("forbidden") }, false, "it is tried again, and nothing breaks"},
		"somebody else scales it too":   {func(w *world) { w.onScale = func() { w.replicas++ } }, false, "it was decided on another size"},
		"it leads no more":              {func(w *world) { w.leads = false }, false, "another acts"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(t *testing.T, w *world, _ *pool) {
				story(t, w)
				w.set(func() { c.meddle(w) })
				pass(40 * time.Second)
				require.Equal(t, c.gone, w.size() == 0, c.why)
				// And back to normal.
				w.set(func() {
					w.verifyErr, w.complete, w.onVerify, w.readErr, w.writeErr, w.onScale, w.leads = nil, true, nil, nil, nil, nil, true
					w.running, w.open = signal.Of(0, signal.Count, "e", time.Now()), 0
				})
				pass(3 * time.Minute)
				require.Zero(t, w.size(), "in the end it sleeps")
			})
		})
	}
}

func TestADrainIsAnnouncedAndTakenBack(t *testing.T) {
	inWorld(t, func(c *PoolConfig) { c.DrainFor = 10 * time.Second }, func(t *testing.T, w *world, _ *pool) {
		w.tasks(1)
		pass(5 * time.Second)
		w.tasks(0)
		pass(65 * time.Second)
		require.EqualValues(t, 0, number(t, w.says(signal.Ready)), "going")
		require.EqualValues(t, 1, number(t, w.says(signal.Replicas)), "and still there")
		w.tasks(1)
		pass(time.Second)
		require.EqualValues(t, 1, number(t, w.says(signal.Ready)), "taken back")
		pass(time.Minute)
		require.Equal(t, []int32{1}, w.written())
	})
}

// S9: an engine that never answers cannot pin the pool for ever, and cannot have it reaped at once.
func TestAMuteEngine(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world, p *pool) {
		w.set(func() { w.layers[1], w.running, w.loadErr = probe.Unknown, signal.Value{}, errors.New("time-out") })
		w.tasks(1)
		pass(time.Minute)
		w.tasks(0)
		pass(10 * time.Minute)
		require.EqualValues(t, 1, w.size())
		require.True(t, p.status().Plan.Alarm, "a person is told")
		pass(10 * time.Minute)
		require.Zero(t, w.size())
	})
}

// S8: the backlog of a start raises nothing; a queue that stays long after it raises by steps, up to the cap.
func TestQueuePressure(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world, _ *pool) {
		w.set(func() { w.queue = signal.Of(9, signal.Count, "engine", time.Now()) })
		w.tasks(20)
		pass(29 * time.Second)
		require.Equal(t, []int32{1}, w.written())
		pass(2 * time.Second)
		require.Equal(t, []int32{1, 2}, w.written())
		pass(10 * time.Minute)
		require.Equal(t, []int32{1, 2, 3, 4}, w.written(), "and never over the cap")
	})
	inWorld(t, func(c *PoolConfig) { c.RaiseOnQueue = false }, func(t *testing.T, w *world, _ *pool) {
		w.set(func() { w.queue = signal.Of(9, signal.Count, "engine", time.Now()) })
		w.tasks(20)
		pass(10 * time.Minute)
		require.Equal(t, []int32{1}, w.written(), "more nodes would not help")
	})
}

func TestAFailedRaiseIsTriedAgain(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world, _ *pool) {
		w.set(func() { w.writeErr = errors.New("the API server is away") })
		w.tasks(1)
		pass(10 * time.Second)
		require.Zero(t, w.size())
		w.set(func() { w.writeErr = nil })
		pass(2 * time.Second)
		require.Equal(t, []int32{1}, w.written())
	})
}

func TestWhoDoesNotLeadIsQuiet(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world, _ *pool) {
		w.set(func() { w.leads = false })
		before := w.count()
		w.tasks(5)
		pass(time.Minute)
		require.Empty(t, w.written())
		require.LessOrEqual(t, w.count(), before+1)
		w.set(func() { w.leads = true })
		pass(2 * time.Second)
		require.Equal(t, []int32{1}, w.written())
	})
}
