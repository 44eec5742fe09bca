package executor_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	at "github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/services/executor"
)

// Clusters of a stage besides the two of every bench.
const (
	tiny    = "tiny"    // one slot, which is taken
	asleep  = "asleep"  // a pool that sleeps
	waking  = "waking"  // one that is woken
	nowhere = "nowhere" // no executor knows it
)

// soon is the deadline of Tasks that miss it, and longer than all of them need to get to where they are when it comes.
const soon = strain * 4 * time.Second

// row is one of the attempt table.
type row struct {
	state at.State
	event at.Event
}

func (r row) String() string { return string(r.state) + " " + string(r.event) }

// rows are all of the table.
func rowsOfTheTable() map[row]at.Transition {
	out := map[row]at.Transition{}
	for _, s := range at.States() {
		for _, e := range at.Events() {
			if t, err := at.Apply(s, e); err == nil {
				out[row{s, e}] = t
			}
		}
	}
	return out
}

// notMade are rows that the executor has no way to.
var notMade = map[row]string{
	{at.Submitting, at.EstimateOverran}: "progress is asked for only once the engine was seen at work",
	{at.Queued, at.EstimateOverran}:     "progress is asked for only once the engine was seen at work",
}

// Where Tasks pass by on their way.
var (
	inLine     = point{at.AwaitingSlot, at.SlotBusy, at.AwaitSlot}
	atThePool  = point{at.AwaitingSlot, at.PoolAsleep, at.AwaitPool}
	claimed    = point{at.AwaitingSlot, at.ClaimStood, at.CheckGuard}
	submitting = point{at.Claimed, at.GuardHeld, at.Submit}
	submitted  = point{at.Claimed, at.GuardHeld, at.Follow}
	queued     = point{at.Submitting, at.EngineQueued, at.Follow}
	started    = point{at.Submitting, at.EngineStarted, at.Follow}
	doubted    = point{at.Submitting, at.ConnectionLost, at.LookUp}
	delivering = point{at.Running, at.ResultBegan, at.Deliver}
)

type on = map[point]func(*stage, string)

func cancelled(s *stage, id string) { s.cancels <- id }
func woken(s *stage, id string)     { s.wakes <- id }
func begun(s *stage, id string)     { s.cue(id, "begin") }
func ended(s *stage, id string)     { s.cue(id, "end") }
func broken(s *stage, id string)    { s.cue(id, "break") }

// cancelledHere waits until the executor has the wish.
func cancelledHere(s *stage, id string) {
	s.cancels <- id
	select {
	case <-s.acts[id].cues["heard"]:
	case <-s.release:
	}
}

func pause(d time.Duration) func(*stage, string) {
	return func(*stage, string) { time.Sleep(d) }
}

// pastGuard is longer than the guard of a bench's claims.
const pastGuard = strain * 1200 * time.Millisecond

