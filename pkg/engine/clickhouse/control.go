package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

const source = "engine"

// Find looks an attempt id up among the running queries. ClickHouse keeps no finished ones there, and its query log is
// optional and late, so the answer is active or unknown.
func (e *Engine) Find(ctx context.Context, id string) (engine.Run, error) {
	rows, err := e.control.Query(ctx, "SELECT elapsed, toInt64(read_rows), toInt64(read_bytes), toInt64(peak_memory_usage) FROM system.processes WHERE query_id = ?", id)
	if err != nil {
		return engine.Run{}, fmt.Errorf("looking up a query: %w", e.wrap(err, nil))
	}
	defer func() { _ = rows.Close() }()
	run := engine.Run{State: engine.RunUnknown}
	for rows.Next() {
		var (
			elapsed               float64
			readRows, bytes, peak int64
		)
		if err := rows.Scan(&elapsed, &readRows, &bytes, &peak); err != nil {
			return engine.Run{}, fmt.Errorf("looking up a query: %w", e.wrap(err, nil))
		}
		run = engine.Run{
			State:   engine.RunActive,
			Elapsed: time.Duration(elapsed * float64(time.Second)),
			Stats:   event.Stats{ReadRows: &readRows, ReadBytes: &bytes, PeakMemoryBytes: &peak},
		}
	}
	if err := rows.Err(); err != nil {
		return engine.Run{}, fmt.Errorf("looking up a query: %w", e.wrap(err, nil))
	}
	return run, nil
}

// Kill tells the engine to stop an attempt and waits until it is gone. It does not use SYNC, which waits for ever for a
// query that does not look at its flag, and hangs the embedded engine; system.processes tells the same.
func (e *Engine) Kill(ctx context.Context, id string) (bool, error) {
	rows, err := e.control.Query(ctx, "KILL QUERY WHERE query_id = ? ASYNC", id)
	if errors.Is(err, io.EOF) && e.cfg.Protocol == Native {
		return false, nil // no row says that nothing was killed
	}
	if err != nil {
		return false, fmt.Errorf("killing a query: %w", e.wrap(err, nil))
	}
	found := false
	for rows.Next() {
		found = true
	}
	err = rows.Err()
	_ = rows.Close()
	if err != nil {
		return false, fmt.Errorf("killing a query: %w", e.wrap(err, nil))
	}
	if !found {
		return false, nil
	}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		run, err := e.Find(ctx, id)
		if err != nil {
			return true, fmt.Errorf("waiting for a killed query to end: %w", err)
		}
		if run.State != engine.RunActive {
			return true, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return true, fmt.Errorf("waiting for a killed query to end: %w", context.Cause(ctx))
		}
	}
}

// Canary runs the configured statement to its end.
func (e *Engine) Canary(ctx context.Context) error {
	rows, err := e.control.Query(ctx, e.cfg.Canary)
	if err != nil {
		return fmt.Errorf("running the canary: %w", e.wrap(err, nil))
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("running the canary: %w", e.wrap(err, nil))
	}
	return nil
}

// Observe counts running queries, without those that look at the engine itself, and reads its memory. ClickHouse has no
// queue of its own, so nothing is said of one. An engine that does not answer is known to be unhealthy; all else is absent.
func (e *Engine) Observe(ctx context.Context) (signal.Observation, error) {
	o := signal.Observation{Cluster: e.cfg.Name, Source: source, Values: map[signal.Name]signal.Value{}}
	rows, err := e.control.Query(ctx, "SELECT toInt64(countIf(query NOT LIKE '%system.processes%')), "+
		"(SELECT toInt64(any(value)) FROM system.metrics WHERE metric = 'MemoryTracking') FROM system.processes")
	var running int64
	var memory *int64
	if err == nil {
		for rows.Next() && err == nil {
			err = rows.Scan(&running, &memory)
		}
		if err == nil {
			err = rows.Err()
		}
		_ = rows.Close()
	}
	o.At = time.Now().UTC()
	o.Values[signal.Healthy] = signal.OfFlag(err == nil, source, o.At)
	if err != nil {
		return o, fmt.Errorf("observing the engine: %w", e.wrap(err, nil))
	}
	o.Values[signal.Running] = signal.Of(float64(running), signal.Count, source, o.At)
	if memory != nil && *memory > 0 {
		o.Values[signal.MemoryUsedBytes] = signal.Of(float64(*memory), signal.Bytes, source, o.At)
	}
	return o, nil
}
