package slots_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/executor/slots"
)

// world is executors that share caps, over one log that each reads with a lag of its own. They are slow, stand still for any
// time, die, and take partitions from each other; whoever lost one may not know. The ledger of a partition lets only its owner
// claim, which is pkg/ledger's to show; an attempt that is claimed runs at the engine until somebody ends it, or to its deadline.
type world struct {
	t         *rapid.T
	now       time.Time
	records   []stamped
	all       *slots.Fold // of the whole log
	executors []*executor
	epochs    map[int32]int64             // of the ledgers
	open      map[string]event.SlotRecord // the newest ask of attempts that are not claimed
	claimed   map[string]event.SlotRecord
	engine    map[string]event.SlotWant
	tasks     int
}

type stamped struct {
	at time.Time
	r  event.SlotRecord
}

// executor knows what it has read, and believes that it owns what it took.
type executor struct {
	name    string
	fold    *slots.Fold
	seq     int64
	owns    map[int32]int64
	asked   map[string]event.SlotRecord
	granted map[string]event.SlotRecord // by its own reading
	runs    map[string]event.SlotRecord
}

const parts = 2

// running is how long a Task may run, and after which its slot comes back.
const running, expiry = 40 * time.Second, 50 * time.Second

func (w *world) append(r event.SlotRecord) {
	before := w.all.Snapshot()
	w.records = append(w.records, stamped{w.now, r})
	granted := w.all.Apply(int64(len(w.records)-1), w.now, r)
	for _, g := range granted {
		e, ok := w.all.Entry(g.AttemptID)
		require.True(w.t, ok && e.Held)
		if r.Kind == event.SlotRun && r.AttemptID == g.AttemptID {
			continue // it runs, whatever the caps say
		}
		i := slices.IndexFunc(before.Entries, func(b event.SlotEntry) bool { return b.AttemptID == g.AttemptID })
		if i >= 0 && before.Entries[i].Held {
			continue // it held it before
		}
		for p, n := range w.counts(func(e event.SlotEntry) bool { return e.Held }) {
			if most := capOf(w.all.Caps(), p); most > 0 && slices.Contains(placesOf(e.SlotWant), p) {
				require.LessOrEqual(w.t, n, most, "%v after %v", p, r)
			}
		}
	}
	for _, e := range w.all.Snapshot().Entries {
		if !e.Held {
			require.NotEmpty(w.t, w.all.Why(e.SlotWant), "%v waits, and there is room", e)
		}
	}
}

func placesOf(w event.SlotWant) []string {
	return []string{"cluster " + w.Cluster, "queue " + w.Cluster + " " + w.Queue, "tenant " + w.Tenant}
}

func capOf(c event.Caps, place string) int {
	for name, n := range c.Clusters {
		if place == "cluster "+name {
			return n
		}
	}
	for name, queues := range c.Queues {
		for q, n := range queues {
			if place == "queue "+name+" "+q {
				return n
			}
		}
	}
	for name, n := range c.Tenants {
		if place == "tenant "+name {
			return n
		}
	}
	if len(place) > 7 && place[:7] == "tenant " {
		return c.Tenant
	}
	return 0
}

// counts says how many are at each place, by the entries of the whole log.
func (w *world) counts(of func(event.SlotEntry) bool) map[string]int {
	out := map[string]int{}
	for _, e := range w.all.Snapshot().Entries {
		if of(e) {
			for _, p := range placesOf(e.SlotWant) {
				out[p]++
			}
		}
	}
	return out
}

// invariant: what is at the engine is counted.
func (w *world) check() {
	for id := range w.engine {
		e, ok := w.all.Entry(id)
		require.True(w.t, ok && e.Held, "%s runs and holds no slot", id)
	}
}

func (w *world) write(e *executor, kind event.SlotKind, partition int32, want event.SlotWant) event.SlotRecord {
	e.seq++
	r := event.SlotRecord{Kind: kind, Owner: e.name, Seq: e.seq, Partition: partition, Epoch: e.owns[partition], SlotWant: want}
	w.append(r)
	return r
}

