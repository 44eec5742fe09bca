package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TailConfig says what to follow without a consumer group: every process sees everything, and no place is kept.
type TailConfig struct {
	Topics []string // without prefix
	Name   string   // tells the tails of one process apart
	// FromEnd starts with what is written from now on. Otherwise the tail starts with the oldest record that is left, which on a
	// compacted topic gives the newest record of each key.
	FromEnd bool
	// Since starts with the first record of that time or later, where the oldest is not wanted.
	Since time.Time
}

// Tail follows topics.
type Tail struct {
	cfg   Config
	deps  Deps
	tc    TailConfig
	ready chan struct{}
}

// NewTail returns a tail; nothing happens before Run.
func NewTail(cfg Config, deps Deps, tc TailConfig) *Tail {
	return &Tail{cfg: cfg, deps: deps, tc: tc, ready: make(chan struct{})}
}

// Ready is closed once everything that was there when Run began has been handed over.
func (t *Tail) Ready() <-chan struct{} { return t.ready }

// Run hands over records until the context ends (nil), or reading is refused. It calls fn from one goroutine, in order per partition.
// Records without a value are handed over: on a compacted topic they mean that the key is gone.
func (t *Tail) Run(ctx context.Context, fn func(recs []*kgo.Record)) error {
	names := make([]string, len(t.tc.Topics))
	for i, n := range t.tc.Topics {
		names[i] = t.cfg.Topic(n)
	}
	deps := t.deps
	deps.Tracer = nil // what is followed here is state, not work
	// Partitions join the fetch after the one under way: with the library's 5 s the start could take that long.
	cl, err := NewClient(t.cfg, deps, t.tc.Name+"-tail", kgo.KeepControlRecords(), kgo.FetchMaxWait(250*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	starts, ends, err := bounds(ctx, admin, names)
	if err == nil && !t.tc.Since.IsZero() {
		if starts, err = admin.ListOffsetsAfterMilli(ctx, t.tc.Since.UnixMilli(), names...); err == nil {
			err = starts.Error()
		}
	}
	if err != nil {
		return fmt.Errorf("following %v: %w", names, err)
	}
	// The start is fixed here and not left to the client: what is written between now and its first look must not be missed.
	from := map[string]map[int32]kgo.Offset{}
	left := map[partitionKey]int64{}
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(end.Topic, end.Partition)
		if from[end.Topic] == nil {
			from[end.Topic] = map[int32]kgo.Offset{}
		}
		at := start.Offset
		if t.tc.FromEnd {
			at = end.Offset
		}
		from[end.Topic][end.Partition] = kgo.NewOffset().At(at)
		if at < end.Offset {
			left[partitionKey{end.Topic, end.Partition}] = end.Offset
		}
	})
	cl.AddConsumePartitions(from)
	return t.follow(ctx, cl, left, fn)
}

func (t *Tail) follow(ctx context.Context, cl *kgo.Client, left map[partitionKey]int64, fn func([]*kgo.Record)) error {
	ready := false
	for {
		if len(left) == 0 && !ready {
			ready = true
			close(t.ready)
		}
		fetches := cl.PollFetches(ctx)
		if ended(ctx) || fetches.IsClientClosed() {
			return nil
		}
		for _, e := range fetches.Errors() {
			if errors.Is(e.Err, kerr.TopicAuthorizationFailed) || errors.Is(e.Err, kerr.UnknownTopicID) {
				return fmt.Errorf("following %s: %w", e.Topic, e.Err)
			}
			t.deps.log().WarnContext(ctx, "following a topic", "topic", e.Topic, "partition", e.Partition, "error", e.Err)
		}
		fetches.EachPartition(func(fp kgo.FetchTopicPartition) {
			recs := make([]*kgo.Record, 0, len(fp.Records))
			for _, r := range fp.Records {
				if !r.Attrs.IsControl() {
					recs = append(recs, r)
				}
			}
			if len(recs) > 0 {
				fn(recs)
			}
			if n := len(fp.Records); n > 0 {
				k := partitionKey{fp.Topic, fp.Partition}
				if end, ok := left[k]; ok && fp.Records[n-1].Offset+1 >= end {
					delete(left, k)
				}
			}
		})
	}
}

// ended says that somebody has had enough, which is no error.
func ended(ctx context.Context) bool { return ctx.Err() != nil }

// bounds returns where the log of each partition starts and ends, for a reader of committed records.
func bounds(ctx context.Context, admin *kadm.Client, topics []string) (starts, ends kadm.ListedOffsets, err error) {
	if starts, err = admin.ListStartOffsets(ctx, topics...); err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, nil, err
	}
	if ends, err = admin.ListCommittedOffsets(ctx, topics...); err == nil {
		err = ends.Error()
	}
	return starts, ends, err
}
