package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
)

// world is one ledger partition with everything around it that can go wrong: processes that stall (nothing happens to them for a
// while), crash and overlap, records that arrive late or after their writer died, an engine that sees a submission a while after it
// left, and tasks with several attempts. Every choice comes from pick, so that rapid can shrink a failure.
type world struct {
	rules rules
	pick  func(n int, label string) int

	now     time.Duration // the broker's clock, and everybody's, but for a constant
	log     []entry
	orphans [][]Record // what dead processes had sent
	procs   [3]*proc   // the group may believe in each of them
	starts  int
	saved   Anchor // the committed checkpoint
	tasks   []string
	runs    map[string]*engineRun
	flights []flight
	emitted map[string]map[string]bool // task -> distinct outcomes published
	nonce   int
	broken  string // first violated invariant
}

type entry struct {
	r  Record
	at time.Duration
}

type engineRun struct {
	submissions int
	state       string // "", running, finished
	failed      bool
}

type flight struct {
	key string
	due time.Duration
}

type proc struct {
	owner  string
	skew   time.Duration
	fold   *Fold
	outbox []Record
	lease  string // "", sent, held
	epoch  int64
	work   map[string]*work
	done   map[string]bool
}

type work struct {
	n       int
	d       *Driver
	waiting bool // a claim or an end is on its way and not read back
}

const (
	tick     = time.Second
	lifetime = 40 * tick
	attempts = 2
)

var (
	epochStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	modelGuard = Guard{Leave: 4 * tick, Settle: tick}
)

func newWorld(r rules) *world {
	return &world{rules: r, tasks: []string{"a", "b"}, runs: map[string]*engineRun{}, emitted: map[string]map[string]bool{}}
}

func (w *world) time(d time.Duration) time.Time { return epochStart.Add(d) }
func (w *world) deadline(task string) time.Duration {
	return lifetime + time.Duration(slices.Index(w.tasks, task))*10*tick
}