// free is written for the newest ask of the attempt.
func (w *world) free(e *executor, asked event.SlotRecord) {
	asked.Kind = event.SlotFree
	w.append(asked)
}

func (w *world) read(e *executor, to int64) {
	for e.fold.Next() < to {
		at := e.fold.Next()
		for _, g := range e.fold.Apply(at, w.records[at].at, w.records[at].r) {
			if a, ok := e.asked[g.AttemptID]; ok && g.Owner == e.name && g.Seq == a.Seq {
				delete(e.asked, g.AttemptID)
				e.granted[g.AttemptID] = a
			}
		}
	}
}

// take gives a partition to an executor, whatever others believe.
func (w *world) take(e *executor, p int32) {
	w.epochs[p]++
	e.owns[p] = w.epochs[p]
	for _, own := range []map[string]event.SlotRecord{e.asked, e.granted, e.runs} {
		maps.DeleteFunc(own, func(_ string, r event.SlotRecord) bool { return r.Partition == p })
	}
	for _, id := range slices.Sorted(maps.Keys(w.claimed)) {
		if c := w.claimed[id]; c.Partition == p {
			e.runs[id] = w.write(e, event.SlotRun, p, c.SlotWant)
			w.claimed[id] = e.runs[id]
		}
	}
	w.write(e, event.SlotTake, p, event.SlotWant{})
	for _, id := range slices.Sorted(maps.Keys(w.open)) { // its decision is read again
		if o := w.open[id]; o.Partition == p && rapid.Bool().Draw(w.t, "asks again") {
			w.ask(e, p, o.SlotWant)
		}
	}
}

func (w *world) ask(e *executor, p int32, want event.SlotWant) {
	r := w.write(e, event.SlotAsk, p, want)
	e.asked[want.AttemptID], w.open[want.AttemptID] = r, r
}

// pick draws one of the keys of a map.
func pick[V any](t *rapid.T, m map[string]V) (string, bool) {
	if len(m) == 0 {
		return "", false
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m))).Draw(t, "which"), true
}

func (w *world) step(e *executor) {
	t := w.t
	switch rapid.SampledFrom([]string{"ask", "ask", "read", "read", "read", "submit", "submit", "end", "end", "give back", "take", "wait"}).Draw(t, "does") {
	case "ask":
		p := rapid.Int32Range(0, parts-1).Draw(t, "partition")
		if e.owns[p] == 0 {
			return
		}
		w.tasks++
		id := fmt.Sprint(w.tasks)
		w.ask(e, p, event.SlotWant{
			AttemptID: id, Cluster: rapid.SampledFrom([]string{"c", "d"}).Draw(t, "cluster"), Queue: rapid.SampledFrom([]string{"q", "r"}).Draw(t, "queue"),
			Tenant: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tenant"), Priority: rapid.IntRange(0, 1).Draw(t, "priority"), Since: w.now, Expires: w.now.Add(expiry),
		})
	case "read":
		w.read(e, rapid.Int64Range(e.fold.Next(), int64(len(w.records))).Draw(t, "to"))
	case "submit":
		id, ok := pick(t, e.granted)
		if !ok {
			return
		}
		r := e.granted[id]
		delete(e.granted, id)
		if r.Epoch != w.epochs[r.Partition] || w.claimed[id].AttemptID != "" || !w.now.Before(r.Since.Add(running)) { // the ledger refuses its claim
			w.free(e, r)
			return
		}
		delete(w.open, id)
		e.runs[id], w.claimed[id], w.engine[id] = r, r, r.SlotWant
	case "end": // the engine is done, or was told to stop
		id, ok := pick(t, e.runs)
		if !ok {
			return
		}
		r := e.runs[id]
		delete(e.runs, id)
		delete(w.engine, id)
		if r.Epoch == w.epochs[r.Partition] { // else its new owner ends it
			delete(w.claimed, id)
		}
		w.free(e, r)
	case "give back":
		if id, ok := pick(t, e.asked); ok {
			r := e.asked[id]
			w.free(e, r)
			delete(e.asked, id)
			if r.Epoch == w.epochs[r.Partition] {
				delete(w.open, id)
			}
		}
	case "take":
		w.take(e, rapid.Int32Range(0, parts-1).Draw(t, "partition"))
	case "wait":
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
		maps.DeleteFunc(w.engine, func(_ string, s event.SlotWant) bool { return !w.now.Before(s.Since.Add(running)) })
		w.append(event.SlotRecord{Kind: event.SlotTick})
	}
}

