package load_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/services/profiler/load"
)

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func change(id string, seq int, state attempt.State, at time.Duration) event.Attempt {
	return event.Attempt{AttemptID: id, TaskID: id, Number: 1, Seq: seq, State: string(state), At: start.Add(at), Target: event.Target{Engine: "e", Cluster: "c"}}
}

func value(t *testing.T, o signal.Observation, name signal.Name) float64 {
	t.Helper()
	n, ok := o.Values[name].Get()
	require.True(t, ok, "%s is not known", name)
	return n
}

// run makes an attempt that waits, runs and ends.
func run(f *load.Fold, id string, queued, began, ended time.Duration) {
	f.Apply(change(id, 1, attempt.AwaitingSlot, queued))
	f.Apply(change(id, 2, attempt.Claimed, began))
	f.Apply(change(id, 3, attempt.Running, began))
	f.Apply(change(id, 4, attempt.Succeeded, ended))
}

func TestCountsFollowTheStates(t *testing.T) {
	f := load.New(map[string]int{"c": 2})
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	f.Apply(change("a", 1, attempt.AwaitingSlot, 0))
	f.Apply(change("b", 1, attempt.AwaitingSlot, time.Second))
	o := f.Observe("c", at(3))
	require.Equal(t, 2.0, value(t, o, signal.Queued))
	require.Equal(t, 0.0, value(t, o, signal.Running))
	require.Equal(t, 2.0, value(t, o, signal.Slots))
	require.Equal(t, 3000.0, value(t, o, signal.OldestQueuedMs))

	f.Apply(change("a", 2, attempt.Claimed, 4*time.Second))
	f.Apply(change("a", 3, attempt.Submitting, 4*time.Second))
	f.Apply(change("b", 2, attempt.AwaitingCapacity, 4*time.Second))
	o = f.Observe("c", at(5))
	require.Equal(t, [2]float64{1, 1}, [2]float64{value(t, o, signal.Queued), value(t, o, signal.Running)})
	require.Equal(t, 4000.0, value(t, o, signal.OldestQueuedMs))

	f.Apply(change("a", 4, attempt.Failed, 6*time.Second))
	f.Apply(change("b", 3, attempt.Cancelled, 6*time.Second))
	o = f.Observe("c", at(7))
	require.Equal(t, [2]float64{0, 0}, [2]float64{value(t, o, signal.Queued), value(t, o, signal.Running)})
	require.Equal(t, signal.Absent, o.Values[signal.OldestQueuedMs].State(), "nobody waits: there is no age, and it is said so")
	require.Contains(t, o.Values, signal.OldestQueuedMs)
}

func TestRepeatsAndThePastChangeNothing(t *testing.T) {
	f := load.New(map[string]int{"c": 2})
	f.Apply(change("a", 1, attempt.AwaitingSlot, 0))
	f.Apply(change("a", 2, attempt.Claimed, time.Second))
	f.Apply(change("a", 1, attempt.AwaitingSlot, 2*time.Second))
	f.Apply(change("a", 2, attempt.Claimed, 2*time.Second))
	o := f.Observe("c", start.Add(2*time.Second))
	require.Equal(t, [2]float64{0, 1}, [2]float64{value(t, o, signal.Queued), value(t, o, signal.Running)})
	f.Apply(change("a", 3, attempt.Succeeded, 3*time.Second))
	f.Apply(change("a", 2, attempt.Running, 4*time.Second))
	f.Apply(change("a", 3, attempt.Succeeded, 4*time.Second))
	o = f.Observe("c", start.Add(5*time.Second))
	require.Equal(t, [2]float64{0, 0}, [2]float64{value(t, o, signal.Queued), value(t, o, signal.Running)})
}

func TestUnknownIsAbsent(t *testing.T) {
	f := load.New(nil)
	f.Apply(change("a", 1, attempt.AwaitingSlot, 0))
	o := f.Observe("c", start.Add(time.Second))
	require.Equal(t, signal.Absent, o.Values[signal.Slots].State())
	require.Equal(t, signal.Absent, o.Values[signal.EstWaitMs].State(), "no slots are known and nothing has ended")
	require.Equal(t, signal.Absent, o.Values[signal.DonePerSecond].State(), "it was watched for a second only")
	o = f.Observe("c", start.Add(time.Minute))
	require.Equal(t, 0.0, value(t, o, signal.DonePerSecond), "nothing ended in a minute: that is known")
}

func TestWaitIsZeroWhenASlotIsFree(t *testing.T) {
	f := load.New(map[string]int{"c": 2, "idle": 1})
	f.Apply(change("a", 1, attempt.AwaitingSlot, 0))
	f.Apply(change("a", 2, attempt.Claimed, 0))
	o := f.Observe("c", start)
	require.Equal(t, 0.0, value(t, o, signal.EstWaitMs))
	require.Equal(t, "attempts/free_slot", o.Values[signal.EstWaitMs].Source)
	require.Equal(t, 0.0, value(t, f.Observe("idle", start), signal.EstWaitMs))
	f.Apply(change("b", 1, attempt.AwaitingSlot, 0)) // it will take the last slot
	require.Equal(t, signal.Absent, f.Observe("c", start).Values[signal.EstWaitMs].State(), "full, and nothing has ended yet")
}

