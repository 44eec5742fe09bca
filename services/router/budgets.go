package router

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// bookkeeper decides the Tasks of one partition whose session has a budget. It owns the partition's ledger: each Task is reserved or
// refused there, and that is read back, before its decision is published. So no other router, and no earlier or later self, can let
// the session spend the same twice. What has no budget goes past it, and waits for nothing.
//
// All that came since the last time is one batch: its records are written together and waited for once.
type bookkeeper struct {
	app  *App
	part *stream.Partition
	log  *slog.Logger

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
	wake chan struct{}

	mu      sync.Mutex
	queue   []*queued
	inWork  []*queued
	waiting map[string]int // Tasks in the queue or in work, by id
	ended   []budget.Ended // to be settled, while there is a lease
	lease   *lease
	strays  []request // that belong on other partitions

	wakeStrays chan struct{}
}

// queued is a request that waits for its session's account.
type queued struct {
	request
	at    time.Time
	trace context.Context // of its record: the record's own changes while it is decided
	done  bool            // it has its answer; guarded by the keeper's lock
}

// lease is the ledger for as long as nobody else has it, and the accounts that are folded from it.
type lease struct {
	ledger   *stream.Ledger
	sessions *budget.Sessions // to be looked at in the ledger's View alone
}

const (
	// batchMost bounds the Tasks of one read-back.
	batchMost = 500
	// settleEvery is how long an Outcome may wait for others to be settled with. It also waits for no more than the next batch.
	settleEvery = 250 * time.Millisecond
	// upkeepEvery is how often the log that a next owner has to read is kept short.
	upkeepEvery = time.Minute
	// goodbye bounds what is left to do for a partition that goes away.
	goodbye = 2 * time.Second
)

func newBookkeeper(a *App, part *stream.Partition) *bookkeeper {
	k := &bookkeeper{
		app: a, part: part, log: a.log.With(telemetry.KeyPartition, part.ID), wake: make(chan struct{}, 1), waiting: map[string]int{},
		wakeStrays: make(chan struct{}, 1),
	}
	k.ctx, k.stop = context.WithCancel(context.Background())
	k.wg.Go(k.run)
	k.wg.Go(k.expire)
	k.wg.Go(k.passStraysOn)
	return k
}

// close returns when nothing is done for the partition any more.
func (k *bookkeeper) close() {
	k.stop()
	k.wg.Wait()
}

// wants says whether a request has to go through here: a Task of a session with a budget, and the wish to cancel one that waits.
func (k *bookkeeper) wants(r request) bool {
	switch {
	case r.task != nil:
		return k.app.decider.policy.Load().Budgets.OfSession(*r.task) != nil
	case r.cancel != nil:
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.waiting[r.cancel.TaskID] > 0
	default:
		return false
	}
}

func (k *bookkeeper) take(r request) {
	k.mu.Lock()
	k.queue = append(k.queue, &queued{request: r, at: time.Now(), trace: r.rec.Context})
	k.waiting[r.taskID()]++
	k.mu.Unlock()
	k.nudge()
}

func (k *bookkeeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (r request) taskID() string {
	if r.cancel != nil {
		return r.cancel.TaskID
	}
	return r.task.ID
}

// settle notes the end of a Task. Without a lease it is left to the one who takes the next, who looks for the ends of all open Tasks.
func (k *bookkeeper) settle(e budget.Ended) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lease != nil {
		k.ended = append(k.ended, e)
	}
}

// run owns the ledger, whenever there is something to own it for, until the partition goes away.
func (k *bookkeeper) run() {
	for k.ctx.Err() == nil {
		if !k.needed() {
			select {
			case <-k.ctx.Done():
			case <-k.wake:
			case <-time.After(time.Second): // a new policy may have budgets
			}
			continue
		}
		l, err := k.open()
		if err != nil {
			return
		}
		err = k.serve(l)
		k.drop(l)
		if k.ctx.Err() != nil {
			return
		}
		// If we have missed that the partition moved, the group tells us within its session timeout. If it still says that the
		// partition is ours then, the other one was wrong, and the lease is taken back.
		k.app.metrics.leasesLost.Inc()
		k.log.Warn("somebody else took the partition's budgets; nothing more is admitted under this lease", "epoch", l.ledger.Epoch(), telemetry.Err(err))
		select {
		case <-k.ctx.Done():
		case <-time.After(k.app.cfg.Group.SessionTimeout):
		}
	}
}

func (k *bookkeeper) needed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.queue) > 0 || k.app.decider.policy.Load().Budgets.AgentSession != nil
}

