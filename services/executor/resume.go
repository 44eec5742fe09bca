package executor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
)

// restore rebuilds what was tried from the ledger, and gives the attempt that is still open, if there is one.
func (t *task) restore(ctx context.Context, known ledger.Task) (open *ledger.Attempt, err error) {
	attempts := slices.DeleteFunc(slices.Clone(known.Attempts), func(a ledger.Attempt) bool { return a.Number < 1 })
	slices.SortFunc(attempts, func(a, b ledger.Attempt) int { return cmp.Compare(a.Number, b.Number) })
	for i := range attempts {
		a := &attempts[i]
		m := tried{number: a.Number, claimed: a.Claim != nil}
		if a.Claim != nil {
			note, err := decodeNote[claimNote](a.Claim.Payload)
			if err != nil {
				return nil, err
			}
			m.target, t.fallbacks = note.Target, note.Fallbacks
		}
		if a.End != nil {
			payload, err := t.ledger.Payload(ctx, *a.End)
			if err != nil {
				return nil, err
			}
			end, err := decodeNote[ending](payload)
			if err != nil {
				return nil, err
			}
			m.target, m.ending, t.fallbacks = end.Target, &end, end.Fallbacks
		} else {
			open = a
		}
		t.tried = append(t.tried, m)
	}
	if open != nil && t.tried[len(t.tried)-1].ending != nil {
		return nil, errors.New("an attempt is open although a later one has ended")
	}
	return open, nil
}

// resume goes on after the last attempt has ended, possibly in another process: its event is published again, since the one who
// wrote the end may have died before it was.
func (t *task) resume(ctx context.Context, last tried) (step, error) {
	if err := t.publishEnding(ctx, last.number, *last.ending); err != nil {
		return step{}, err
	}
	return t.after(last), nil
}

// after is the step that an ending asks for.
func (t *task) after(last tried) step {
	s := step{number: last.number + 1, target: last.target}
	switch last.ending.Remedy {
	case event.RemedyReroute:
		s.await = true
	case event.RemedyFailover, event.RemedyEnlarge:
		s.target = *last.ending.Next
	default:
		s.delay = time.Duration(last.ending.DelayMs) * time.Millisecond
	}
	return s
}