func TestWaitByLittle(t *testing.T) {
	f := load.New(map[string]int{"c": 2})
	run(f, "x", 0, 0, 4*time.Second)
	run(f, "y", 0, 0, 8*time.Second) // mean service 6 s
	for i := range 5 {
		f.Apply(change(fmt.Sprint("q", i), 1, attempt.AwaitingSlot, 9*time.Second))
		if i < 2 {
			f.Apply(change(fmt.Sprint("q", i), 2, attempt.Running, 9*time.Second))
		}
	}
	v := f.Observe("c", start.Add(10*time.Second)).Values[signal.EstWaitMs]
	n, ok := v.Get()
	require.True(t, ok)
	require.Equal(t, 12000.0, n, "three wait, the newcomer is the fourth: 4 x 6 s / 2 slots")
	require.Equal(t, "attempts/little", v.Source)
}

func TestWaitByDrainOnceThereIsABacklog(t *testing.T) {
	f := load.New(map[string]int{"c": 1})
	const n = 40
	for i := range n + 3 { // three more than will run
		f.Apply(change(fmt.Sprint(i), 1, attempt.AwaitingSlot, 0))
	}
	for i := range n { // one after another, two seconds each; a slot is free for half a second in between
		f.Apply(change(fmt.Sprint(i), 2, attempt.Running, time.Duration(2*i)*time.Second+500*time.Millisecond))
		f.Apply(change(fmt.Sprint(i), 3, attempt.Succeeded, time.Duration(2*i+2)*time.Second))
	}
	f.Apply(change(fmt.Sprint(n), 2, attempt.Running, 2*n*time.Second))
	o := f.Observe("c", start.Add(2*n*time.Second))
	require.Equal(t, 2.0, value(t, o, signal.Queued))
	require.Equal(t, "attempts/drain", o.Values[signal.EstWaitMs].Source)
	require.InDelta(t, 6000, value(t, o, signal.EstWaitMs), 200, "two wait, the newcomer is the third, two seconds each from slot to slot")
	require.InDelta(t, 0.5, value(t, o, signal.DonePerSecond), 0.05)

	// Once the backlog is gone, the time in which there was less to do says nothing of what the cluster can.
	for i := n; i < n+3; i++ {
		f.Apply(change(fmt.Sprint(i), 9, attempt.Cancelled, 81*time.Second))
	}
	f.Apply(change("x", 1, attempt.AwaitingSlot, 200*time.Second))
	f.Apply(change("x", 2, attempt.Running, 200*time.Second))
	v := f.Observe("c", start.Add(201*time.Second)).Values[signal.EstWaitMs]
	require.Equal(t, "attempts/little", v.Source)
}

func TestAnEndWhoseBeginningWasNotSeenCountsAsDone(t *testing.T) {
	f := load.New(map[string]int{"c": 1})
	f.Observe("c", start)
	f.Apply(change("old", 4, attempt.Succeeded, 20*time.Second))
	o := f.Observe("c", start.Add(40*time.Second))
	require.Equal(t, [2]float64{0, 0}, [2]float64{value(t, o, signal.Queued), value(t, o, signal.Running)})
	require.Positive(t, value(t, o, signal.DonePerSecond))
}

// Whatever comes in whatever order and however often: counts are never negative, an estimate is never negative, and when all
// attempts have ended nothing waits or runs.
func TestCountsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := load.New(map[string]int{"c": rapid.IntRange(0, 3).Draw(t, "slots")})
		states := attempt.States()
		n := rapid.IntRange(1, 5).Draw(t, "attempts")
		seqs := make([]int, n)
		clock := time.Duration(0)
		check := func() {
			o := f.Observe("c", start.Add(clock))
			for _, name := range []signal.Name{signal.Queued, signal.Running, signal.EstWaitMs, signal.DonePerSecond, signal.OldestQueuedMs} {
				if v, ok := o.Values[name].Get(); ok && v < 0 {
					t.Fatalf("%s is %v", name, v)
				}
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "who")
			clock += time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond
			seq := seqs[i] + 1
			if rapid.Bool().Draw(t, "repeat") {
				seq = max(1, rapid.IntRange(0, seqs[i]).Draw(t, "old"))
			}
			seqs[i] = max(seqs[i], seq)
			f.Apply(change(fmt.Sprint(i), seq, rapid.SampledFrom(states).Draw(t, "state"), clock))
			check()
		}
		for i := range n {
			f.Apply(change(fmt.Sprint(i), seqs[i]+1, attempt.Succeeded, clock))
		}
		o := f.Observe("c", start.Add(clock))
		q, _ := o.Values[signal.Queued].Get()
		r, _ := o.Values[signal.Running].Get()
		if q != 0 || r != 0 {
			t.Fatalf("%v wait and %v run when all have ended", q, r)
		}
	})
}

func TestWhatIsSilentForADayIsForgotten(t *testing.T) {
	f := load.New(map[string]int{"c": 1})
	f.Apply(change("a", 1, attempt.Running, 0))
	require.Equal(t, 1.0, value(t, f.Observe("c", start.Add(23*time.Hour)), signal.Running))
	require.Equal(t, 0.0, value(t, f.Observe("c", start.Add(25*time.Hour)), signal.Running))
}
