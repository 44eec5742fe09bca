package scenario

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/test/testkit"
)

// Pace says how hard a run is.
type Pace struct {
	// Burst Tasks are sent around each blow, at Rate a second.
	Burst int
	Rate  float64
	// Session is the session timeout of the groups; a process is stopped for longer than that.
	Session time.Duration
	// Tries is how often all executors are stopped in order to hit the moment between a claim and its submission.
	Tries int
}

// held is how long a service has held what it has read when it has most to lose: the profiler collects for a second before it stores,
// and the executor has Tasks on their way for longer than it takes to commit offsets.
var held = map[string]time.Duration{"profiler": 600 * time.Millisecond, "executor": 1200 * time.Millisecond}

// Survive kills and stops each of the five services in turn, under load, and restarts those it has killed. It returns the ids of all
// Tasks that were taken in.
func Survive(t *testing.T, w *testkit.World, f *testkit.Fleet, pace Pace) []string {
	load := NewLoad(w, "load", func() string { return f.Of("intake")[0].HTTP })
	// under strikes somewhere in the first half of a burst, or later by a while.
	under := func(t *testing.T, later time.Duration, blow func()) {
		t.Helper()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			load.Send(t, pace.Burst, pace.Rate)
		}()
		time.Sleep(later + time.Duration((0.1+0.4*rand.Float64())*float64(pace.Burst)/pace.Rate*float64(time.Second)))
		blow()
		<-sent
	}
	for _, service := range testkit.Services {
		ok := t.Run("SIGKILL "+service, func(t *testing.T) {
			p := f.Of(service)[0]
			under(t, held[service], p.Kill)
			time.Sleep(300 * time.Millisecond)
			p.Start()
		})
		if !ok {
			return load.IDs()
		}
	}
	for _, service := range testkit.Services {
		t.Run("SIGSTOP "+service, func(t *testing.T) {
			p := f.Of(service)[0]
			under(t, held[service], p.Pause)
			time.Sleep(pace.Session + time.Second)
			p.Resume()
			time.Sleep(500 * time.Millisecond)
			if !p.Running() { // it may end, with the code that says so, when it finds that it was replaced
				require.Equal(t, lifecycle.ExitFenced, p.ExitCode(), p.Tail(20))
				p.Start()
			}
		})
	}
	for _, trigger := range []struct {
		name string
		set  func(*testkit.World, func())
	}{{"at a claim", atClaim}, {"at a dial", atDial}} {
		for i := range pace.Tries {
			hit := 0
			t.Run("SIGSTOP all executors "+trigger.name, func(t *testing.T) { hit = zombies(t, w, f, pace, load, trigger.set) })
			if hit > 0 || t.Failed() {
				t.Logf("%s: %d attempts stood between claim and submission when their executors were stopped, in try %d", trigger.name, hit, i+1)
				break
			}
		}
	}
	for _, service := range testkit.Services {
		for _, p := range f.Of(service) {
			p.Ready(time.Minute) // whatever was done to it
		}
	}
	return load.IDs()
}

// zombies stops all executors in the middle of a burst, has a new one take their partitions over, and lets them go on: what they had
// claimed and not submitted they must not submit any more. It returns how many attempts were between their claim and their submission
// when it happened, which no stopwatch can hit but chance often does.
func zombies(t *testing.T, w *testkit.World, f *testkit.Fleet, pace Pace, load *Load, trigger func(*testkit.World, func())) int {
	running := f.Of("executor")
	time.Sleep(2500 * time.Millisecond) // idle connections to the engines are gone by then: the next submission has to dial
	stopped := make(chan struct{})
	var at, resumed time.Time
	var once sync.Once
	trigger(w, func() {
		once.Do(func() {
			for _, p := range running {
				p.Pause()
			}
			at = time.Now()
			close(stopped)
		})
	})
	load.Send(t, 2*pace.Burst, 1000)
	select {
	case <-stopped:
	case <-time.After(30 * time.Second):
		require.Fail(t, "no executor has done anything")
	}
	trigger(w, nil)
	time.Sleep(300 * time.Millisecond) // what they had sent has arrived by then
	var between []string
	for _, p := range running {
		between = append(between, w.Unsent(p.Name)...)
	}
	// The new one is ready when it has partitions, and then needs the guard's time for what it finds open.
	f.Start("executor")
	time.Sleep(3 * time.Second)
	resumed = time.Now()
	for _, p := range running {
		p.Resume()
	}
	time.Sleep(time.Second)
	// One of the old ones goes for good, so that there are as many as before.
	require.Zero(t, running[0].Stop(30*time.Second), running[0].Tail(20))
	f.Forget(running[0])
	for _, id := range between {
		task, _, _ := ledger.SplitAttemptKey(id)
		w.Log.Outcome(task, Patience)
		if last, ok := w.Interactive.Last()[id]; ok { // the judgement says whether that was allowed
			t.Logf("%s: its executor stopped at %s and went on at %s, and it reached the engine at %s\n%s", id, at.Format(clock), resumed.Format(clock),
				last.Format(clock), w.Log.Story(task))
		}
	}
	return len(between)
}

const clock = "15:04:05.000"

// atClaim triggers when the log shows a claim, once the slots have filled up.
func atClaim(w *testkit.World, do func()) {
	if do == nil {
		w.Log.Watch(nil)
		return
	}
	claims := 0
	w.Log.Watch(func(topic string, rec *kgo.Record) {
		if topic == event.TopicAttemptState && testkit.IsClaim(rec) {
			if claims++; claims == 5 {
				do()
			}
		}
	})
}

// atDial triggers when a connection for a submission stands and nothing has been sent on it.
func atDial(w *testkit.World, do func()) { w.Interactive.OnDial(do) }
