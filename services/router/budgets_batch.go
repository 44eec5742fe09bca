package router

import (
	"errors"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

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
