package slotlog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/services/executor/slotlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

// bench is a broker and the Logs of any number of executors.
type bench struct {
	t      *testing.T
	broker *streamtest.Broker
	part   int32
	limit  int // of a record of the topic
}

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel() // they mostly wait
	b := &bench{t: t, broker: streamtest.Start(t)}
	b.topic(1)
	return b
}

func (b *bench) topic(partitions int32) {
	b.broker.Topic(b.t, event.TopicSlots, partitions, map[string]string{"message.timestamp.type": "LogAppendTime"})
}

// executor has a partition of its own.
type executor struct {
	*slotlog.Log
	b    *bench
	part slotlog.Part
	end  func()
}

func (b *bench) start(caps event.Caps) *executor {
	b.t.Helper()
	deps := b.broker.Deps
	deps.Registry = nil // each has its own
	if b.limit > 0 {
		deps.MaxBytes = func(string) int { return b.limit }
	}
	l := slotlog.New(slotlog.Config{
		Owner: fmt.Sprint("executor", b.part), Kafka: b.broker.Config, Deps: deps, Log: b.broker.Deps.Log, StateEvery: 10,
	}, caps)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	e := &executor{Log: l, b: b, part: slotlog.Part{ID: b.part, Epoch: 1}}
	ended := false
	e.end = func() {
		if !ended {
			ended = true
			stop()
			require.NoError(b.t, <-done)
		}
	}
	b.t.Cleanup(e.end)
	b.part++
	l.Take(e.part, nil)
	return e
}

// asked is an ask under way.
type asked struct{ had, waited atomic.Int32 }

func (e *executor) ask(id string) *asked { return e.askFor(on(id)) }

func (e *executor) askFor(w event.SlotWant) *asked {
	a := &asked{}
	require.True(e.b.t, e.Needed(w))
	e.Ask(e.part, w, func(held bool) {
		if held {
			a.had.Add(1)
		} else {
			a.waited.Add(1)
		}
	})
	return a
}

func (e *executor) granted(a *asked) {
	e.b.t.Helper()
	require.Eventually(e.b.t, func() bool { return a.had.Load() == 1 }, patience, time.Millisecond)
}

// waits says that an ask is read, and for what it waits.
func (e *executor) waits(id, why string) {
	e.b.t.Helper()
	require.Eventually(e.b.t, func() bool { return strings.Contains(e.Why(id), why) }, patience, time.Millisecond, "want %q", why)
}

func on(id string) event.SlotWant {
	return event.SlotWant{AttemptID: id, Cluster: "c", Queue: "q", Tenant: "t", Since: time.Now().UTC(), Expires: time.Now().Add(time.Minute).UTC()}
}

func capped(n int) event.Caps { return event.Caps{Clusters: map[string]int{"c": n}} }

func (b *bench) kinds() map[event.SlotKind]int {
	out := map[event.SlotKind]int{}
	for _, rec := range b.broker.Records(b.t, event.TopicSlots) {
		var r event.SlotRecord
		require.NoError(b.t, json.Unmarshal(rec.Value, &r))
		out[r.Kind]++
	}
	return out
}

func TestTwoShareACap(t *testing.T) {
	b := newBench(t)
	one := b.start(capped(1))
	a := one.ask("a")
	one.granted(a)
	two := b.start(capped(1))
	w := two.ask("b")
	two.waits("b", "cluster c has 1 of 1")
	select {
	case <-two.Read("b"):
	case <-time.After(patience):
		t.Fatal("nobody was told")
	}
	require.Nil(t, two.Read("unknown"))
	require.Empty(t, one.Why("a"))
	require.Equal(t, 1, two.Held("c"))
	one.Free("a")
	one.Free("a")
	two.granted(w)
	two.Free("b")
	require.Eventually(t, func() bool { return one.Held("c") == 0 }, patience, time.Millisecond)
	require.Equal(t, map[event.SlotKind]int{event.SlotTake: 2, event.SlotCaps: 1, event.SlotAsk: 2, event.SlotFree: 2}, b.kinds())
	require.Equal(t, []int32{1, 0}, []int32{a.had.Load(), a.waited.Load()})
	require.Equal(t, []int32{1, 1}, []int32{w.had.Load(), w.waited.Load()}, "it was told that it has to wait, too")
}