// open takes the ledger, however long that takes. The error is that the partition is gone.
func (k *bookkeeper) open() (*lease, error) {
	var l *lease
	err := k.persist("taking the budgets of a partition over", func() error {
		s := budget.NewSessions(k.app.cfg.Budgets.Window)
		lc := stream.DefaultLedgerConfig(k.part.ID, k.app.owner)
		lc.Topic, lc.State = event.TopicBudgetState, s
		ledger, err := stream.OpenLedger(k.ctx, k.app.cfg.Kafka, k.app.deps(), lc)
		if err == nil {
			l = &lease{ledger: ledger, sessions: s}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	k.lease = l
	k.mu.Unlock()
	// What ended while nobody owned the partition, or before we did.
	var open []budget.Ended
	l.ledger.View(func(*ledger.Fold) { open = l.sessions.OpenTasks() })
	for _, o := range open {
		if e, ok := k.app.ends.Get(o.TaskID); ok && e.Key == o.Key {
			k.settle(e)
		}
	}
	return l, nil
}

func (k *bookkeeper) drop(l *lease) {
	k.mu.Lock()
	k.lease, k.ended = nil, nil
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), goodbye)
	defer cancel()
	if err := l.ledger.Close(ctx); err != nil {
		k.log.Warn("closing the ledger of budgets", telemetry.Err(err))
	}
}

// persist does something until it succeeds or the partition is gone: what has been asked must be answered, however long the broker
// is away.
func (k *bookkeeper) persist(what string, f func() error) error {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	for {
		err := f()
		switch {
		case err == nil:
			return nil
		case k.ctx.Err() != nil:
			return context.Cause(k.ctx)
		}
		k.log.WarnContext(k.ctx, "something failed and is tried again", "what", what, telemetry.Err(err))
		select {
		case <-k.ctx.Done():
			return context.Cause(k.ctx)
		case <-time.After(wait.NextBackOff()):
		}
	}
}

// serve works until the lease is lost, which is the error, or the partition is gone.
func (k *bookkeeper) serve(l *lease) error {
	settles, upkeep := time.NewTicker(settleEvery), time.NewTicker(upkeepEvery)
	defer settles.Stop()
	defer upkeep.Stop()
	for {
		for {
			batch, ended := k.drain()
			if len(batch)+len(ended) == 0 {
				break
			}
			var lost error
			err := k.persist("deciding within budgets", func() error {
				batch = k.unanswered(batch)
				err := k.work(l, batch, ended)
				if lost = l.ledger.Err(); lost != nil {
					return nil
				}
				return err
			})
			if err = errors.Join(err, lost); err != nil {
				k.giveBack(batch)
				return err
			}
		}
		select {
		case <-k.ctx.Done():
			return nil
		case <-l.ledger.Lost():
			return l.ledger.Err()
		case <-k.wake:
		case <-settles.C:
		case <-upkeep.C:
			if err := k.keepShort(l); err != nil {
				k.log.Warn("keeping the ledger of budgets short", telemetry.Err(err))
			}
		}
	}
}

func (k *bookkeeper) drain() ([]*queued, []budget.Ended) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := min(len(k.queue), batchMost)
	batch, ended := slices.Clone(k.queue[:n]), k.ended
	k.queue, k.ended, k.inWork = k.queue[n:], nil, batch
	return batch, ended
}

func (k *bookkeeper) giveBack(batch []*queued) {
	batch = k.unanswered(batch)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queue, k.inWork = append(batch, k.queue...), nil
}

// errVoid is a batch whose records did not all count, though the lease stands: it is worked out again on what the ledger says now.
var errVoid = errors.New("a record of the batch came to nothing")

// work decides a batch: on the accounts as the ledger has them, then the ledger's word, then the decisions.
func (k *bookkeeper) work(l *lease, batch []*queued, ended []budget.Ended) error {
	a := k.app
	subjects := make([]subject, len(batch))
	var queries []budget.Query
	for i, q := range batch {
		if q.task != nil {
			subjects[i] = a.decider.subject(k.ctx, *q.task, 1)
			key, _ := budget.KeyOf(*q.task)
			queries = append(queries, budget.Query{Key: key, TaskID: q.task.ID})
		}
	}
	history := a.decider.lookup(k.ctx, subjects)
	now := l.ledger.BrokerNow()
	var b *budget.Batch
	l.ledger.View(func(*ledger.Fold) { b = l.sessions.Batch(now, queries, ended) })
	out := make([]answer, 0, len(batch))
	for i, q := range batch {
		if q.cancel != nil {
			out = append(out, answer{rec: q.rec, decision: passCancel(*q.cancel, time.Now().UTC())})
			continue
		}
		s := subjects[i]
		out = append(out, k.decide(b, q, s, history.of(s.fingerprint, s.bucket)))
	}
	if err := k.record(l, b); err != nil {
		return err
	}
	if err := k.persist("publishing decisions", func() error { return a.publish(k.ctx, k.wanted(batch, out)) }); err != nil {
		return err
	}
	k.finish(batch)
	k.lateEnds(queries)
	return nil
}

