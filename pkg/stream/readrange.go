package stream

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

var readers atomic.Int64

// readRange reads a stretch of one partition with a client of its own, control records included, and ends when the stretch is read, or
// with the error of fn. topic carries the prefix.
func readRange(ctx context.Context, cfg Config, deps Deps, topic string, partition int32, from, to int64, fn func(*kgo.Record) error) error {
	if from >= to {
		return nil
	}
	deps.Tracer, deps.Registry = nil, nil // short-lived, and there may be many
	cl, err := NewClient(cfg, deps, fmt.Sprintf("reader-%d", readers.Add(1)),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(from)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer cl.Close()
	for {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var errs []error
		for _, e := range fetches.Errors() {
			errs = append(errs, e.Err)
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		for it := fetches.RecordIter(); !it.Done(); {
			rec := it.Next()
			if rec.Offset >= to {
				return nil
			}
			if err := fn(rec); err != nil {
				return err
			}
			if rec.Offset == to-1 {
				return nil
			}
		}
	}
}