func TestWithoutACapNothingIsWritten(t *testing.T) {
	b := newBench(t)
	e := b.start(event.Caps{})
	require.False(t, e.Needed(on("a")))
	require.NoError(t, e.Err())
	e.Runs(e.part, on("a"))
	e.Free("a")
	e.Runs(e.part, on("b"))
	require.Empty(t, b.broker.Records(t, event.TopicSlots))
	e.SetCaps(event.Caps{Tenants: map[string]int{"t": 1, "other": 0}})
	require.True(t, e.Needed(on("c")))
	w := on("d")
	w.Tenant = "other"
	require.False(t, e.Needed(w), "no cap applies to it")
	c := e.ask("c")
	e.waits("c", "tenant t has 1 of 1") // what ran before there was a cap
	e.Free("b")
	e.granted(c)
}

func TestANewCapHoldsForAll(t *testing.T) {
	b := newBench(t)
	one, two := b.start(capped(3)), b.start(capped(3))
	for _, id := range []string{"a", "b"} {
		one.granted(one.ask(id))
	}
	two.granted(two.ask("c"))
	one.SetCaps(capped(2))
	d := two.ask("d")
	two.waits("d", "cluster c has 3 of 2")
	one.Free("a")
	two.waits("d", "cluster c has 2 of 2")
	one.Free("b")
	two.granted(d)

	w := on("e")
	w.Cluster = "d"
	require.False(t, two.Needed(w))
	two.Runs(two.part, w)
	one.SetCaps(event.Caps{Clusters: map[string]int{"c": 2, "d": 2}})
	require.Eventually(t, func() bool { return two.Needed(w) && one.Held("d") == 1 }, patience, time.Millisecond, "what runs already counts")
	w.AttemptID = "f"
	two.granted(two.askFor(w))
}

// What an executor has left is its next owner's: what had been claimed goes on, the rest is void.
func TestAPartitionThatMoves(t *testing.T) {
	b := newBench(t)
	one, two := b.start(capped(2)), b.start(capped(2))
	one.granted(one.ask("runs"))
	one.granted(one.ask("granted"))
	waits := one.ask("waits")
	one.waits("waits", "2 of 2")
	part := slotlog.Part{ID: one.part.ID, Epoch: 2}
	two.Take(part, []event.SlotWant{on("runs")})
	two.granted(two.ask("x"))
	require.Equal(t, 2, two.Held("c"))
	one.Free("runs") // it does not know yet
	two.ask("y")
	two.waits("y", "2 of 2")
	require.Zero(t, waits.had.Load())
	one.Drop(one.part.ID)
	require.Empty(t, one.Why("waits"))
	two.Free("runs")
	require.Eventually(t, func() bool { return two.Why("y") == "" && two.Held("c") == 2 }, patience, time.Millisecond)
}

func TestWhatExpiresComesBack(t *testing.T) {
	b := newBench(t)
	dies, lives := b.start(capped(1)), b.start(capped(1))
	w := on("a")
	w.Expires = time.Now().Add(1500 * time.Millisecond).UTC()
	dies.granted(dies.askFor(w))
	dies.Drop(dies.part.ID)
	a := lives.ask("b")
	lives.waits("b", "1 of 1")
	lives.granted(a)
	require.Positive(t, b.kinds()[event.SlotTick], "somebody has let time pass")
}