func (w *world) fail(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

// actions are what can happen next. Names are stable so that a seed means the same thing tomorrow.
func (w *world) actions() []func() {
	some := func(f func(*proc)) func() {
		return func() {
			if p := w.procs[w.pick(len(w.procs), "proc")]; p != nil {
				f(p)
			}
		}
	}
	return []func(){
		func() { w.start(w.pick(len(w.procs), "proc")) },
		func() { w.crash(w.pick(len(w.procs), "proc")) },
		func() { w.tick(1 + w.pick(3, "ticks")) },
		func() { w.tick(1) },
		func() { w.deliverOrphan(w.pick(4, "drop") == 0) },
		func() { w.finishRun() },
		some(w.deliver), some(w.deliver), some(w.deliver),
		some(w.read), some(w.read), some(w.read), some(w.read),
		some(w.takeOver),
		some(w.step), some(w.step), some(w.step), some(w.step), some(w.step), some(w.step),
		some(w.checkpoint),
	}
}

func (w *world) start(i int) {
	if w.procs[i] != nil {
		return
	}
	w.starts++
	w.procs[i] = &proc{
		owner: fmt.Sprintf("p%d", w.starts), skew: time.Duration(w.pick(1000, "skew")) * tick,
		fold: NewFold(w.saved), work: map[string]*work{}, done: map[string]bool{},
	}
}

func (w *world) crash(i int) {
	if p := w.procs[i]; p != nil {
		if len(p.outbox) > 0 {
			w.orphans = append(w.orphans, p.outbox)
		}
		w.procs[i] = nil
	}
}

func (w *world) tick(n int) {
	w.now += time.Duration(n) * tick
	w.flights = slices.DeleteFunc(w.flights, func(f flight) bool {
		if f.due > w.now {
			return false
		}
		w.arrive(f.key)
		return true
	})
}

func (w *world) arrive(key string) {
	if r := w.runs[key]; r.state == "" {
		r.state = "running"
	}
}

func (w *world) finishRun() {
	for _, task := range w.tasks {
		for n := 1; n <= attempts; n++ {
			if r := w.runs[AttemptKey(task, n)]; r != nil && r.state == "running" && w.pick(2, "finish") == 0 {
				r.state, r.failed = "finished", w.pick(2, "failed") == 0
			}
		}
	}
}

func (w *world) append(r Record) {
	b, err := r.Encode()
	if err == nil {
		r, err = Decode(b) // what is read is what was written, not the value in the writer's memory
	}
	if err != nil {
		w.fail("record does not survive: %v", err)
	}
	w.log = append(w.log, entry{r, w.now})
}

func (w *world) deliver(p *proc) {
	if len(p.outbox) > 0 {
		w.append(p.outbox[0])
		p.outbox = p.outbox[1:]
	}
}

func (w *world) deliverOrphan(drop bool) {
	if len(w.orphans) == 0 {
		return
	}
	i := w.pick(len(w.orphans), "orphan")
	if !drop {
		w.append(w.orphans[i][0])
	}
	if w.orphans[i] = w.orphans[i][1:]; drop || len(w.orphans[i]) == 0 {
		w.orphans = slices.Delete(w.orphans, i, i+1)
	}
}

// takeOver: the group hands the partition to a process, whatever others believe. It reads all there is, then writes its lease.
func (w *world) takeOver(p *proc) {
	if p.lease != "" {
		return
	}
	for int(p.fold.Next()) < len(w.log) {
		w.read(p)
	}
	r := p.fold.Lease(0, p.owner)
	p.lease, p.epoch = "sent", r.Epoch
	p.outbox = append(p.outbox, r)
}

func (w *world) drop(p *proc) {
	p.lease, p.work, p.done = "", map[string]*work{}, map[string]bool{}
}

func (w *world) read(p *proc) {
	i := p.fold.Next()
	if int(i) >= len(w.log) {
		return
	}
	e := w.log[i]
	v := p.fold.Apply(i, w.time(e.at), e.r)
	mine := e.r.Owner == p.owner && e.r.Epoch == p.epoch
	switch {
	case e.r.Kind == KindLease && p.lease == "sent" && mine:
		if p.lease = "held"; !v.Accepted {
			w.drop(p)
		}
	case p.lease == "held" && !p.fold.Holds(p.epoch, p.owner):
		w.drop(p)
	case p.lease == "held" && mine:
		k := p.work[e.r.TaskID]
		if k == nil || k.d.Key() != e.r.Key {
			return
		}
		switch e.r.Kind {
		case KindClaim:
			k.d.ClaimRead(v, p.fold)
		case KindEnd:
			k.d.EndRead(v, p.fold)
		}
		k.waiting = false
	}
}

func (w *world) full() *Fold {
	f := NewFold(Anchor{})
	for i, e := range w.log {
		f.Apply(int64(i), w.time(e.at), e.r)
	}
	return f
}

func (w *world) step(p *proc) {
	task := w.tasks[w.pick(len(w.tasks), "task")]
	if p.lease != "held" || p.done[task] {
		return
	}
	k := p.work[task]
	if k == nil {
		t, ok := p.fold.Task(task)
		if !ok && w.now >= w.deadline(task) { // it may have been forgotten: look into the log
			if t, ok = w.full().Task(task); ok && t.Final != nil {
				w.emit(p, task, t.Final.Payload)
				return
			}
		}
		n := 1
		for _, a := range t.Attempts {
			n = max(n, a.Number)
			if a.End != nil {
				n = max(n, a.Number+1)
			}
		}
		k = &work{n: n, d: NewDriver(p.fold, AttemptKey(task, n), task, modelGuard)}
		k.d.rules = w.rules
		p.work[task] = k
	}
	if k.waiting {
		return
	}
	w.act(p, task, k)
}

func (w *world) act(p *proc, task string, k *work) {
	mono := w.now + p.skew
	key := k.d.Key()
	run := w.runs[key]
	whim := w.pick(12, "whim") == 0 // a rejection, a cancel
	switch k.d.Action() {
	case ActionClaim:
		if whim || w.now >= w.deadline(task) || k.n > attempts {
			w.end(p, task, k, true, "rejected or expired")
			return
		}
		k.d.ClaimSent(mono)
		k.waiting = !w.rules.noReadBack
		p.outbox = append(p.outbox, w.record(KindClaim, p, task, k, false, "claimed"))
	case ActionLookUp:
		if whim {
			k.d.Unanswered(w.time(w.now))
			return
		}
		k.d.LookedUp(run != nil && run.state != "", w.time(w.now))
	case ActionWait:
		if !w.time(w.now).Before(k.d.GuardEnds()) {
			k.d.GuardPassed()
		}
	case ActionSubmit:
		if k.d.MaySubmit(mono) {
			w.submit(key)
		}
	case ActionRun:
		switch {
		case whim:
			w.end(p, task, k, true, "cancelled while it ran")
		case run != nil && run.state == "finished":
			w.end(p, task, k, !run.failed || k.n >= attempts, fmt.Sprintf("failed=%t", run.failed))
		}
	case ActionEnd:
		w.end(p, task, k, true, "expired")
	case ActionEmit:
		payload, m := k.d.Ending()
		if t, _ := p.fold.Task(task); t.Final != nil && t.Final.Offset == m.Offset {
			w.emit(p, task, payload)
			return
		}
		delete(p.work, task) // on to the next attempt
	case ActionStop:
		w.drop(p)
	}
}

func (w *world) submit(key string) {
	r := w.runs[key]
	if r == nil {
		r = &engineRun{}
		w.runs[key] = r
	}
	if r.submissions++; r.submissions > 1 {
		w.fail("attempt %s was submitted %d times", key, r.submissions)
	}
	if w.pick(2, "slow") == 0 {
		w.arrive(key)
		return
	}
	w.flights = append(w.flights, flight{key, w.now + modelGuard.Settle})
}

func (w *world) record(kind Kind, p *proc, task string, k *work, final bool, what string) Record {
	w.nonce++
	payload, _ := json.Marshal(map[string]any{"by": p.owner, "nonce": w.nonce, "what": what, "html": "<&>"})
	return Record{
		Kind: kind, Epoch: p.epoch, Owner: p.owner, Key: k.d.Key(), TaskID: task, Attempt: k.n,
		Deadline: w.time(w.deadline(task)), Final: final, Payload: payload,
	}
}

func (w *world) end(p *proc, task string, k *work, final bool, what string) {
	if !k.d.MayEnd() {
		w.fail("%s may not be ended in %s", k.d.Key(), k.d.Action())
	}
	k.waiting = true
	p.outbox = append(p.outbox, w.record(KindEnd, p, task, k, final, what))
}

func (w *world) emit(p *proc, task string, payload []byte) {
	if w.emitted[task] == nil {
		w.emitted[task] = map[string]bool{}
	}
	w.emitted[task][string(payload)] = true
	if len(w.emitted[task]) > 1 {
		w.fail("task %s has two outcomes: %v", task, w.emitted[task])
	}
	p.done[task] = true
}

// checkpoint: a holder forgets and commits; a fold from the new anchor must agree with one of the whole log.
func (w *world) checkpoint(p *proc) {
	if p.lease != "held" {
		return
	}
	p.fold.Forget(w.time(w.now))
	a := p.fold.Checkpoint()
	fresh, full := NewFold(a), NewFold(Anchor{})
	for i := range p.fold.Next() {
		e := w.log[i]
		if i >= a.Offset {
			fresh.Apply(i, w.time(e.at), e.r)
		}
		full.Apply(i, w.time(e.at), e.r)
	}
	if !fresh.Holds(full.Epoch(), full.Owner()) || !p.fold.Holds(full.Epoch(), full.Owner()) {
		w.fail("lease differs after anchor %+v", a)
	}
	for id := range p.fold.tasks {
		want, _ := full.Task(id)
		for _, f := range []*Fold{fresh, p.fold} {
			if got, _ := f.Task(id); !cmp.Equal(want, got) {
				w.fail("task %s differs after anchor %+v: %s", id, a, cmp.Diff(want, got))
			}
		}
	}
	for id, t := range full.tasks {
		if _, ok := p.fold.tasks[id]; !ok && (t.final == nil || t.open()) {
			w.fail("task %s was forgotten before its end", id)
		}
	}
	if a.Offset > w.saved.Offset { // commits never go back
		w.saved = a
	}
}

// settle gives the partition to one fresh process and leaves it alone: every task must end.
func (w *world) settle() {
	for i := range w.procs {
		w.crash(i)
	}
	for len(w.orphans) > 0 {
		w.deliverOrphan(w.pick(2, "drop") == 0)
	}
	w.start(0)
	p := w.procs[0]
	for range 3000 {
		if p.lease == "" {
			w.takeOver(p)
		}
		w.deliver(p)
		w.read(p)
		w.step(p)
		if w.pick(3, "time") == 0 {
			w.tick(1)
			w.finishRun()
		}
		if p.done["a"] && p.done["b"] {
			break
		}
	}
	full := w.full()
	for _, id := range w.tasks {
		t, ok := full.Task(id)
		if !ok || t.Final == nil || !w.emitted[id][string(t.Final.Payload)] {
			w.fail("task %s has not ended, or what was published is not what the log says", id)
		}
	}
}
