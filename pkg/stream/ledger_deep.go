package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/ledger"
)

// deepIndex is a fold of a stretch of the log in which nothing is forgotten. It keeps no payloads.
type deepIndex struct {
	mu   sync.Mutex
	from int64
	fold *ledger.Fold
	used time.Time
}

// deepIdle is how long an index is kept after its last use.
const deepIdle = 2 * time.Minute

// Deep looks for a Task that the fold may have forgotten, in the log from a time on: the Task's submission, or the first moment it can
// have had a record. An owner has to ask before it ends a Task that is past its deadline and unknown, or it might end it a second time
// in another way. Offsets of payloads are in the result; Payload reads them.
//
// ok is false if the log has nothing. An error means that it is not known.
func (l *Ledger) Deep(ctx context.Context, taskID string, since time.Time) (t ledger.Task, ok bool, err error) {
	if t, ok = l.Task(taskID); ok {
		return t, true, nil
	}
	l.mu.Lock()
	if l.deep == nil {
		l.deep = &deepIndex{}
	}
	d, to := l.deep, l.fold.Next()
	present := ledger.Anchor{Epoch: l.fold.Epoch(), Owner: l.fold.Owner()}
	l.mu.Unlock()

	d.mu.Lock() // one scan serves all who wait for it
	defer d.mu.Unlock()
	d.used = time.Now()
	from, err := l.offsetAt(ctx, since.Add(-l.lc.Slack))
	if err != nil {
		return t, false, fmt.Errorf("looking for task %s in the ledger's past: %w", taskID, err)
	}
	if d.fold == nil || from < d.from {
		anchor, err := l.soundStart(ctx, from, to, present)
		if err != nil {
			return t, false, fmt.Errorf("looking for task %s in the ledger's past: %w", taskID, err)
		}
		d.from, d.fold = from, ledger.NewFold(anchor, ledger.WithPayloadLimit(0))
	}
	if next := d.fold.Next(); next < to {
		err := l.read(ctx, next, to, func(rec *kgo.Record) error {
			if r, err := ledger.Decode(rec.Value); err == nil {
				d.fold.Apply(rec.Offset, rec.Timestamp, r)
			} else {
				d.fold.Skip(rec.Offset, rec.Timestamp)
			}
			return nil
		})
		if err != nil {
			d.fold = nil
			return t, false, fmt.Errorf("looking for task %s in the ledger's past: %w", taskID, err)
		}
	}
	t, ok = d.fold.Task(taskID)
	return t, ok, nil
}

// dropDeep frees an index that nobody uses. mu is held.
func (l *Ledger) dropDeep() {
	if d := l.deep; d != nil && d.mu.TryLock() {
		if time.Since(d.used) > deepIdle {
			l.deep = nil
		}
		d.mu.Unlock()
	}
}

// offsetAt returns the position of the first record at or after a time.
func (l *Ledger) offsetAt(ctx context.Context, at time.Time) (int64, error) {
	listed, err := l.admin.ListOffsetsAfterMilli(ctx, at.UnixMilli(), l.topic)
	if err != nil {
		return 0, err
	}
	o, ok := listed.Lookup(l.topic, l.lc.Partition)
	if !ok {
		return 0, kerr.UnknownTopicOrPartition
	}
	return o.Offset, o.Err
}

var errFound = errors.New("found")

// soundStart returns an anchor from which a fold can start at or before an offset in the middle of the log. The first lease at or after
// the offset names a sound start from before it was written; if there is none, the lease of the end of the stretch was held all along.
func (l *Ledger) soundStart(ctx context.Context, from, to int64, present ledger.Anchor) (ledger.Anchor, error) {
	starts, err := l.admin.ListStartOffsets(ctx, l.topic)
	if err != nil {
		return ledger.Anchor{}, err
	}
	s, _ := starts.Lookup(l.topic, l.lc.Partition)
	from = max(from, s.Offset)
	if from == 0 {
		return ledger.Anchor{}, nil
	}
	var first *ledger.Record
	err = l.read(ctx, from, to, func(rec *kgo.Record) error {
		if r, err := ledger.Decode(rec.Value); err == nil && r.Kind == ledger.KindLease {
			first = &r
			return errFound
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errFound):
		return ledger.Anchor{}, err
	case first == nil:
		present.Offset = from
		return present, nil
	case first.Prev == nil:
		return ledger.Anchor{Offset: from, Epoch: first.Epoch - 1, Inferred: true}, nil
	case first.Prev.Offset >= from: // nobody else took a lease between from and there
		a := *first.Prev
		a.Offset = from
		return a, nil
	case first.Prev.Offset < s.Offset:
		a := *first.Prev
		a.Offset, a.Inferred = s.Offset, true
		return a, nil
	default:
		return *first.Prev, nil
	}
}
