package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/services/executor"
)

// openResult is what attempts take in the executor's memory while they run. The embedded broker lives in the same process and is
// counted too, so that the true figure is below.
type openResult struct {
	Attempts     int     `json:"attempts"`
	HeapBeforeMB float64 `json:"heapBeforeMB"`
	HeapOpenMB   float64 `json:"heapOpenMB"`
	KBEach       float64 `json:"kbEach"`
	Goroutines   int     `json:"goroutinesEach"`
	HeapAfterMB  float64 `json:"heapAfterMB"`
	OpenSeconds  float64 `json:"openSeconds"`
}

// String says it in a line.
func (r *openResult) String() string {
	return fmt.Sprintf("%d open attempts after %.1f s: heap %.1f MB, before %.1f MB, when all had ended %.1f MB: %.1f KB and %d goroutines each",
		r.Attempts, r.OpenSeconds, r.HeapOpenMB, r.HeapBeforeMB, r.HeapAfterMB, r.KBEach, r.Goroutines)
}

// waiting is an engine whose queries run until they are let go: what is measured is the executor, no driver and no server.
type waiting struct {
	running atomic.Int64
	release chan struct{}
}

// Submit waits.
func (w *waiting) Submit(ctx context.Context, _ engine.Query) (engine.Rows, error) {
	w.running.Add(1)
	defer w.running.Add(-1)
	select {
	case <-w.release:
		return nothing{}, nil
	case <-ctx.Done():
		return nil, &engine.Error{Engine: "clickhouse", Code: "394", Phase: engine.Answered, Err: context.Cause(ctx)}
	}
}

// Find says that all of them run.
func (w *waiting) Find(context.Context, string) (engine.Run, error) {
	return engine.Run{State: engine.RunActive}, nil
}

// Kill, Canary, Observe and Close have nothing to do.
func (w *waiting) Kill(context.Context, string) (bool, error) { return false, nil }

// Canary is not asked for here.
func (w *waiting) Canary(context.Context) error { return nil }

// Observe knows nothing.
func (w *waiting) Observe(context.Context) (signal.Observation, error) {
	return signal.Observation{}, nil
}

// Close has nothing to close.
func (w *waiting) Close() error { return nil }

type nothing struct{}

func (nothing) Columns() []event.Column { return []event.Column{{Name: "n", Type: "UInt64"}} }
func (nothing) Next() bool              { return false }
func (nothing) Values() ([]any, error)  { return nil, nil }
func (nothing) Err() error              { return nil }
func (nothing) Close() error            { return nil }
func (nothing) Stats() event.Stats      { return event.Stats{} }

func measureOpen(ctx context.Context, w *world, n int) (*openResult, error) {
	e := &waiting{release: make(chan struct{})}
	b, err := w.start(ctx, "open", n, e, executor.Hooks{})
	if err != nil {
		return nil, err
	}
	defer b.stop()
	let := sync.OnceFunc(func() { close(e.release) })
	defer let()
	time.Sleep(2 * time.Second) // partitions are given out
	r := &openResult{Attempts: n, HeapBeforeMB: heap()}
	before, began := runtime.NumGoroutine(), time.Now()
	for i := range n {
		if err := b.decide(ctx, fmt.Sprintf("open%d", i), fmt.Sprintf("SELECT sum(l_extendedprice * l_discount) FROM tpch.lineitem WHERE l_orderkey > %d", i)); err != nil {
			return nil, err
		}
	}
	for e.running.Load() < int64(n) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r.OpenSeconds = time.Since(began).Seconds()
	time.Sleep(2 * time.Second) // their changes are published
	r.HeapOpenMB = heap()
	r.Goroutines = (runtime.NumGoroutine() - before + n/2) / n
	r.KBEach = (r.HeapOpenMB - r.HeapBeforeMB) * 1024 / float64(n)
	let()
	if err := b.await(ctx, n); err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second)
	r.HeapAfterMB = heap()
	return r, nil
}

// heap is what is in use after a collection, with the goroutines' stacks, in MB.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc+m.StackInuse) / (1 << 20)
}