// ways say how a Task comes to each row of the table.
var ways = map[row]act{
	{at.AwaitingSlot, at.Placed}:         {},
	{at.AwaitingSlot, at.SlotBusy}:       {cluster: tiny},
	{at.AwaitingSlot, at.PoolAsleep}:     {cluster: asleep},
	{at.AwaitingSlot, at.PoolNeverReady}: {cluster: nowhere},
	{at.AwaitingSlot, at.SlotGranted}:    {write: true},
	{at.AwaitingSlot, at.ClaimStood}:     {write: true},
	{at.AwaitingSlot, at.CancelWished}:   {cluster: tiny, cancel: true, on: on{inLine: cancelled}},
	{at.AwaitingSlot, at.DeadlinePassed}: {cluster: tiny, deadline: soon},

	{at.AwaitingCapacity, at.PoolReady}:      {cluster: waking, on: on{atThePool: woken}},
	{at.AwaitingCapacity, at.PoolNeverReady}: {cluster: asleep},
	{at.AwaitingCapacity, at.CancelWished}:   {cluster: asleep, cancel: true, on: on{atThePool: cancelled}},
	{at.AwaitingCapacity, at.DeadlinePassed}: {cluster: asleep, deadline: soon},

	{at.Claimed, at.GuardHeld}:      {write: true},
	{at.Claimed, at.GuardRanOut}:    {write: true, on: on{claimed: pause(pastGuard)}},
	{at.Claimed, at.TakenOver}:      {write: true, first: submitted},
	{at.Claimed, at.CancelWished}:   {write: true, cancel: true, on: on{claimed: cancelledHere}},
	{at.Claimed, at.DeadlinePassed}: {write: true, deadline: soon, on: on{claimed: pause(soon + 100*time.Millisecond)}},

	{at.Submitting, at.EngineQueued}:   {write: true, does: does{queued: true}},
	{at.Submitting, at.EngineStarted}:  {write: true},
	{at.Submitting, at.GuardRanOut}:    {write: true, on: on{submitting: pause(pastGuard)}},
	{at.Submitting, at.NotReached}:     {write: true, does: does{down: true}},
	{at.Submitting, at.EngineFailed}:   {does: does{code: "241", hidden: true}},
	{at.Submitting, at.ConnectionLost}: {write: true, does: does{loses: true, hold: true}},
	{at.Submitting, at.CancelWished}:   {write: true, cancel: true, does: does{hold: true, hidden: true}, on: on{submitted: cancelled}},
	{at.Submitting, at.DeadlinePassed}: {write: true, deadline: soon, does: does{hold: true, hidden: true}},

	{at.SubmitUnknown, at.FoundRunningRead}:  {does: does{loses: true, hold: true}},
	{at.SubmitUnknown, at.FoundRunningWrite}: {write: true, does: does{loses: true, hold: true}},
	{at.SubmitUnknown, at.FoundGoneRead}:     {does: does{loses: true}},
	{at.SubmitUnknown, at.FoundGoneWrite}:    {write: true, does: does{loses: true}},
	{at.SubmitUnknown, at.FoundFinished}:     {write: true, does: does{loses: true, found: engine.RunFinished}},
	{at.SubmitUnknown, at.FoundFailed}:       {does: does{loses: true, found: engine.RunFailed}},
	{at.SubmitUnknown, at.CancelWished}:      {write: true, cancel: true, does: does{loses: true, mum: true}, on: on{doubted: cancelled}},
	{at.SubmitUnknown, at.DeadlinePassed}:    {write: true, deadline: soon, does: does{loses: true, mum: true}},

	{at.Queued, at.EngineStarted}:  {write: true, does: does{queued: true}, on: on{queued: begun}},
	{at.Queued, at.EngineFailed}:   {does: does{queued: true, code: "241"}, on: on{queued: ended}},
	{at.Queued, at.ConnectionLost}: {write: true, does: does{queued: true}, on: on{queued: broken}},
	{at.Queued, at.CancelWished}:   {cancel: true, does: does{queued: true}, on: on{queued: cancelled}},
	{at.Queued, at.DeadlinePassed}: {deadline: soon, does: does{queued: true}},

	{at.Running, at.ResultBegan}:     {write: true},
	{at.Running, at.EngineFailed}:    {does: does{hold: true, code: "241"}, on: on{started: ended}},
	{at.Running, at.ConnectionLost}:  {write: true, does: does{hold: true}, on: on{started: broken}},
	{at.Running, at.TakenOver}:       {write: true, first: delivering},
	{at.Running, at.CancelWished}:    {write: true, cancel: true, does: does{hold: true}, on: on{started: cancelled}},
	{at.Running, at.DeadlinePassed}:  {deadline: soon, does: does{hold: true}},
	{at.Running, at.EstimateOverran}: {does: does{hold: true, greedy: true}},

	{at.Delivering, at.Delivered}:       {write: true},
	{at.Delivering, at.DeliveryFailed}:  {does: does{rows: "unfit"}},
	{at.Delivering, at.EngineFailed}:    {does: does{rows: "failed"}},
	{at.Delivering, at.ConnectionLost}:  {does: does{rows: "lost"}},
	{at.Delivering, at.CancelWished}:    {cancel: true, does: does{rows: "held"}, on: on{delivering: cancelled}},
	{at.Delivering, at.DeadlinePassed}:  {deadline: soon, does: does{rows: "held"}},
	{at.Delivering, at.EstimateOverran}: {does: does{rows: "held", greedy: true}},
}

// whenLetGo say how a Task comes to be in each state when its process gives the partition back.
var whenLetGo = map[at.State]act{
	at.AwaitingSlot:     {cluster: tiny},
	at.AwaitingCapacity: {cluster: asleep},
	at.Claimed:          {write: true, on: on{claimed: func(s *stage, _ string) { <-s.leaving }}},
	at.Submitting:       {write: true, does: does{hold: true, hidden: true}},
	at.SubmitUnknown:    {write: true, does: does{loses: true, mum: true}},
	at.Queued:           {does: does{queued: true}},
	at.Running:          {does: does{hold: true}},
	at.Delivering:       {does: does{rows: "held"}},
}