// Who starts reads a state and what is behind it, and comes to the same.
func TestAStateSparesTheRest(t *testing.T) {
	b := newBench(t)
	one := b.start(capped(2))
	one.granted(one.ask("stays"))
	for i := range 40 {
		id := fmt.Sprint(i)
		one.granted(one.ask(id))
		one.Free(id)
	}
	one.granted(one.ask("stays too"))
	var state int64
	require.Eventually(t, func() bool {
		for _, rec := range b.broker.Records(t, event.TopicSlots) {
			if strings.Contains(string(rec.Value), `"kind":"state"`) {
				state = rec.Offset
			}
		}
		return state > 60
	}, patience, 10*time.Millisecond)
	var r event.SlotRecord
	for _, rec := range b.broker.Records(t, event.TopicSlots) {
		if rec.Offset == state {
			require.NoError(t, json.Unmarshal(rec.Value, &r))
		}
	}
	require.NoError(t, b.broker.DeleteRecords(event.TopicSlots, 0, r.State.Next))
	two := b.start(capped(2))
	w := two.ask("waits")
	two.waits("waits", "cluster c has 2 of 2")
	one.Free("stays")
	two.granted(w)
	require.Less(t, b.kinds()[event.SlotState], 12, "one in ten")
	require.Zero(t, b.kinds()[event.SlotCaps], "they are in the state")
}

// A state that no record can hold is left out, and holds nobody up.
func TestAStateThatIsTooLarge(t *testing.T) {
	b := newBench(t)
	b.limit = 4000
	one := b.start(event.Caps{Clusters: map[string]int{"c": 1, "d": 9}})
	one.granted(one.ask("holds"))
	for i := range 30 {
		one.ask(fmt.Sprint("waits", i))
	}
	for i := range 50 {
		w := on(fmt.Sprint(i))
		w.Cluster = "d"
		one.granted(one.askFor(w))
		one.Free(w.AttemptID)
	}
	require.Zero(t, b.kinds()[event.SlotState])
	two := b.start(event.Caps{Clusters: map[string]int{"c": 1, "d": 9}})
	two.ask("late")
	two.waits("late", "1 of 1")
	for i := range 30 {
		one.Free(fmt.Sprint("waits", i))
	}
	one.Free("holds")
	require.Eventually(t, func() bool { return two.Why("late") == "" && one.Held("c") == 1 }, patience, time.Millisecond)
}

// A state that is left out is none that the broker owes an answer for, even if nothing is written after it.
func TestAStateThatIsTooLargeComesLast(t *testing.T) {
	b := newBench(t)
	b.limit = 4000
	one := b.start(event.Caps{Clusters: map[string]int{"c": 1, "d": 1}})
	one.granted(one.ask("holds"))
	for i := range 30 {
		one.ask(fmt.Sprint("waits", i))
	}
	one.waits("waits29", "1 of 1")
	// With a take and the caps that is 33 records, and twice the 31 that are asked for bring a state: the 15th free does.
	for i := range 15 {
		w := on(fmt.Sprint(i))
		w.Cluster = "d"
		one.granted(one.askFor(w))
		one.Free(w.AttemptID)
		require.Eventually(t, func() bool { return one.Held("d") == 0 }, patience, time.Millisecond)
	}
	require.Never(t, func() bool { return one.Err() != nil }, 4*time.Second, 10*time.Millisecond)
}

func TestATopicThatCantBeHad(t *testing.T) {
	b := newBench(t)
	one := b.start(capped(2))
	one.granted(one.ask("a"))
	turned := one.Turned()
	fault := b.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: event.TopicSlots, Err: kerr.NotLeaderForPartition, Count: -1})
	w := one.ask("b")
	one.waits("b", "the slots that all executors share can't be had: the broker has not answered for 2s")
	<-turned
	turned = one.Turned()
	require.ErrorContains(t, one.Err(), "not answered")
	for i := range 50 { // they come and give up while nothing can be written
		id := fmt.Sprint("c", i)
		one.ask(id)
		one.Free(id)
	}
	fault.Remove()
	one.granted(w)
	<-turned
	require.Equal(t, map[event.SlotKind]int{event.SlotTake: 1, event.SlotCaps: 1, event.SlotAsk: 2}, b.kinds(), "what was never asked need not be given back")
	require.NoError(t, one.Err())
	require.Empty(t, one.Why("b"))
}

