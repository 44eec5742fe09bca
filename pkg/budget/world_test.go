package budget_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/signal"
)

// world is one budget-state partition with routers that stall (nothing happens to them for a while), crash and overlap, records that
// arrive late or after their writer died, requests that are read again, and Outcomes that a router hears of late or never. Every
// choice comes from pick, so that rapid can shrink a failure.
type world struct {
	rules  rules
	pick   func(n int, label string) int
	window time.Duration
	limits budget.Limits
	most   int // sessions that are kept

	now     time.Duration
	log     []entry
	orphans [][]ledger.Record
	procs   [3]*router // the group may believe in each of them
	starts  int
	saved   ledger.Anchor
	tasks   []budget.Query
	said    map[string][]event.DecisionKind // published decisions by Task, in the order of the log
	ended   map[string]budget.Ended
	broken  string
}

// rules of the protocol. A test switches one off to see that it is needed.
type rules struct {
	noReadBack bool // publish when the record is sent
	noRefusals bool // publish refusals without a record
	noMemory   bool // look at a repeat as if it were new
}

type entry struct {
	r  ledger.Record
	at time.Time
}

type router struct {
	owner    string
	fold     *ledger.Fold
	sessions *budget.Sessions
	outbox   []ledger.Record
	lease    string // "", sent, held
	epoch    int64
	seq      int64
	waiting  map[int64]bool // own records on their way
	void     bool           // one of them came to nothing
	decided  []decision     // to be published when all of them stand
	publish  []decision
	done     map[string]bool
	settled  map[string]bool // outcomes it has heard of and passed on
}

type decision struct {
	task string
	kind event.DecisionKind
}

const tick = time.Second

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(r rules, pick func(int, string) int) *world {
	w := &world{rules: r, pick: pick, window: 24 * time.Hour, said: map[string][]event.DecisionKind{}, ended: map[string]budget.Ended{}}
	if pick(3, "window") == 0 {
		w.window = 10 * tick // sessions end and begin anew
	}
	if w.most = 100; pick(4, "crowd") == 0 {
		w.most = 1
	}
	w.limits = budget.Limits{MaxQueries: 3}
	if pick(2, "limit") == 0 {
		w.limits = budget.Limits{MaxBytes: 30}
	}
	for i := range 8 {
		bytes := int64(5 + 5*(i%3))
		w.tasks = append(w.tasks, budget.Query{
			Key: budget.SessionKey{Tenant: "t", Session: fmt.Sprint("s", i%2)}, TaskID: fmt.Sprint("q", i),
			Deadline: w.time(40 * tick), Text: budget.Digest(fmt.Sprint(i)), Group: 1, Bytes: &bytes,
		})
	}
	return w
}

func (w *world) time(d time.Duration) time.Time { return began.Add(d) }