// TestEveryRowHasACrash fails for a row of the attempt table that no kill is tried at.
func TestEveryRowHasACrash(t *testing.T) {
	table := rowsOfTheTable()
	for r := range table {
		_, way := ways[r]
		_, none := notMade[r]
		_, letGo := whenLetGo[r.state]
		if r.event == at.Abandoned {
			require.True(t, letGo, "no kill is tried at %s: add a way to whenLetGo", r)
			continue
		}
		require.NotEqual(t, way, none, "no kill is tried at %s: add a way to it, or say why the executor has none", r)
	}
	for r := range maps.Keys(ways) {
		require.Contains(t, table, r)
	}
	for r := range maps.Keys(notMade) {
		require.Contains(t, table, r)
	}
}

func newTransitions(t *testing.T) *stage {
	b := newBench(t, 1)
	for _, name := range []string{tiny, asleep, waking} {
		b.servers[name] = newServer()
	}
	for _, s := range b.servers {
		s.on("PLAIN", behaviour{rows: 1})
	}
	b.config = func(c *executor.Config) {
		watchClosely(c)
		c.Attempts.Overrun.SLAFactor = 0 // they stand still for longer than that
		c.Attempts.MaxAttempts, c.Attempts.MaxRetries, c.Attempts.CapacityWait = 100, 100, 2*soon
		c.Attempts.SignalAge = time.Hour
		c.Attempts.StopTimeout = time.Second // of those that are killed and find no engine to stop anything at
		c.Group.SessionTimeout, c.Group.HeartbeatEvery = max(3*time.Second, c.Group.SessionTimeout), 300*time.Millisecond
		for i := range c.Engines {
			c.Engines[i].Slots = 1000
		}
		for name, slots := range map[string]int{tiny: 1, asleep: 1000, waking: 1000} {
			c.Engines = append(c.Engines, executor.EngineConfig{Name: name, Kind: "clickhouse", URL: "http://127.0.0.1:1", Slots: slots})
		}
	}
	b.pool(asleep, 0, 0)
	b.pool(waking, 0, 0)
	b.answerReroutes()
	s := newStage(b)
	s.add("holder", act{cluster: tiny, does: does{hold: true}})
	return s
}

