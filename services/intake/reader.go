package intake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/intake/board"
)

// reader follows all partitions of the board's topics, outside of any group, from some time ago on.
type reader struct {
	kafka  stream.Config
	deps   stream.Deps
	since  func() time.Time
	fold   fold
	metric *readerMetrics

	mu     sync.Mutex
	behind map[place]int64 // where the log ended when we started, of partitions that have not been read so far
	known  bool            // behind has been filled
	err    error           // of the last try to start
}

type place struct {
	topic     string
	partition int32
}

// fetchWait bounds how long the broker may hold a fetch. Partitions that are added while one is under way only join the
// next, so with the library's 5 s a request could wait that long to be read back after a start.
const fetchWait = 250 * time.Millisecond

// startAgain is how long the reader waits before it tries to start again: the broker may be away, or the topics not made.
const startAgain = time.Second

func newReader(cfg Config, deps stream.Deps, b *board.Board, now func() time.Time) *reader {
	m := newReaderMetrics(deps.Registry)
	return &reader{
		kafka: cfg.Kafka, deps: deps, since: func() time.Time { return now().Add(-cfg.Tasks.LookBack) },
		fold: fold{kafka: cfg.Kafka, board: b, now: now, skipped: m.skip}, metric: m,
	}
}

func (r *reader) run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := r.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
		r.deps.Log.WarnContext(ctx, "the topics can't be read, trying again", telemetry.Err(err), "after", startAgain)
		select {
		case <-ctx.Done():
		case <-time.After(startAgain):
		}
	}
	return nil
}

// session reads until the context ends or the client is of no more use.
func (r *reader) session(ctx context.Context) error {
	cl, err := stream.NewClient(r.kafka, r.deps, "reader", kgo.KeepControlRecords(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(fetchWait))
	if err != nil {
		return err
	}
	defer cl.Close()
	starts, err := r.place(ctx, kadm.NewClient(cl))
	if err != nil {
		return err
	}
	cl.AddConsumePartitions(starts)
	for {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return ctx.Err()
		}
		for _, e := range fetches.Errors() {
			if errors.Is(e.Err, kerr.UnknownTopicID) || errors.Is(e.Err, kerr.InconsistentTopicID) {
				return fmt.Errorf("reading %s, which was made anew: %w", e.Topic, e.Err) // only a new client can read it
			}
			r.deps.Log.WarnContext(ctx, "reading from kafka", telemetry.KeyTopic, e.Topic, telemetry.KeyPartition, e.Partition, telemetry.Err(e.Err))
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, rec := range p.Records {
				r.fold.record(rec)
			}
			if n := len(p.Records); n > 0 {
				r.reached(place{p.Topic, p.Partition}, p.Records[n-1].Offset+1)
			}
		})
	}
}

// place finds where to start and where the log ends now.
func (r *reader) place(ctx context.Context, admin *kadm.Client) (map[string]map[int32]kgo.Offset, error) {
	topics := make([]string, len(boardTopics))
	for i, t := range boardTopics {
		topics[i] = r.kafka.Topic(t)
	}
	starts, err := admin.ListOffsetsAfterMilli(ctx, r.since().UnixMilli(), topics...)
	if err = errors.Join(err, starts.Error()); err != nil {
		return nil, fmt.Errorf("finding where to start reading: %w", err)
	}
	ends, err := admin.ListCommittedOffsets(ctx, topics...)
	if err = errors.Join(err, ends.Error()); err != nil {
		return nil, fmt.Errorf("finding where the topics end: %w", err)
	}
	behind := map[place]int64{}
	ends.Each(func(end kadm.ListedOffset) {
		if start, ok := starts.Lookup(end.Topic, end.Partition); ok && start.Offset < end.Offset {
			behind[place{end.Topic, end.Partition}] = end.Offset
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behind, r.known, r.err = behind, true, nil
	return starts.KOffsets(), nil
}

func (r *reader) reached(p place, next int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if end, ok := r.behind[p]; ok && next >= end {
		delete(r.behind, p)
	}
}

// caughtUp says whether everything that was written before the start has been read.
func (r *reader) caughtUp() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known && len(r.behind) == 0
}

// health is the check of readiness.
func (r *reader) health(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil:
		return r.err
	case !r.known:
		return errors.New("the topics have not been found yet")
	case len(r.behind) > 0:
		return fmt.Errorf("%d partitions are still being read", len(r.behind))
	default:
		return nil
	}
}
