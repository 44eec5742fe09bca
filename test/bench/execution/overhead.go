package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/services/executor"
)

// overheadResult is the time from the claim to the engine's first answer, beside a call of the same client without a claim.
type overheadResult struct {
	Attempts int     `json:"attempts"`
	OursP50  float64 `json:"oursP50Ms"`
	OursP99  float64 `json:"oursP99Ms"`
	RawP50   float64 `json:"rawP50Ms"`
	RawP99   float64 `json:"rawP99Ms"`
	BoundMs  float64 `json:"boundMs"` // 1.3 times the raw p99, and 10 ms
	Within   bool    `json:"within"`
}

// String says it in a line.
func (r *overheadResult) String() string {
	return fmt.Sprintf("overhead, claim to first answer, %d attempts: p50 %.1f ms, p99 %.1f ms; the engine's call alone: p50 %.1f ms, p99 %.1f ms; bound of p99 %.1f ms, kept: %v",
		r.Attempts, r.OursP50, r.OursP99, r.RawP50, r.RawP99, r.BoundMs, r.Within)
}

// probe takes a few milliseconds at the engine, as a small dashboard query does.
const probe = "SELECT count(), sum(number) FROM numbers(3000000)"

func measureOverhead(ctx context.Context, w *world, n int) (*overheadResult, error) {
	var mu sync.Mutex
	claiming, spans := map[string]time.Time{}, []time.Duration{}
	b, err := w.start(ctx, "overhead", 4, nil, executor.Hooks{At: func(_ context.Context, step executor.Step, id string) {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		switch step {
		case executor.StepClaiming:
			claiming[id] = now
		case executor.StepSubmitted:
			spans = append(spans, now.Sub(claiming[id]))
		default:
		}
	}})
	if err != nil {
		return nil, err
	}
	defer b.stop()
	raw, err := engines.Open(engines.Config{Name: "raw", Kind: "clickhouse", URL: w.engine.URL(), User: "default", Queries: 4})
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	const warm = 20
	var calls []time.Duration
	for i := range n + warm { // by turns, so that both meet the same machine
		if err := b.decide(ctx, fmt.Sprintf("t%d", i), probe); err != nil {
			return nil, err
		}
		if err := b.await(ctx, 1); err != nil {
			return nil, err
		}
		took, err := call(ctx, raw, fmt.Sprintf("raw%d/1", i))
		if err != nil {
			return nil, err
		}
		calls = append(calls, took)
	}
	mu.Lock()
	defer mu.Unlock()
	ours, theirs := spans[warm:], calls[warm:]
	r := &overheadResult{Attempts: n, OursP50: at(ours, 0.5), OursP99: at(ours, 0.99), RawP50: at(theirs, 0.5), RawP99: at(theirs, 0.99)}
	r.BoundMs = 1.3*r.RawP99 + 10
	r.Within = r.OursP99 <= r.BoundMs
	return r, nil
}

// call is the engine's own call: from its submission to its first answer.
func call(ctx context.Context, e engine.Engine, id string) (time.Duration, error) {
	began := time.Now()
	rows, err := e.Submit(ctx, engine.Query{ID: id, SQL: probe})
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	for rows.Next() {
	}
	if err := rows.Close(); err != nil {
		return 0, err
	}
	return took, rows.Err()
}

// at is a quantile in milliseconds.
func at(d []time.Duration, q float64) float64 {
	s := slices.Sorted(slices.Values(d))
	return float64(s[min(int(q*float64(len(s))), len(s)-1)]) / float64(time.Millisecond)
}
