package intake

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/intake/board"
)

// reader follows all partitions of the board's topics, outside of any group, from some time ago on.
type reader struct {
	kafka stream.Config
	deps  stream.Deps
	since func() time.Time
	fold  fold

	mu    sync.Mutex
	ready <-chan struct{} // of the tail that reads now
	err   error           // of the last tail, while the next has not caught up
}

// startAgain is how long the reader waits before it starts again: the broker may be away, or the topics not made.
const startAgain = time.Second

func newReader(cfg Config, deps stream.Deps, b *board.Board, now func() time.Time) *reader {
	m := newReaderMetrics(deps.Registry)
	return &reader{
		kafka: cfg.Kafka, deps: deps, since: func() time.Time { return now().Add(-cfg.Tasks.LookBack) },
		fold: fold{kafka: cfg.Kafka, board: b, now: now, lookBack: cfg.Tasks.LookBack, skipped: m.skip},
	}
}

// run reads until the context ends. What is read again after a new start changes nothing: the first in the log wins.
func (r *reader) run(ctx context.Context) error {
	for ctx.Err() == nil {
		tail := stream.NewTail(r.kafka, r.deps, stream.TailConfig{Topics: boardTopics, Name: "intake", Since: r.since()})
		r.mu.Lock()
		r.ready = tail.Ready()
		r.mu.Unlock()
		err := tail.Run(ctx, func(recs []*kgo.Record) {
			for _, rec := range recs {
				r.fold.record(rec)
			}
		})
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = errors.New("the client was closed")
		}
		r.mu.Lock()
		r.ready, r.err = nil, err
		r.mu.Unlock()
		r.deps.Log.WarnContext(ctx, "the topics can't be read, trying again", telemetry.Err(err), "after", startAgain)
		select {
		case <-ctx.Done():
		case <-time.After(startAgain):
		}
	}
	return nil
}

// caughtUp says whether everything that was written before the start has been read.
func (r *reader) caughtUp() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.ready:
		return true
	default:
		return false // also while there is no tail
	}
}

var errCatchingUp = errors.New("the topics are still being read")

// health is the check of readiness.
func (r *reader) health(context.Context) error {
	if r.caughtUp() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(errCatchingUp, r.err)
}
