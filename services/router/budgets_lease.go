package router

import (
	"context"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// lease is the ledger for as long as nobody else has it, and the accounts that are folded from it.
type lease struct {
	ledger   *stream.Ledger
	sessions *budget.Sessions // to be looked at in the ledger's View alone
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

// persist does something until it succeeds or the partition is gone: what has been asked must be answered.
func (k *bookkeeper) persist(what string, f func() error) error {
	return stream.Persist(k.ctx, k.log, what, func(context.Context) error { return f() })
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
