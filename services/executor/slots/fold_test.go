package slots_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/executor/slots"
)

var began = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// log is a fold that is given one record after the other.
type log struct {
	*slots.Fold
	at  time.Time
	seq int64
}

func newLog(c event.Caps) *log {
	l := &log{Fold: slots.New(), at: began}
	l.apply(event.SlotRecord{Kind: event.SlotCaps, Caps: &c})
	return l
}

func (l *log) apply(r event.SlotRecord) []string {
	var ids []string
	for _, g := range l.Apply(l.Next(), l.at, r) {
		ids = append(ids, g.AttemptID)
	}
	return ids
}

// record is one of an owner of partition 0.
func record(kind event.SlotKind, owner string, epoch, seq int64, w event.SlotWant) event.SlotRecord {
	return event.SlotRecord{Kind: kind, Owner: owner, Epoch: epoch, Seq: seq, SlotWant: w}
}

func (l *log) ask(w event.SlotWant) []string {
	l.seq++
	return l.apply(record(event.SlotAsk, "a", 1, l.seq, w))
}

func (l *log) free(id string) []string {
	return l.apply(record(event.SlotFree, "a", 1, l.seq, event.SlotWant{AttemptID: id}))
}

// on is a wish for a slot of cluster c, whose Task came at a second after the beginning.
func on(id string, second int) event.SlotWant {
	return event.SlotWant{
		AttemptID: id, Cluster: "c", Queue: "q", Tenant: "t", Since: began.Add(time.Duration(second) * time.Second), Expires: began.Add(time.Hour),
	}
}

func capped(n int) event.Caps { return event.Caps{Clusters: map[string]int{"c": n}} }

func TestWhatHasRoomIsGranted(t *testing.T) {
	l := newLog(capped(2))
	require.Equal(t, []string{"a"}, l.ask(on("a", 1)))
	require.Equal(t, []string{"b"}, l.ask(on("b", 2)))
	require.Empty(t, l.ask(on("d", 4)))
	require.Empty(t, l.ask(on("c", 3)), "it came later, and its Task earlier")
	urgent := on("e", 5)
	urgent.Priority = 1
	require.Empty(t, l.ask(urgent))
	require.Equal(t, []slots.Full{{Kind: "cluster", Name: "c", Held: 2, Cap: 2}}, l.Why(urgent))
	require.Equal(t, []string{"e"}, l.free("a"))
	require.Equal(t, []string{"c"}, l.free("e"))
	require.Empty(t, l.free("d"), "one that waits may leave")
	require.Empty(t, l.free("b"), "then nobody is left")
	require.Equal(t, 1, l.Held("c"))
}

func TestACapHoldsUpNobodyElse(t *testing.T) {
	l := newLog(event.Caps{
		Clusters: map[string]int{"c": 4}, Queues: map[string]map[string]int{"c": {"small": 1}}, Tenants: map[string]int{"vip": 3, "free": 0}, Tenant: 1,
	})
	ask := func(id, queue, tenant string) bool {
		w := on(id, 0)
		w.Queue, w.Tenant = queue, tenant
		return len(l.ask(w)) == 1
	}
	require.True(t, ask("a", "big", "one"))
	require.False(t, ask("b", "big", "one"), "any tenant has one")
	require.True(t, ask("c", "small", "vip"))
	require.False(t, ask("d", "small", "vip"), "the queue has one")
	require.True(t, ask("e", "big", "vip"))
	require.True(t, ask("f", "big", "free"), "0 is no cap")
	require.False(t, ask("g", "big", "free"), "the cluster is full")
	require.Equal(t, []string{"b"}, l.free("a"), "both its cluster and its tenant have room")
	require.Equal(t, []string{"d"}, l.free("c"))
}

func TestALowerCapGrantsNothingUntilBelowIt(t *testing.T) {
	l := newLog(capped(5))
	for i := range 5 {
		require.Len(t, l.ask(on(fmt.Sprint(i), i)), 1)
	}
	require.Empty(t, l.ask(on("waits", 9)))
	lower := capped(2)
	require.Empty(t, l.apply(event.SlotRecord{Kind: event.SlotCaps, Caps: &lower}))
	require.Equal(t, 5, l.Held("c"), "nothing is taken away")
	for i := range 3 {
		require.Empty(t, l.free(fmt.Sprint(i)))
	}
	require.Equal(t, []string{"waits"}, l.free("3"), "one is left, of two")
	require.Empty(t, l.ask(on("more", 10)))
	none := event.Caps{}
	require.Equal(t, []string{"more"}, l.apply(event.SlotRecord{Kind: event.SlotCaps, Caps: &none}))
}