func (w *world) fail(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

func (w *world) actions() []func() {
	some := func(f func(*router)) func() {
		return func() {
			var alive []*router
			for _, p := range w.procs {
				if p != nil {
					alive = append(alive, p)
				}
			}
			if len(alive) > 0 {
				f(alive[w.pick(len(alive), "router")])
			}
		}
	}
	return []func(){
		func() { w.start(w.pick(len(w.procs), "router")) },
		func() {
			if w.pick(4, "mercy") == 0 {
				w.crash(w.pick(len(w.procs), "router"))
			}
		},
		func() { w.now += tick * time.Duration(w.pick(2, "ticks")) },
		func() { w.deliverOrphan(w.pick(4, "drop") == 0) },
		func() { w.end() }, func() { w.end() },
		some(w.deliver), some(w.deliver), some(w.deliver), some(w.deliver),
		some(w.read), some(w.read), some(w.read), some(w.read), some(w.read), some(w.read),
		func() {
			if w.pick(3, "rebalance") == 0 {
				some(w.takeOver)()
			}
		},
		some(w.poll), some(w.poll), some(w.poll), some(w.poll),
		some(w.say), some(w.say), some(w.say),
		some(w.upkeep),
		some(w.checkpoint),
	}
}

func (w *world) start(i int) {
	if w.procs[i] != nil {
		return
	}
	w.starts++
	s := budget.NewSessions(w.window)
	w.procs[i] = &router{
		owner: fmt.Sprint("r", w.starts), sessions: s, fold: ledger.NewFold(w.saved, ledger.WithState(s)),
		done: map[string]bool{}, settled: map[string]bool{}, waiting: map[int64]bool{},
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

func (w *world) append(r ledger.Record) {
	b, err := r.Encode()
	if err == nil {
		r, err = ledger.Decode(b)
	}
	if err != nil {
		w.fail("record does not survive: %v", err)
	}
	w.log = append(w.log, entry{r, w.time(w.now)})
}

func (w *world) deliver(p *router) {
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

// end ends a Task that runs, with less than was estimated, or one that never ran.
func (w *world) end() {
	q := w.tasks[w.pick(len(w.tasks), "task")]
	if _, ok := w.ended[q.TaskID]; ok || len(w.said[q.TaskID]) == 0 || w.said[q.TaskID][0] != event.Route {
		return
	}
	took := *q.Bytes - int64(w.pick(5, "less"))
	w.ended[q.TaskID] = budget.Ended{Key: q.Key, TaskID: q.TaskID, Bytes: &took, Void: w.pick(2, "void") == 0}
}

// takeOver: the group hands the partition to a router, whatever others believe. It reads all there is, then writes its lease.
func (w *world) takeOver(p *router) {
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

func (w *world) drop(p *router) {
	p.lease, p.decided, p.waiting = "", nil, map[int64]bool{}
	p.done, p.settled = map[string]bool{}, map[string]bool{}
}

func (w *world) read(p *router) {
	i := p.fold.Next()
	if int(i) >= len(w.log) {
		return
	}
	e := w.log[i]
	v := p.fold.Apply(i, e.at, e.r)
	mine := e.r.Owner == p.owner && e.r.Epoch == p.epoch
	switch {
	case e.r.Kind == ledger.KindLease && p.lease == "sent" && mine:
		if p.lease = "held"; !v.Accepted {
			w.drop(p)
		}
	case p.lease == "held" && !p.fold.Holds(p.epoch, p.owner):
		w.drop(p)
	case p.lease == "held" && mine:
		delete(p.waiting, e.r.Seq)
		p.void = p.void || !v.Accepted
		w.stand(p)
	}
}

// stand: when all records of the batch are back, its decisions may be published, or it is begun anew.
func (w *world) stand(p *router) {
	if len(p.waiting) > 0 {
		return
	}
	if !p.void {
		p.publish = append(p.publish, p.decided...)
	}
	p.decided, p.void = nil, false
}

func (w *world) send(p *router, recs []ledger.Record) {
	for _, r := range recs {
		p.seq++
		r.Epoch, r.Owner, r.Seq = p.epoch, p.owner, p.seq
		p.waiting[r.Seq] = true
		p.outbox = append(p.outbox, r)
	}
}

// poll reads some requests, which the group may have handed out before, and decides them.
func (w *world) poll(p *router) {
	if p.lease != "held" || len(p.waiting) > 0 || len(p.publish) > 0 {
		return
	}
	var batch []budget.Query
	for range 1 + w.pick(3, "batch") {
		q := w.tasks[w.pick(len(w.tasks), "task")]
		if !p.done[q.TaskID] && w.now < 40*tick {
			batch = append(batch, q)
		}
	}
	w.decide(p, batch)
}

func (w *world) decide(p *router, batch []budget.Query) {
	var ended []budget.Ended
	for _, o := range w.tasks {
		if e, ok := w.ended[o.TaskID]; ok && !p.settled[o.TaskID] && w.pick(2, "heard") == 0 {
			p.settled[o.TaskID] = true
			ended = append(ended, e)
		}
	}
	b := p.sessions.Batch(w.time(w.now-time.Duration(w.pick(2, "lag"))*tick), batch, ended)
	var unrecorded []decision
	for _, q := range batch {
		p.done[q.TaskID] = true
		a := b.Account(q)
		if w.rules.noMemory {
			a = b.Account(budget.Query{Key: q.Key})
		}
		r := a.Refused
		if r == nil && !a.Admitted {
			if no := budget.Check(w.limits, a, budget.Ask{Bytes: signal.Of(float64(*q.Bytes), signal.Bytes, "catalog", began)}, began); no != nil {
				r = &no.Rejection
			}
		}
		switch {
		case r == nil:
			b.Admit(q)
			p.decided = append(p.decided, decision{q.TaskID, event.Route})
		case w.rules.noRefusals:
			unrecorded = append(unrecorded, decision{q.TaskID, event.Reject})
		default:
			b.Refuse(q, *r)
			p.decided = append(p.decided, decision{q.TaskID, event.Reject})
		}
	}
	p.publish = append(p.publish, unrecorded...)
	recs, err := b.Records()
	if err != nil {
		w.fail("%v", err)
	}
	w.send(p, recs)
	if w.rules.noReadBack {
		p.publish, p.decided = append(p.publish, p.decided...), nil
	}
	w.stand(p)
}

// say publishes one decision, or repeats it: a router that stalled does so whatever has happened since.
func (w *world) say(p *router) {
	if len(p.publish) == 0 {
		return
	}
	d := p.publish[0]
	p.publish = p.publish[1:]
	w.said[d.task] = append(w.said[d.task], d.kind)
	w.check()
}

func (w *world) check() {
	if w.most == 1 {
		return // a session that is dropped for want of room has its budget anew, and its Tasks are looked at anew
	}
	for id, kinds := range w.said {
		if slices.Contains(kinds, event.Route) && slices.Contains(kinds, event.Reject) {
			w.fail("task %s was both admitted and refused: %v", id, kinds)
		}
	}
	if w.window < time.Hour {
		return // a session that begins anew has its budget anew
	}
	queries, bytes := map[budget.SessionKey]int64{}, map[budget.SessionKey]int64{}
	for _, q := range w.tasks {
		e, ended := w.ended[q.TaskID]
		if !slices.Contains(w.said[q.TaskID], event.Route) || e.Void {
			continue
		}
		queries[q.Key]++
		if ended {
			bytes[q.Key] += *e.Bytes
		} else {
			bytes[q.Key] += *q.Bytes
		}
	}
	for k := range queries {
		if w.limits.MaxQueries > 0 && queries[k] > w.limits.MaxQueries || w.limits.MaxBytes > 0 && bytes[k] > w.limits.MaxBytes {
			w.fail("session %s overspent: %d queries, %d bytes", k.Session, queries[k], bytes[k])
		}
	}
}

func (w *world) upkeep(p *router) {
	if p.lease != "held" || len(p.waiting) > 0 {
		return
	}
	recs, err := p.sessions.Upkeep(w.time(w.now-5*tick), w.most)
	if err != nil {
		w.fail("%v", err)
	}
	w.send(p, recs)
	w.stand(p)
}

// checkpoint: a holder forgets and commits; a fold from the new anchor, and one of the whole log, must hold the same, byte for byte.
func (w *world) checkpoint(p *router) {
	if p.lease != "held" {
		return
	}
	p.fold.Forget(w.time(w.now))
	a := p.fold.Checkpoint()
	want, err := p.sessions.Snapshot()
	if err != nil {
		w.fail("%v", err)
	}
	for _, from := range []ledger.Anchor{a, {}} {
		s := budget.NewSessions(w.window)
		f := ledger.NewFold(from, ledger.WithState(s))
		for i := from.Offset; i < p.fold.Next(); i++ {
			f.Apply(i, w.log[i].at, w.log[i].r)
		}
		f.Forget(w.time(w.now))
		if got, _ := s.Snapshot(); string(got) != string(want) {
			w.fail("a fold from %+v differs:\n%s\n%s", from, got, want)
		}
		if !f.Holds(p.fold.Epoch(), p.fold.Owner()) {
			w.fail("the lease differs after anchor %+v", from)
		}
	}
	if a.Offset > w.saved.Offset {
		w.saved = a
	}
}

// settle gives the partition to one fresh router and leaves it alone: every Task must get a decision.
func (w *world) settle() {
	for i := range w.procs {
		w.crash(i)
	}
	for len(w.orphans) > 0 {
		w.deliverOrphan(w.pick(2, "drop") == 0)
	}
	w.start(0)
	p := w.procs[0]
	w.takeOver(p)
	for range 400 {
		w.deliver(p)
		w.read(p)
		w.say(p)
		if p.lease == "" {
			w.takeOver(p)
		}
		if p.lease == "held" && len(p.waiting) == 0 && len(p.publish) == 0 {
			var left []budget.Query
			for _, q := range w.tasks {
				if len(w.said[q.TaskID]) == 0 {
					left = append(left, q)
				}
			}
			if len(left) == 0 {
				w.checkpoint(p)
				return
			}
			w.decide(p, left)
		}
	}
	w.fail("not every task was decided: %v", w.said)
}
