package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// record is a ledger record of this attempt.
func (y *try) record(payload any) (ledger.Record, error) {
	note, err := encodeNote(payload)
	if err != nil {
		return ledger.Record{}, err
	}
	return ledger.Record{Key: y.id, TaskID: y.t.id, Attempt: y.number, Deadline: y.t.deadline(), Payload: note}, nil
}

// writeClaim claims the attempt and reads the claim back.
func (y *try) writeClaim(ctx context.Context) (attempt.Event, error) {
	y.p.app.hooks.at(ctx, StepClaiming, y.id)
	r, err := y.record(claimNote{Target: y.target, Tenant: y.t.first.Task.Tenant, Fallbacks: y.t.fallbacks})
	if err != nil {
		return "", err
	}
	for {
		if e := y.interrupted(ctx); e != "" {
			return e, nil
		}
		y.claimedAt = time.Now()
		entry, err := y.t.ledger.Claim(ctx, r)
		switch {
		case errors.Is(err, stream.ErrLeaseLost):
			return attempt.Abandoned, nil
		case errors.Is(err, stream.ErrTooLarge):
			return "", err
		case err != nil && ctx.Err() != nil:
			return attempt.Abandoned, nil
		case err != nil:
			// It may stand nevertheless. Claiming again is no harm: the later claim of the same owner counts.
			y.log.WarnContext(ctx, "claiming an attempt failed and is tried again", telemetry.Err(err))
			if e := y.sleep(ctx, 200*time.Millisecond); e != "" {
				return e, nil
			}
			continue
		}
		y.p.app.metrics.claim.Observe(time.Since(y.claimedAt).Seconds())
		switch v := entry.Verdict; {
		case v.Accepted:
			y.claimed = true
			y.t.tried[len(y.t.tried)-1].claimed = true
			return attempt.ClaimStood, nil
		case v.Lost():
			return attempt.Abandoned, nil
		case v.Reason == ledger.ReasonExpired:
			return attempt.DeadlinePassed, nil
		case v.Reason == ledger.ReasonTaskEnded, v.Reason == ledger.ReasonAttemptEnded:
			return "", fmt.Errorf("claiming %s: %w (%s)", y.id, errAgain, v.Reason)
		default:
			return "", fmt.Errorf("claiming %s: the ledger refused it: %s", y.id, v.Reason)
		}
	}
}

// checkGuard is the last look before the submission; the adapter looks once more just before its first byte.
func (y *try) checkGuard(ctx context.Context) attempt.Event {
	y.p.app.hooks.at(ctx, StepClaimed, y.id)
	if e := y.interrupted(ctx); e != "" {
		return e
	}
	if y.t.ledger.Err() != nil {
		return attempt.Abandoned
	}
	if !time.Now().Before(y.submitBefore()) {
		y.p.app.metrics.guards.Inc()
		y.log.WarnContext(ctx, "the guard of the claim ran out before the submission; it is claimed again")
		return attempt.GuardRanOut
	}
	return attempt.GuardHeld
}

func (y *try) submitBefore() time.Time { return y.claimedAt.Add(y.p.app.cfg.Attempts.GuardLeave) }

// noteSubmitted tells the next owner that the engine had it. Nobody waits for it: it informs and decides nothing.
func (y *try) noteSubmitted(ctx context.Context) {
	if y.noted {
		return
	}
	y.noted = true
	if y.number == y.t.first.Attempt && !y.waited {
		y.p.app.metrics.start.Observe(y.times.started.Sub(y.t.seen).Seconds())
	}
	r, err := y.record(submittedNote{StartedAt: y.times.started.UTC()})
	if err != nil {
		y.log.ErrorContext(ctx, "noting a submission", telemetry.Err(err))
		return
	}
	y.p.wg.Go(func() {
		if _, err := y.t.ledger.Submitted(ctx, r); err != nil && ctx.Err() == nil && y.t.ledger.Err() == nil {
			y.log.WarnContext(ctx, "noting a submission", telemetry.Err(err))
		}
	})
}

// sleep waits, or says what came first.
func (y *try) sleep(ctx context.Context, d time.Duration) attempt.Event {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return ""
	case <-y.t.cancelled:
		return attempt.CancelWished
	case <-y.late.C:
		return attempt.DeadlinePassed
	case <-ctx.Done():
		return attempt.Abandoned
	}
}