// Time is that of the records: whoever reads them later, or with a wrong clock, comes to the same.
func TestExpiryIsByTheLogsTime(t *testing.T) {
	l := newLog(capped(1))
	short := on("a", 0)
	short.Expires = began.Add(time.Minute)
	require.Len(t, l.ask(short), 1)
	require.Empty(t, l.ask(on("b", 1)))
	l.at = began.Add(59 * time.Second)
	require.Empty(t, l.apply(event.SlotRecord{Kind: event.SlotTick}))
	require.False(t, l.Overdue(l.at))
	require.True(t, l.Overdue(began.Add(time.Minute)))
	l.at = began.Add(time.Minute)
	require.Equal(t, []string{"b"}, l.apply(event.SlotRecord{Kind: event.SlotTick}))
	l.at = began.Add(30 * time.Second)
	require.Empty(t, l.ask(short), "a clock that goes back changes nothing: it has expired")
	require.Equal(t, 1, l.Len())
}

func TestANewOwner(t *testing.T) {
	l := newLog(capped(2))
	for i, id := range []string{"runs", "granted", "waits"} {
		l.apply(record(event.SlotAsk, "old", 1, int64(i+1), on(id, i)))
	}
	require.Equal(t, 2, l.Held("c"))
	require.Equal(t, []string{"runs"}, l.apply(record(event.SlotRun, "new", 2, 1, on("runs", 0))), "it goes on, under a new name")
	require.Equal(t, 2, l.Held("c"))
	require.Empty(t, l.apply(record(event.SlotTake, "new", 2, 2, event.SlotWant{})), "what had not been claimed is void")
	require.Equal(t, 1, l.Held("c"))
	require.Equal(t, 1, l.Len())

	before, lower := newLog(capped(2)), capped(1)
	before.apply(record(event.SlotRun, "old", 1, 1, on("b", 0)))
	before.apply(record(event.SlotAsk, "old", 1, 2, on("a", 0)))
	before.apply(event.SlotRecord{Kind: event.SlotCaps, Caps: &lower})
	require.Equal(t, []string{"a"}, before.apply(record(event.SlotAsk, "new", 2, 1, on("a", 0))), "asked for before the rest is void, it is kept")
	before.apply(record(event.SlotTake, "new", 2, 2, event.SlotWant{}))
	require.Equal(t, 1, before.Held("c"))

	// The old owner wakes up.
	require.Empty(t, l.apply(record(event.SlotAsk, "old", 1, 9, on("late", 9))))
	require.Empty(t, l.apply(record(event.SlotFree, "old", 1, 9, on("runs", 0))))
	require.Equal(t, 1, l.Held("c"))
	require.Equal(t, []string{"granted"}, l.apply(record(event.SlotAsk, "new", 2, 3, on("granted", 1))))
	require.Empty(t, l.apply(record(event.SlotFree, "new", 2, 1, on("granted", 1))), "a free of an ask before it")
	require.Equal(t, 2, l.Held("c"))
	l.apply(record(event.SlotFree, "new", 2, 3, on("granted", 1)))
	require.Equal(t, 1, l.Held("c"))
}

// What is at an engine counts, whatever the caps say.
func TestWhatRunsCounts(t *testing.T) {
	l := newLog(capped(1))
	for i := range 3 {
		require.Len(t, l.apply(record(event.SlotRun, "a", 1, int64(i), on(fmt.Sprint(i), i))), 1)
	}
	l.seq = 3
	require.Equal(t, 3, l.Held("c"))
	require.Empty(t, l.ask(on("b", 1)))
	require.Empty(t, l.free("0"))
	require.Empty(t, l.free("1"))
	require.Equal(t, []string{"b"}, l.free("2"))
}

func TestRepeatsAndNonsense(t *testing.T) {
	l := newLog(capped(1))
	a := record(event.SlotAsk, "a", 1, 1, on("a", 0))
	require.Len(t, l.apply(a), 1)
	require.Empty(t, l.apply(a), "a repeat")
	require.Empty(t, l.Apply(0, l.at, record(event.SlotFree, "a", 1, 1, on("a", 0))), "what was read before")
	for _, r := range []event.SlotRecord{
		{},
		{Kind: "new"},
		{Kind: event.SlotCaps},
		{Kind: event.SlotState},
		{Kind: event.SlotFree, Epoch: 1, SlotWant: on("unknown", 0)},
		{Kind: event.SlotAsk, Epoch: 1},
		{Kind: event.SlotAsk, SlotWant: on("b", 0)},
		{Kind: event.SlotFree, Partition: 4, Epoch: 9, SlotWant: on("a", 0)},
	} {
		require.Empty(t, l.apply(r))
	}
	require.Empty(t, l.Skip(l.Next(), l.at))
	require.Equal(t, 1, l.Held("c"))
	require.Equal(t, 1, l.Len())
}