// decide decides one Task on its session's account, and charges the batch.
func (k *bookkeeper) decide(b *budget.Batch, q *queued, s subject, history profile.Lookup) answer {
	var asks budget.Query
	out := k.app.traced(q.rec, s, history, func(in *route.Input) *route.SessionAccount {
		asks = asking(in)
		account := b.Account(asks)
		return &account
	})
	asks.Deadline, asks.WallMs = out.decision.Deadline, expected(out.decision)
	if out.decision.Kind == event.Route {
		b.Admit(asks)
		return out
	}
	b.Refuse(asks, *out.decision.Rejection)
	return out
}

// asking is the Task as its session's account needs to know it.
func asking(in *route.Input) budget.Query {
	key, _ := budget.KeyOf(in.Task)
	q := budget.Query{Key: key, TaskID: in.Task.ID, Text: budget.Digest(in.Fingerprint, in.Task.SQL), Group: budget.Digest(in.Fingerprint)}
	if len(in.Shape.Tables) > 0 {
		names := make([]string, len(in.Shape.Tables))
		for i, t := range in.Shape.Tables {
			names[i] = t.String()
		}
		slices.Sort(names)
		q.Group = budget.Digest(slices.Compact(names)...)
	}
	if n, ok := in.Estimates[route.ScanBytes].Last(); ok {
		bytes := budget.WholeBytes(n)
		q.Bytes = &bytes
	}
	return q
}

// expected is how long the Task is expected to run where runs of it say so. A guess is not charged.
func expected(d event.RouteDecision) int64 {
	for _, c := range d.Candidates {
		if c.Target == d.Target && c.Estimate != nil && c.Estimate.Evidence.N > 0 {
			ms, _ := c.Estimate.ExecMs.Get()
			return int64(ms)
		}
	}
	return 0
}

// record writes what the batch admits, refuses and settles, and returns when all of it stands.
func (k *bookkeeper) record(l *lease, b *budget.Batch) error {
	recs, err := b.Records()
	if err != nil || len(recs) == 0 {
		return err
	}
	entries, err := l.ledger.WriteAll(k.ctx, recs)
	if err != nil {
		return err
	}
	for i, e := range entries {
		switch {
		case e.Verdict.Lost():
			return stream.ErrLeaseLost
		case !e.Verdict.Accepted && recs[i].Kind != budget.KindSettle:
			return errVoid
		}
		k.app.metrics.budgetRecords.WithLabelValues(string(recs[i].Kind)).Inc()
	}
	return nil
}

// finish calls the batch's records done.
func (k *bookkeeper) finish(batch []*queued) {
	var finished []*queued
	k.mu.Lock()
	for _, q := range batch {
		if q.done {
			continue
		}
		q.done = true
		finished = append(finished, q)
		if k.waiting[q.taskID()]--; k.waiting[q.taskID()] == 0 {
			delete(k.waiting, q.taskID())
		}
	}
	k.mu.Unlock()
	for _, q := range finished {
		k.part.Done(q.rec)
		k.app.metrics.budgetWait.Observe(time.Since(q.at).Seconds())
	}
}

// lateEnds settles Tasks whose end was read before they were reserved: that of an earlier decision, which another router had
// published.
func (k *bookkeeper) lateEnds(queries []budget.Query) {
	for _, q := range queries {
		if e, ok := k.app.ends.Get(q.TaskID); ok && e.Key == q.Key {
			k.settle(e)
		}
	}
}

// keepShort writes balances for sessions that are old, and drops those that are too many.
func (k *bookkeeper) keepShort(l *lease) error {
	before := l.ledger.BrokerNow().Add(-k.app.cfg.Budgets.Window)
	var recs []ledger.Record
	var err error
	l.ledger.View(func(*ledger.Fold) { recs, err = l.sessions.Upkeep(before, k.app.cfg.Budgets.MaxSessions) })
	if err != nil || len(recs) == 0 {
		return err
	}
	if _, err = l.ledger.WriteAll(k.ctx, recs); err == nil {
		for _, r := range recs {
			k.app.metrics.budgetRecords.WithLabelValues(string(r.Kind)).Inc()
		}
	}
	return err
}

// view looks at the accounts. ok is false while there is no lease.
func (k *bookkeeper) view(look func(s *budget.Sessions)) bool {
	k.mu.Lock()
	l := k.lease
	k.mu.Unlock()
	if l == nil || l.ledger.Err() != nil {
		return false
	}
	l.ledger.View(func(*ledger.Fold) { look(l.sessions) })
	return true
}
