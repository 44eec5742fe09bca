package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/pointsman/pointsman/services/executor"
)

// streamResult is how fast a large result is stored, beside the driver that reads the same one and drops it.
type streamResult struct {
	Rows       int64   `json:"rows"`
	Bytes      int64   `json:"bytes"` // of the file
	OursPerSec float64 `json:"oursRowsPerSecond"`
	RawPerSec  float64 `json:"rawRowsPerSecond"`
	Ratio      float64 `json:"ratio"` // goal: 0.7
	// The heap while it is streamed: at a quarter, at three quarters, and at its highest between collections.
	HeapQuarterMB float64 `json:"heapQuarterMB"`
	HeapLateMB    float64 `json:"heapThreeQuartersMB"`
	HeapPeakMB    float64 `json:"heapPeakMB"`
}

// String says it in a line.
func (r *streamResult) String() string {
	return fmt.Sprintf("streaming %d rows, %.2f GB: %.0f rows/s, the driver alone %.0f rows/s: %.2f; heap %.0f MB at a quarter, %.0f MB at three, %.0f MB at most",
		r.Rows, float64(r.Bytes)/1e9, r.OursPerSec, r.RawPerSec, r.Ratio, r.HeapQuarterMB, r.HeapLateMB, r.HeapPeakMB)
}

func measureStream(ctx context.Context, w *world, o options) (*streamResult, error) {
	b, err := w.start(ctx, "stream", 1, nil, executor.Hooks{})
	if err != nil {
		return nil, err
	}
	defer b.stop()
	sql := fmt.Sprintf("SELECT number, randomPrintableASCII(%d) AS text FROM numbers(%d)", o.width, o.rows)
	r := &streamResult{}
	var ours, raw []float64
	for i := range o.rounds {
		began := time.Now()
		if err := rawStream(ctx, w, sql, o.rows); err != nil {
			return nil, err
		}
		took := time.Since(began)
		raw = append(raw, float64(o.rows)/took.Seconds())
		heaps := watchHeap()
		began = time.Now()
		id := fmt.Sprintf("large%d", i)
		if err := b.decide(ctx, id, sql); err != nil {
			return nil, err
		}
		if err := b.await(ctx, 1); err != nil {
			return nil, err
		}
		took = time.Since(began)
		seen := heaps()
		ours = append(ours, float64(o.rows)/took.Seconds())
		b.mu.Lock()
		res := b.outcomes[id].Result
		b.mu.Unlock()
		if res == nil || res.Rows != int64(o.rows) || res.Truncated {
			return nil, fmt.Errorf("the result is not whole: %+v", res)
		}
		r.Rows, r.Bytes = res.Rows, res.Bytes
		if n := len(seen); n > 0 {
			r.HeapQuarterMB, r.HeapLateMB, r.HeapPeakMB = max(r.HeapQuarterMB, seen[n/4]), max(r.HeapLateMB, seen[n*3/4]), max(r.HeapPeakMB, slices.Max(seen))
		}
	}
	r.OursPerSec, r.RawPerSec = slices.Max(ours), slices.Max(raw)
	r.Ratio = r.OursPerSec / r.RawPerSec
	return r, nil
}

// rawStream reads a result with the driver and nothing else.
func rawStream(ctx context.Context, w *world, sql string, want int) error {
	conn, err := clickhouse.Open(w.engine.Options())
	if err != nil {
		return err
	}
	defer conn.Close()
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var number uint64
		var text string
		if err := rows.Scan(&number, &text); err != nil {
			return err
		}
		n++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if n != want {
		return fmt.Errorf("the driver read %d rows of %d", n, want)
	}
	return nil
}

// watchHeap looks at the heap from time to time until it is asked for what it saw, in MB.
func watchHeap() func() []float64 {
	var seen []float64
	var wg sync.WaitGroup
	end := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(100 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				seen = append(seen, float64(m.HeapAlloc)/(1<<20))
			}
		}
	})
	return func() []float64 {
		close(end)
		wg.Wait()
		return seen
	}
}