func TestATopicThatIsMadeAnew(t *testing.T) {
	b := newBench(t)
	one := b.start(capped(1))
	one.granted(one.ask("a"))
	w := one.ask("b")
	one.waits("b", "1 of 1")
	require.NoError(t, b.broker.DeleteTopic(event.TopicSlots))
	b.topic(2)
	one.waits("b", "it has 2 partitions and must have one")
	require.NoError(t, b.broker.DeleteTopic(event.TopicSlots))
	b.topic(1)
	one.waits("b", "cluster c has 1 of 1")
	one.Free("a")
	one.granted(w)
}

// An executor that is newer than the topics says what is missing, and goes on when it is there.
func TestATopicThatIsMissing(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.broker.DeleteTopic(event.TopicSlots))
	one := b.start(capped(1))
	w := one.ask("a")
	one.waits("a", "there is no topic "+b.broker.Config.Topic(event.TopicSlots)+"; `pointsman topics apply` makes it")
	require.ErrorContains(t, one.Err(), "topics apply")
	b.topic(1)
	one.granted(w)
	require.NoError(t, one.Err())
}

// Times that are not the broker's are said, once.
func TestTimesOfTheWriters(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.broker.DeleteTopic(event.TopicSlots))
	b.broker.Topic(t, event.TopicSlots, 1, map[string]string{"message.timestamp.type": "CreateTime"})
	said := make(said, 1000)
	b.broker.Deps.Log = slog.New(slog.NewTextHandler(said, nil))
	one := b.start(capped(2))
	one.granted(one.ask("a"))
	one.granted(one.ask("b"))
	one.end()
	n := 0
	for len(said) > 0 {
		n += strings.Count(<-said, "message.timestamp.type=LogAppendTime")
	}
	require.Equal(t, 1, n)
}

// said are lines of a log.
type said chan string

func (s said) Write(b []byte) (int, error) {
	s <- string(b)
	return len(b), nil
}

func TestNonsenseInTheTopic(t *testing.T) {
	b := newBench(t)
	producer, err := stream.NewProducer(b.broker.Config, b.broker.Deps, "stranger")
	require.NoError(t, err)
	t.Cleanup(producer.Close)
	for _, value := range []string{"", "null", "no JSON", `{"kind":5}`, `{"kind":"state","state":{"next":99}}`, `{"kind":"caps"}`, `{"kind":"ask","epoch":1}`} {
		require.NoError(t, producer.Write(t.Context(), &kgo.Record{Topic: event.TopicSlots, Key: []byte("x"), Value: []byte(value)}))
	}
	one := b.start(capped(1))
	one.granted(one.ask("a"))
	require.Equal(t, 1, one.Held("c"))
}

// What a process still has to give back at its end it gives back.
func TestTheEndGivesBack(t *testing.T) {
	b := newBench(t)
	one, two := b.start(capped(1)), b.start(capped(1))
	one.granted(one.ask("a"))
	w := two.ask("b")
	two.waits("b", "1 of 1")
	one.Free("a")
	one.end()
	two.granted(w)
}

// After a quiet week retention has taken all there was.
func TestALogThatRetentionHasEmptied(t *testing.T) {
	b := newBench(t)
	one := b.start(capped(1))
	one.granted(one.ask("a"))
	one.Free("a")
	require.Eventually(t, func() bool { return one.Held("c") == 0 }, patience, time.Millisecond)
	one.end()
	require.NoError(t, b.broker.DeleteRecords(event.TopicSlots, 0, int64(len(b.broker.Records(t, event.TopicSlots)))))
	two := b.start(capped(1))
	two.granted(two.ask("b"))
	two.ask("c")
	two.waits("c", "1 of 1")
}

// Caps that are taken back before anybody has read them don't come to hold.
func TestCapsThatAreTakenBackAtOnce(t *testing.T) {
	b := newBench(t)
	one := b.start(capped(1))
	one.granted(one.ask("a"))
	one.SetCaps(capped(5))
	one.SetCaps(capped(1))
	require.Eventually(t, func() bool { return b.kinds()[event.SlotCaps] == 3 }, patience, time.Millisecond)
	one.ask("b")
	one.waits("b", "1 of 1")
	two := b.start(capped(1))
	two.ask("c")
	two.waits("c", "1 of 1")
	require.Equal(t, 3, b.kinds()[event.SlotCaps], "those of the log are the right ones")
}
