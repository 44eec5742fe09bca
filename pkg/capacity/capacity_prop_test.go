package capacity_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/capacity"
	"github.com/pointsman/pointsman/pkg/signal"
)

func drawSpec(t *rapid.T) capacity.Spec {
	s := capacity.Spec{
		Min: rapid.IntRange(0, 2).Draw(t, "min"), Step: rapid.IntRange(1, 3).Draw(t, "step"),
		IdleAfter:  time.Duration(rapid.IntRange(1, 60).Draw(t, "idle")) * time.Second,
		DrainFor:   time.Duration(rapid.IntRange(0, 5).Draw(t, "drain")) * time.Second,
		WakeWindow: time.Duration(rapid.IntRange(0, 30).Draw(t, "wake")) * time.Second,
		UnknownFor: time.Duration(rapid.IntRange(0, 60).Draw(t, "unknown")) * time.Second,
	}
	s.Max = max(s.Min, 1) + rapid.IntRange(0, 6).Draw(t, "room")
	return s
}

func drawValue(t *rapid.T, name string) signal.Value {
	switch rapid.IntRange(0, 3).Draw(t, name+" state") {
	case 0:
		return signal.Missing("test")
	case 1:
		return count(float64(rapid.IntRange(0, 3).Draw(t, name))).Aged(t0.Add(time.Hour), time.Second)
	default:
		return count(float64(rapid.IntRange(0, 3).Draw(t, name)))
	}
}

func drawTime(t *rapid.T, name string) time.Time {
	if rapid.Bool().Draw(t, name+" never") {
		return time.Time{}
	}
	return t0.Add(-time.Duration(rapid.IntRange(0, 200).Draw(t, name)) * time.Second)
}

func drawInput(t *rapid.T) capacity.Input {
	in := capacity.Input{
		Now: t0, Spec: drawSpec(t), Paused: rapid.Bool().Draw(t, "paused"),
		Replicas: drawValue(t, "replicas"), Open: drawValue(t, "open"), Running: drawValue(t, "running"), Queued: drawValue(t, "queued"),
		ScaleHelps: rapid.Bool().Draw(t, "helps"),
		LastWork:   t0.Add(-time.Duration(rapid.IntRange(0, 300).Draw(t, "work")) * time.Second),
		LastRaise:  drawTime(t, "raise"), Draining: drawTime(t, "draining"),
	}
	for range rapid.IntRange(0, 6).Draw(t, "readings") {
		in.Waiting = append(in.Waiting, drawValue(t, "waiting"))
	}
	return in
}

// What must hold of every plan, whatever it was made from.
func TestEveryPlanIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		got := in.Next()
		require.Equal(t, got, in.Next(), "the same input gives the same plan")
		replicas, known := in.Replicas.Get()
		open, openKnown := in.Open.Get()
		running, _ := in.Running.Get()
		queued, _ := in.Queued.Get()
		writes := got.Action == capacity.Raise || got.Action == capacity.Lower
		if in.Paused || !known {
			require.False(t, writes, "nothing is written while paused or blind")
		}
		switch got.Action {
		case capacity.Raise:
			require.Greater(t, got.Replicas, int(replicas), "a raise raises")
			require.LessOrEqual(t, got.Replicas, in.Spec.Max, "and stays under the cap")
			require.Equal(t, got.Replicas, in.Spec.Tier(got.Replicas), "and meets a tier")
		case capacity.Lower:
			require.Less(t, got.Replicas, int(replicas))
			require.Equal(t, in.Spec.Min, got.Replicas)
			require.True(t, openKnown && open == 0, "unknown is not idle")
			require.Zero(t, running)
			require.Zero(t, queued)
			require.False(t, in.Draining.IsZero(), "it was announced before")
			require.GreaterOrEqual(t, in.Now.Sub(in.LastWork), in.Spec.IdleAfter)
		case capacity.Drain:
			require.True(t, in.Draining.IsZero())
			require.True(t, openKnown && open == 0)
		case capacity.Undrain:
			require.False(t, in.Draining.IsZero())
		}
	})
}

// A plan that was carried out is not made again.
func TestARaiseIsMadeOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		got := in.Next()
		if got.Action != capacity.Raise {
			return
		}
		in.Replicas, in.LastRaise, in.Up = count(float64(got.Replicas)), in.Now, false
		in.Spec.WakeWindow = max(in.Spec.WakeWindow, time.Second)
		again := in.Next()
		if got.Reason.Code != capacity.ReasonFloor { // from below the floor it may have to go on to the first tier
			require.NotEqual(t, capacity.Raise, again.Action)
		}
		require.NotEqual(t, capacity.Lower, again.Action, "and what was raised is not lowered at once")
	})
}

// A simulated pool: Tasks come and go at random, and whoever submits looks at the announcement, with a delay that is
// shorter than the drain. No Task is ever on a pool that is taken away.
func TestNoWorkIsEverReaped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		s.Min, s.DrainFor = 0, max(s.DrainFor, 2*time.Second)
		now, replicas, running := t0, 0, 0
		in := capacity.Input{Spec: s, ScaleHelps: true, LastWork: t0}
		waiting := 0 // Tasks that wait for the pool to be announced as ready
		sawDrainAt := time.Time{}
		for range rapid.IntRange(1, 200).Draw(t, "seconds") {
			now = now.Add(time.Second)
			if rapid.IntRange(0, 9).Draw(t, "arrives") == 0 {
				waiting++
			}
			// The submitter hears of a drain one second late.
			drainHeard := !in.Draining.IsZero() && now.Sub(sawDrainAt) >= time.Second
			if waiting > 0 && replicas > 0 && !drainHeard {
				running, waiting = running+waiting, 0
			}
			if running > 0 && rapid.Bool().Draw(t, "ends") {
				running--
			}
			if running+waiting > 0 {
				in.LastWork = now
			}
			in.Now = now
			in.Replicas, in.Open = at(replicas, now), at(running+waiting, now)
			in.Running, in.Queued = at(running, now), at(0, now)
			switch plan := in.Next(); plan.Action {
			case capacity.Raise:
				replicas, in.LastRaise, in.Draining = plan.Replicas, now, time.Time{}
			case capacity.Lower:
				require.Zero(t, running, "a running Task was reaped")
				replicas, in.Draining = plan.Replicas, time.Time{}
			case capacity.Drain:
				in.Draining, sawDrainAt = now, now
			case capacity.Undrain:
				in.Draining = time.Time{}
			}
		}
	})
}

func at(n int, now time.Time) signal.Value { return signal.Of(float64(n), signal.Count, "test", now) }
