package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var readers atomic.Int64 // names the clients of short readings apart

// Range is a stretch of one partition: from From up to but not including To.
type Range struct {
	Topic     string // without prefix
	Partition int32
	From, To  int64
}

// Plan finds the records of a stretch of time, by their record times. Partitions without any are left out: an empty plan means that
// there is nothing to replay. A zero end is now. The plan is fixed: what is written afterwards is not in it.
//
// Record times need not be in order: a range may hold records from outside the time, and the caller looks at each.
func Plan(ctx context.Context, cfg Config, deps Deps, topics []string, from, to time.Time) ([]Range, error) {
	deps.Tracer, deps.Registry = nil, nil
	cl, err := NewClient(cfg, deps, fmt.Sprintf("plan-%d", readers.Add(1)))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = cfg.Topic(t)
	}
	starts, ends, err := bounds(ctx, admin, names)
	if err != nil {
		return nil, fmt.Errorf("planning a replay: %w", err)
	}
	// For a time after the last record, the broker answers with the end and the time -1: that is an empty range, not one to read.
	first, err := after(ctx, admin, from, names, starts)
	if err != nil {
		return nil, fmt.Errorf("planning a replay: %w", err)
	}
	last := ends
	if !to.IsZero() {
		if last, err = after(ctx, admin, to, names, starts); err != nil {
			return nil, fmt.Errorf("planning a replay: %w", err)
		}
	}
	var ranges []Range
	ends.Each(func(end kadm.ListedOffset) {
		a, okA := first.Lookup(end.Topic, end.Partition)
		z, okZ := last.Lookup(end.Topic, end.Partition)
		if !okA || !okZ {
			return
		}
		if s := (Range{cfg.Name(end.Topic), end.Partition, a.Offset, min(z.Offset, end.Offset)}); s.From < s.To {
			ranges = append(ranges, s)
		}
	})
	slices.SortFunc(ranges, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return ranges, nil
}

func after(ctx context.Context, admin *kadm.Client, at time.Time, topics []string, starts kadm.ListedOffsets) (kadm.ListedOffsets, error) {
	if at.IsZero() {
		return starts, nil
	}
	listed, err := admin.ListOffsetsAfterMilli(ctx, at.UnixMilli(), topics...)
	if err != nil {
		return nil, err
	}
	return listed, listed.Error()
}

// ReadRanges reads what was planned, with no group and no commit. Each partition is in order; fn is called from one goroutine.
// It ends with fn's error, when all is read, or when the context ends.
func ReadRanges(ctx context.Context, cfg Config, deps Deps, ranges []Range, fn func(*kgo.Record) error) error {
	from := map[string]map[int32]kgo.Offset{}
	left := map[partitionKey]int64{}
	for _, s := range ranges {
		topic := cfg.Topic(s.Topic)
		if s.From >= s.To {
			continue
		}
		if from[topic] == nil {
			from[topic] = map[int32]kgo.Offset{}
		}
		from[topic][s.Partition] = kgo.NewOffset().At(s.From)
		left[partitionKey{topic, s.Partition}] = s.To
	}
	deps.Tracer, deps.Registry = nil, nil // short-lived, and there may be many
	cl, err := NewClient(cfg, deps, fmt.Sprintf("reader-%d", readers.Add(1)), kgo.ConsumePartitions(from),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var errs []error
		for _, e := range fetches.Errors() {
			errs = append(errs, fmt.Errorf("reading %s[%d]: %w", e.Topic, e.Partition, e.Err))
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		for it := fetches.RecordIter(); !it.Done(); {
			rec := it.Next()
			k := partitionKey{rec.Topic, rec.Partition}
			to, ok := left[k]
			if !ok {
				continue
			}
			if rec.Offset < to && !rec.Attrs.IsControl() {
				if err := fn(rec); err != nil {
					return err
				}
			}
			if rec.Offset >= to-1 {
				delete(left, k)
				cl.PauseFetchPartitions(map[string][]int32{rec.Topic: {rec.Partition}})
			}
		}
	}
	return nil
}
