package executor

import (
	"context"
	"errors"
	"time"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/executor/slotlog"
)

// lease is the ledger of the partition for as long as nobody else has it.
type lease struct {
	ledger *stream.Ledger
	ctx    context.Context
	stop   context.CancelCauseFunc
}

// Causes of the end of a partition's or a lease's context.
var (
	errLeaseLost = errors.New("the partition's ledger has a newer owner")
	errReleased  = errors.New("the partition is given back")
)

// take writes a lease.
func (p *partition) take(ctx context.Context) error {
	lc := stream.DefaultLedgerConfig(p.part.ID, p.app.owner)
	lc.Guard = p.app.guard()
	var l *stream.Ledger
	err := p.app.persist(ctx, "opening the ledger", func(ctx context.Context) (err error) {
		l, err = stream.OpenLedger(ctx, p.app.cfg.Kafka, p.app.deps, lc)
		return err
	})
	if err != nil {
		return err
	}
	p.app.slots.Take(slotlog.Part{ID: p.part.ID, Epoch: l.Epoch()}, p.app.atEngines(l.Open()))
	taken := &lease{ledger: l}
	taken.ctx, taken.stop = context.WithCancelCause(p.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lease = taken
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

// keep stops everything when somebody else takes the ledger. If we were the one who had missed that the partition moved, the
// group tells us within its session timeout. If it still says that the partition is ours then, the other one was wrong: the
// lease is taken back, and every Task begun anew from what the ledger says.
func (p *partition) keep() {
	for {
		p.mu.Lock()
		l := p.lease
		p.mu.Unlock()
		select {
		case <-p.ctx.Done():
			return
		case <-l.ledger.Lost():
		}
		if p.ctx.Err() != nil {
			return
		}
		l.stop(errLeaseLost)
		p.app.metrics.leasesLost.Inc()
		p.log.Warn("somebody else took the partition's ledger; nothing more is done for it under this lease", "epoch", l.ledger.Epoch(), telemetry.Err(l.ledger.Err()))
		select {
		case <-p.ctx.Done():
			return
		case <-time.After(p.app.cfg.Group.SessionTimeout):
		}
		p.closeLedger(l)
		if err := p.take(p.ctx); err != nil {
			return
		}
	}
}

// held waits for a lease other than the one that ended; nil means that the partition is not ours any more.
func (p *partition) held(ended *lease) *lease {
	for {
		p.mu.Lock()
		l, changed := p.lease, p.changed
		p.mu.Unlock()
		if p.ctx.Err() != nil {
			return nil
		}
		if l != ended && l.ctx.Err() == nil {
			return l
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
			return nil
		}
	}
}

func (p *partition) closeLedger(l *lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), goodbye)
	defer cancel()
	if err := l.ledger.Close(ctx); err != nil {
		p.log.Warn("closing the ledger", telemetry.Err(err))
	}
}
