package scenario

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/test/testkit"
)

// Pace says how hard a run is.
type Pace struct {
	// Burst Tasks are sent around each blow, at Rate a second.
	Burst int
	Rate  float64
	// Session is the session timeout of the groups; a process is stopped for longer than that.
	Session time.Duration
	// OnClaim is how often an executor is stopped at the moment when its claim stands in the log.
	OnClaim int
}

// Survive kills and stops each of the five services in turn, under load, and restarts those it has killed. It returns the ids of all
// Tasks that were taken in.
func Survive(t *testing.T, w *testkit.World, f *testkit.Fleet, pace Pace) []string {
	load := NewLoad(w, "load", func() string { return f.Of("intake")[0].HTTP })
	under := func(t *testing.T, blow func()) {
		t.Helper()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			load.Send(t, pace.Burst, pace.Rate)
		}()
		// Somewhere in the first half of the burst.
		time.Sleep(time.Duration((0.1 + 0.4*rand.Float64()) * float64(pace.Burst) / pace.Rate * float64(time.Second)))
		blow()
		<-sent
	}
	for _, service := range testkit.Services {
		ok := t.Run("SIGKILL "+service, func(t *testing.T) {
			p := f.Of(service)[0]
			under(t, p.Kill)
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
			under(t, p.Pause)
			time.Sleep(pace.Session + time.Second)
			p.Resume()
			time.Sleep(500 * time.Millisecond)
			if !p.Running() { // it may end, with a code of its own, when it finds that it was replaced
				t.Logf("%s ended when it woke up:\n%s", p.Name, p.Tail(5))
				p.Start()
			}
		})
	}
	for i := range pace.OnClaim {
		hit := 0
		t.Run("SIGSTOP executor between claim and submission", func(t *testing.T) {
			hit = stopOnClaim(t, w, f, pace, func() { load.Send(t, 3*pace.Burst, 1000) })
		})
		if hit > 0 {
			t.Logf("%d attempts stood between claim and submission when their executor was stopped, in try %d", hit, i+1)
			break
		}
	}
	for _, p := range f.Of("intake") {
		p.Ready(time.Minute)
	}
	return load.IDs()
}

// stopOnClaim stops an executor at the moment when a claim of it stands in the log, with as many attempts on their way as its slots
// allow, so that most times one of them is between its claim and its submission. It returns how many were. When the executor goes
// on, another one has its partitions, and it must not submit them any more.
func stopOnClaim(t *testing.T, w *testkit.World, f *testkit.Fleet, pace Pace, send func()) (between int) {
	stopped := make(chan *testkit.Process, 1)
	claims := 0
	w.Log.Watch(func(topic string, rec *kgo.Record) {
		if topic != event.TopicAttemptState || len(stopped) > 0 || !testkit.IsClaim(rec) {
			return
		}
		if claims++; claims < 10 { // when all slots are in use
			return
		}
		if p := f.Named(testkit.Header(rec, "ce_source")); p != nil {
			p.Pause()
			stopped <- p
		}
	})
	defer w.Log.Watch(nil)
	send()
	select {
	case p := <-stopped:
		defer p.Resume()
		time.Sleep(500 * time.Millisecond) // what it had sent has arrived by then
		between = w.Unsent(p.Name)
		time.Sleep(pace.Session + 3*time.Second) // past the guard too
	case <-time.After(30 * time.Second):
		require.Fail(t, "no executor has claimed anything")
	}
	return between
}
