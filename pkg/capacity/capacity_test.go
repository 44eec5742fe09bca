package capacity_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/capacity"
	"github.com/pointsman/pointsman/pkg/signal"
)

var (
	t0   = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)
	spec = capacity.Spec{Min: 0, Max: 4, Step: 2, IdleAfter: time.Minute, DrainFor: 5 * time.Second, WakeWindow: 30 * time.Second, UnknownFor: 10 * time.Minute}
)

func count(n float64) signal.Value { return signal.Of(n, signal.Count, "test", t0) }

// asleep is a pool at zero that nobody wants; the cases change it.
func asleep() capacity.Input {
	return capacity.Input{
		Now: t0, Spec: spec, Replicas: count(0), Open: count(0), Running: count(0), Queued: count(0), ScaleHelps: true,
		LastWork: t0.Add(-time.Hour),
	}
}

func idleFor(d time.Duration) capacity.Input {
	in := asleep()
	in.Replicas, in.LastWork, in.LastRaise = count(2), t0.Add(-d), t0.Add(-d)
	return in
}

func TestNext(t *testing.T) {
	waiting := func(n ...float64) []signal.Value {
		var out []signal.Value
		for _, v := range n {
			if v < 0 {
				out = append(out, signal.Missing("test"))
				continue
			}
			out = append(out, count(v))
		}
		return out
	}
	busy := func(edit func(*capacity.Input)) capacity.Input {
		in := asleep()
		in.Replicas, in.Open, in.Running = count(2), count(5), count(2)
		in.LastWork, in.LastRaise, in.Waiting = t0, t0.Add(-time.Hour), waiting(1, 2, 3, 3)
		edit(&in)
		return in
	}
	with := func(in capacity.Input, edit func(*capacity.Input)) capacity.Input { edit(&in); return in }
	for _, c := range []struct {
		name   string
		in     capacity.Input
		action capacity.Action
		to     int
		code   string
	}{
		{"asleep", asleep(), capacity.Hold, 0, capacity.ReasonAsleep},
		{"one task wakes it", with(asleep(), func(in *capacity.Input) { in.Open = count(1) }), capacity.Raise, 2, capacity.ReasonWanted},
		{"a hundred tasks wake it no higher", with(asleep(), func(in *capacity.Input) { in.Open = count(100) }), capacity.Raise, 2, capacity.ReasonWanted},
		{"awake already", busy(func(in *capacity.Input) { in.Waiting = nil }), capacity.Hold, 2, capacity.ReasonBusy},
		{"paused at zero", with(asleep(), func(in *capacity.Input) { in.Open, in.Paused = count(1), true }), capacity.Hold, 0, capacity.ReasonPaused},
		{"paused when idle", with(idleFor(time.Hour), func(in *capacity.Input) { in.Paused = true }), capacity.Hold, 2, capacity.ReasonPaused},
		{"control plane blind", with(asleep(), func(in *capacity.Input) { in.Open, in.Replicas = count(1), signal.Value{} }), capacity.Hold, 0, capacity.ReasonControlUnknown},
		{"below the floor", with(asleep(), func(in *capacity.Input) { in.Spec.Min = 1; in.Spec.Max = 3 }), capacity.Raise, 1, capacity.ReasonFloor},
		{"at a floor above zero", with(idleFor(time.Hour), func(in *capacity.Input) { in.Spec.Min = 2 }), capacity.Hold, 2, capacity.ReasonAtFloor},
		{"wakes with every monitor dead", with(asleep(), func(in *capacity.Input) {
			in.Open, in.Running, in.Queued = count(1), signal.Value{}, signal.Value{}
		}), capacity.Raise, 2, capacity.ReasonWanted},

		{"queue pressure", busy(func(*capacity.Input) {}), capacity.Raise, 4, capacity.ReasonQueue},
		{"two of four is no pressure", busy(func(in *capacity.Input) { in.Waiting = waiting(9, 0, 9, 0) }), capacity.Hold, 2, capacity.ReasonBusy},
		{"a missing reading is no pressure", busy(func(in *capacity.Input) { in.Waiting = waiting(9, 9, -1, -1) }), capacity.Hold, 2, capacity.ReasonBusy},
		{"only the newest four count", busy(func(in *capacity.Input) { in.Waiting = waiting(9, 9, 9, 0, 0, 9, 0) }), capacity.Hold, 2, capacity.ReasonBusy},
		{"backlog of the start itself", busy(func(in *capacity.Input) { in.LastRaise = t0.Add(-10 * time.Second) }), capacity.Hold, 2, capacity.ReasonWaking},
		{"at the cap", busy(func(in *capacity.Input) { in.Replicas = count(4) }), capacity.Hold, 4, capacity.ReasonCap},
		{"memory of one node", busy(func(in *capacity.Input) { in.ScaleHelps = false }), capacity.Hold, 2, capacity.ReasonBusy},

		{"idle, not long", idleFor(40 * time.Second), capacity.Hold, 2, capacity.ReasonNotIdleLong},
		{"idle long enough is announced", idleFor(2 * time.Minute), capacity.Drain, 2, capacity.ReasonIdle},
		{"announced, not long", with(idleFor(2*time.Minute), func(in *capacity.Input) { in.Draining = t0.Add(-time.Second) }), capacity.Hold, 2, capacity.ReasonDraining},
		{"announced long enough", with(idleFor(2*time.Minute), func(in *capacity.Input) { in.Draining = t0.Add(-6 * time.Second) }), capacity.Lower, 0, capacity.ReasonIdle},
		{"work came while it was going", busy(func(in *capacity.Input) { in.Draining = t0.Add(-6 * time.Second) }), capacity.Undrain, 2, capacity.ReasonWorkWhileDrains},
		{"others' work came while it was going", with(idleFor(2*time.Minute), func(in *capacity.Input) {
			in.Draining, in.Running = t0.Add(-6*time.Second), count(1)
		}), capacity.Undrain, 2, capacity.ReasonEngineBusy},
		{"just raised, task gone", with(idleFor(time.Hour), func(in *capacity.Input) { in.LastRaise = t0.Add(-time.Second) }), capacity.Hold, 2, capacity.ReasonWaking},
		{"just raised, up, and idle long enough", with(idleFor(2*time.Minute), func(in *capacity.Input) { in.LastRaise, in.Up = t0.Add(-time.Second), true }), capacity.Drain, 2, capacity.ReasonIdle},
		{"topics not read", with(idleFor(time.Hour), func(in *capacity.Input) { in.Open = signal.Missing("test") }), capacity.Hold, 2, capacity.ReasonTopicsUnknown},
		{"engine mute", with(idleFor(2*time.Minute), func(in *capacity.Input) { in.Running = signal.Value{} }), capacity.Hold, 2, capacity.ReasonEngineUnknown},
		{"stale is not idle", with(idleFor(2*time.Minute), func(in *capacity.Input) {
			in.Queued = count(0).Aged(t0.Add(time.Hour), time.Second)
		}), capacity.Hold, 2, capacity.ReasonEngineUnknown},
		{"an engine without a queue", with(idleFor(2*time.Minute), func(in *capacity.Input) { in.Queued = signal.Missing("test") }), capacity.Drain, 2, capacity.ReasonIdle},
		{"engine mute for too long", with(idleFor(time.Hour), func(in *capacity.Input) { in.Running = signal.Value{} }), capacity.Drain, 2, capacity.ReasonIdleEngineMute},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.in.Next()
			require.Equal(t, c.action, got.Action, got.Reason.Text)
			require.Equal(t, c.code, got.Reason.Code)
			require.Equal(t, c.to, got.Replicas)
			require.NotEmpty(t, got.Reason.Text)
		})
	}
}

func TestTiers(t *testing.T) {
	s := capacity.Spec{Min: 1, Max: 6, Step: 2}
	for n, want := range map[int]int{-5: 1, 0: 1, 1: 1, 2: 3, 3: 3, 4: 5, 5: 5, 6: 6, 99: 6} {
		require.Equal(t, want, s.Tier(n), "tier of %d", n)
	}
	require.Equal(t, 6, s.Above(6), "there is nothing over the cap")
}

func TestSpecIsChecked(t *testing.T) {
	require.NoError(t, spec.Validate())
	for name, edit := range map[string]func(*capacity.Spec){
		"negative floor":      func(s *capacity.Spec) { s.Min = -1 },
		"cap of zero":         func(s *capacity.Spec) { s.Max = 0 },
		"cap below the floor": func(s *capacity.Spec) { s.Min, s.Max = 3, 2 },
		"no step":             func(s *capacity.Spec) { s.Step = 0 },
		"no idle time":        func(s *capacity.Spec) { s.IdleAfter = 0 },
		"negative drain":      func(s *capacity.Spec) { s.DrainFor = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := spec
			edit(&s)
			require.Error(t, s.Validate())
		})
	}
}