// TestCapsHoldOverAllInterleavings: whatever executors do, and however late they learn of each other, nothing is granted over a cap
// and nothing runs that is not counted; whoever reads the log comes to the same, from its start or from a snapshot; and once all that run
// have ended, all that waited have had their turn.
func TestCapsHoldOverAllInterleavings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{
			t:   t,
			now: began, all: slots.New(), epochs: map[int32]int64{}, open: map[string]event.SlotRecord{}, claimed: map[string]event.SlotRecord{}, engine: map[string]event.SlotWant{},
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "executors") {
			w.executors = append(w.executors, &executor{
				name: fmt.Sprint("executor", i), fold: slots.New(), owns: map[int32]int64{},
				asked: map[string]event.SlotRecord{}, granted: map[string]event.SlotRecord{}, runs: map[string]event.SlotRecord{},
			})
		}
		w.append(event.SlotRecord{Kind: event.SlotCaps, Caps: drawCaps(t)})
		for p := range int32(parts) {
			w.take(w.executors[int(p)%len(w.executors)], p)
		}
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			w.step(w.executors[rapid.IntRange(0, len(w.executors)-1).Draw(t, "who")])
			if rapid.IntRange(0, 30).Draw(t, "caps") == 0 {
				w.append(event.SlotRecord{Kind: event.SlotCaps, Caps: drawCaps(t)})
			}
			w.check()
		}
		w.settle()
	})
}

func drawCaps(t *rapid.T) *event.Caps {
	n := rapid.IntRange(0, 3)
	return &event.Caps{
		Clusters: map[string]int{"c": n.Draw(t, "cap of c")}, Queues: map[string]map[string]int{"d": {"q": n.Draw(t, "cap of d's q")}},
		Tenants: map[string]int{"x": n.Draw(t, "cap of x")}, Tenant: n.Draw(t, "cap of a tenant"),
	}
}

// settle lets one executor take everything over and end it.
func (w *world) settle() {
	half := w.all.Snapshot()
	last := w.executors[len(w.executors)-1]
	for p := range int32(parts) {
		w.take(last, p)
	}
	w.read(last, int64(len(w.records)))
	require.Empty(w.t, cmp.Diff(w.all.Snapshot(), last.fold.Snapshot()), "all come to the same")
	data, err := json.Marshal(half)
	require.NoError(w.t, err)
	var copied event.SlotsSnapshot
	require.NoError(w.t, json.Unmarshal(data, &copied))
	behind := slots.From(copied)
	for i, one := range w.records {
		behind.Apply(int64(i), one.at, one.r)
	}
	require.Empty(w.t, cmp.Diff(w.all.Snapshot(), behind.Snapshot()), "from a snapshot too")

	for range 10 { // those that come last
		w.tasks++
		id := fmt.Sprint(w.tasks)
		w.ask(last, 0, event.SlotWant{AttemptID: id, Cluster: "c", Queue: "q", Tenant: "x", Since: w.now, Expires: w.now.Add(expiry)})
	}
	for rounds := 0; w.all.Len() > 0; rounds++ {
		require.Less(w.t, rounds, 100, "somebody waits for ever: %v", w.all.Snapshot().Entries)
		w.read(last, int64(len(w.records)))
		for id := range last.granted {
			last.runs[id], w.claimed[id], w.engine[id] = last.granted[id], last.granted[id], last.granted[id].SlotWant
		}
		clear(last.granted)
		w.check()
		for _, id := range slices.Sorted(maps.Keys(last.runs)) {
			r := last.runs[id]
			delete(last.runs, id)
			delete(w.engine, id)
			delete(w.claimed, id)
			w.free(last, r)
		}
	}
	require.Empty(w.t, w.counts(func(event.SlotEntry) bool { return true }))
}