// come plays until the Tasks that a process is to stand still with are there.
func (s *stage) come(process int, ids ...string) {
	s.b.t.Helper()
	late := time.After(strain * time.Minute)
	wakes := 0
	for {
		missing := slices.DeleteFunc(s.missing(process), func(id string) bool { return !slices.Contains(ids, id) })
		if len(missing) == 0 {
			return
		}
		select {
		case id := <-s.cancels:
			s.b.decide(cancelOf(id))
			if _, ok := s.acts["heard-"+id]; ok { // it is read behind the other
				s.b.decide(cancelOf("heard-" + id))
			}
		case <-s.wakes:
			if wakes++; wakes == s.sleepers() {
				s.b.pool(waking, 1, 1)
			}
		case <-late:
			require.Failf(s.b.t, "not reached", "process %d never came to %s", process, strings.Join(missing, ", "))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *stage) sleepers() (n int) {
	for _, a := range s.acts {
		if a.cluster == waking {
			n++
		}
	}
	return n
}

// judge waits for all Outcomes and holds them against what was promised.
func (s *stage) judge() {
	b := s.b
	b.t.Helper()
	for id := range s.acts { // writes that are watched end now
		s.cue(id, "end")
	}
	require.Eventually(b.t, func() bool { return len(b.outcomes()) == len(s.acts) }, strain*time.Minute, 200*time.Millisecond, "every Task ends")
	b.committed()
	b.once()
	for id, all := range b.outcomes() {
		o, a, n := all[0], s.acts[id], s.submissions(id)
		end := fmt.Sprintf("%s (killed at %v, then %v): %s %+v, %d submissions", id, a.first, a.then, o.Status, o.Failure, n)
		unknown := o.Status == event.Failed && o.Failure.Class == string(failure.SubmitUnknown)
		switch {
		case a.write && unknown:
		case a.deadline > 0:
			require.Equal(b.t, event.Expired, o.Status, end)
		case a.cancel && o.Status == event.Cancelled:
		default: // also where a wish to cancel was read too late
			require.Equal(b.t, event.Succeeded, o.Status, end)
		}
		if a.write {
			require.LessOrEqual(b.t, n, 1, "a write runs once: "+end)
			require.True(b.t, n == 1 || o.Status != event.Succeeded, "nothing succeeds that never ran: "+end)
		}
		if unknown {
			require.Contains(b.t, o.Failure.Hint, "/1", "what to check: "+end)
		}
	}
}

// TestKilledAtEveryTransition kills an executor before each effect of each row of the attempt table, all of them in the same moment, and
// at the rows of a take-over the second one too. Whatever it was: each engine has seen each attempt at most once, each Task ends once, a
// read succeeds, and a write runs at most once.
func TestKilledAtEveryTransition(t *testing.T) {
	s := newTransitions(t)
	table := rowsOfTheTable()
	for r, way := range ways {
		for i, effect := range table[r].Do {
			id := strings.ReplaceAll(fmt.Sprintf("%s.%s.%d", r.state, r.event, i), "_", "-")
			a, here := way, point{r.state, r.event, effect}
			if a.first == (point{}) {
				a.first = here
			} else {
				a.then = here
			}
			s.add(id, a)
			if r == (row{at.Claimed, at.CancelWished}) {
				heard := on{}
				for _, state := range at.States() {
					heard[point{state, at.CancelWished, at.FreeSlot}] = func(s *stage, _ string) { s.cue(id, "heard") }
				}
				s.add("heard-"+id, act{write: true, cancel: true, does: does{hold: true}, on: heard})
			}
		}
	}
	a := s.start()
	t.Cleanup(func() { close(s.release) })
	time.Sleep(300 * time.Millisecond) // the signals are read
	s.tell([]string{"holder"})
	s.b.change("holder/1", "running")
	// Those that have to be somewhere in time come last, when nothing else goes on.
	var ids, timely []string
	for id, a := range s.acts {
		switch {
		case id == "holder":
		case a.deadline > 0 || a.cluster == asleep || a.cluster == waking:
			timely = append(timely, id)
		default:
			ids = append(ids, id)
		}
	}
	s.tell(ids)
	s.come(1, ids...)
	s.tell(timely)
	s.come(1, timely...)
	a.crash()
	s.b.pool(asleep, 1, 1)
	s.b.pool(waking, 1, 1)
	b := s.start()
	s.come(2, ids...)
	b.crash()
	s.start()
	s.judge()
	t.Logf("killed at %d points", len(ids)+len(timely)-strings.Count(strings.Join(ids, " "), "heard-"))
}

// TestKilledWhileLettingGo kills an executor that gives its partition back, before each effect of that, in every state.
func TestKilledWhileLettingGo(t *testing.T) {
	s := newTransitions(t)
	for state, way := range whenLetGo {
		for i, effect := range rowsOfTheTable()[row{state, at.Abandoned}].Do {
			a := way
			a.first = point{state, at.Abandoned, effect}
			s.add(strings.ReplaceAll(fmt.Sprintf("%s.%d", state, i), "_", "-"), a)
		}
	}
	var others []string
	for id, a := range s.acts {
		if a.first.state != at.Claimed && id != "holder" {
			others = append(others, id)
		}
	}
	a := s.start()
	t.Cleanup(func() { close(s.release) })
	time.Sleep(300 * time.Millisecond) // the signals are read
	s.tell([]string{"holder"})
	s.b.change("holder/1", "running")
	s.tell(slices.DeleteFunc(slices.Sorted(maps.Keys(s.acts)), func(id string) bool { return id == "holder" }))
	for id, act := range s.acts {
		if id != "holder" {
			s.b.change(id+"/1", string(act.first.state))
		}
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		a.end()
	}()
	require.Eventually(t, func() bool {
		missing := s.missing(1)
		return !slices.ContainsFunc(others, func(id string) bool { return slices.Contains(missing, id) })
	}, patience, 20*time.Millisecond, "they are let go")
	close(s.leaving) // what stood still behind its claim sees it too
	s.come(1, slices.Collect(maps.Keys(s.acts))...)
	a.crash()
	s.b.pool(asleep, 1, 1)
	s.start()
	s.judge()
	a.network.revive()
	t.Cleanup(func() { <-left })
}
