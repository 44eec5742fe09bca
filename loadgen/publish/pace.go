package publish

import (
	"context"
	"iter"
	"time"

	"github.com/pointsman/pointsman/loadgen/workload"
)

// pace calls send for each arrival when it is due, with the time at which it was due. One that is overdue is sent at
// once; none is left out. It returns when the arrivals or the context end.
func pace(ctx context.Context, arrivals iter.Seq[workload.Arrival], send func(a workload.Arrival, due time.Time)) error {
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for a := range arrivals {
		due := start.Add(a.At)
		if wait := time.Until(due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		} else if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		send(a, due)
	}
	return nil
}
