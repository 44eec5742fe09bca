package stream

import (
	"context"
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/ledger"
)

// Driver returns the protocol's next steps for an attempt. See ledger.Driver; the methods below do the steps that need the ledger. The
// executor walks its attempts by itself, with Claim, Submitted and End, and uses a Driver only to WaitGuard.
func (l *Ledger) Driver(key, taskID string) *ledger.Driver {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := ledger.NewDriver(l.fold, key, taskID, l.lc.Guard)
	if a, ok := l.fold.Attempt(key); !l.brokerTime || ok && a.Claim != nil && a.Claim.Offset < l.leaseLed {
		// A time that a producer has put on a record proves nothing to another process, and that of another leader than our lease's
		// comes from a clock that may run apart. But every claim that matters lies before our lease, so it can't be younger than that.
		d.ClaimedBy(l.leaseAt)
	}
	return d
}

// ClaimFor does ledger.ActionClaim: it starts the guard, writes the claim, waits for the read-back and tells the driver.
func (l *Ledger) ClaimFor(ctx context.Context, d *ledger.Driver, r ledger.Record) error {
	d.ClaimSent(l.Mono())
	e, err := l.Claim(ctx, r)
	if err != nil {
		return err
	}
	l.View(func(f *ledger.Fold) { d.ClaimRead(e.Verdict, f) })
	return nil
}

// EndFor writes an end for an attempt that may have one, waits for the read-back and tells the driver. Afterwards the driver says emit,
// with what the log holds, or stop.
func (l *Ledger) EndFor(ctx context.Context, d *ledger.Driver, r ledger.Record) error {
	if !d.MayEnd() {
		return fmt.Errorf("ending %s: not allowed while the next step is %s", r.Key, d.Action())
	}
	e, err := l.End(ctx, r)
	if err != nil {
		return err
	}
	l.View(func(f *ledger.Fold) { d.EndRead(e.Verdict, f) })
	return nil
}

// MaySubmit does ledger.ActionSubmit: it is true exactly if the submission may leave now, at once.
func (l *Ledger) MaySubmit(d *ledger.Driver) bool {
	select {
	case <-l.lost:
		return false // the driver could still submit within its guard, but why make work for the new owner
	default:
		return d.MaySubmit(l.Mono())
	}
}

// WaitGuard does ledger.ActionWait: it returns nil when a look-up can be trusted, or the reason why it was given up.
func (l *Ledger) WaitGuard(ctx context.Context, d *ledger.Driver) error {
	t := time.NewTimer(d.GuardEnds().Sub(l.BrokerNow()))
	defer t.Stop()
	select {
	case <-t.C:
		d.GuardPassed()
		return nil
	case <-l.lost:
		return l.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
