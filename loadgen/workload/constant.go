package workload

import (
	"fmt"
	"iter"
	"math"
	"time"
)

// ConstantRate sends the reads of the trace one after the other at a fixed rate, for benchmarks: count of them, each
// with an id of its own. It makes them as they are asked for, so that a count of millions costs no memory.
// Of the options only Seed and Prefix are used.
func ConstantRate(opts Options, perSecond float64, count int) (iter.Seq[Arrival], error) {
	if !(perSecond > 0) || math.IsInf(perSecond, 0) {
		return nil, fmt.Errorf("rate %v is not a number above 0", perSecond)
	}
	if count < 1 {
		return nil, fmt.Errorf("count %d is less than 1", count)
	}
	opts.Window, opts.Count = 0, 0
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	rows, err := cabRows()
	if err != nil {
		return nil, err
	}
	// The trace once, in its order, from a place that depends on the seed; its own times are not used.
	cycle, err := cab(stream(opts.Seed, 4), len(rows), traceLength)
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	offset := stream(opts.Seed, 5).IntN(len(cycle))
	return func(yield func(Arrival) bool) {
		for i := range count {
			a := cycle[(offset+i)%len(cycle)]
			a.At = time.Duration(float64(i) / perSecond * float64(time.Second))
			a.Task.ID = fmt.Sprintf("%s-%d-r%08d", opts.Prefix, opts.Seed, i)
			if !yield(a) {
				return
			}
		}
	}, nil
}
