package history

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/pointsman/pointsman/pkg/profile"
)

// Summary is what happened in a stretch of time, for people. Counts are strings in JSON, because a browser rounds them over 2^53;
// a rate has its sample size and its 95 % interval; what is not known is null.
type Summary struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Submitted counts the Tasks handed in, Ended those that ended, in the same stretch.
	Submitted int64 `json:"submitted,string"`
	Ended     int64 `json:"ended,string"`
	// SLA is the hit rate of the Tasks that were not rejected.
	SLA Rate `json:"sla"`
	// Rescued counts the Tasks whose first attempt a memory limit killed and a later one brought home; RoutedByHistory the first
	// decisions that history settled.
	Rescued         int64           `json:"rescued,string"`
	RoutedByHistory int64           `json:"routedByHistory,string"`
	Rejections      []Counted       `json:"rejections"`
	Targets         []TargetSummary `json:"targets"`
}

// Rate is a share with its sample size. Without a sample there is none.
type Rate struct {
	N    int64    `json:"n,string"`
	Hits int64    `json:"hits,string"`
	Rate *float64 `json:"rate"`
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// Counted is a count of something named.
type Counted struct {
	Name string `json:"name"`
	N    int64  `json:"n,string"`
}

// TargetSummary is the Tasks that ended on one cluster in one way for one first reason.
type TargetSummary struct {
	Engine   string `json:"engine"`
	Cluster  string `json:"cluster"`
	Status   string `json:"status"`
	Reason   string `json:"reason"`
	SLA      Rate   `json:"sla"`
	Retried  int64  `json:"retried,string"`
	Rerouted int64  `json:"rerouted,string"`
	// The times are in milliseconds; null when none was known.
	Queue Quantiles `json:"queueMs"`
	Exec  Quantiles `json:"execMs"`
	Total Quantiles `json:"totalMs"`
	// ReadBytes is the sum over the Tasks whose bytes are known; null when none were.
	ReadBytes *Exact `json:"readBytes"`
}

// Exact is a 64-bit count that JSON carries as a string.
type Exact uint64

// MarshalText writes the number in full.
func (e Exact) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%d", uint64(e)), nil }

// Quantiles are two quantiles with the size of their sample.
type Quantiles struct {
	N   int64    `json:"n,string"`
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
}

func newRate(n, hits uint64) Rate {
	r := Rate{N: int64(n), Hits: int64(hits)}
	if n > 0 {
		rate := float64(hits) / float64(n)
		low, high := profile.Wilson(r.Hits, r.N)
		r.Rate, r.Low, r.High = &rate, &low, &high
	}
	return r
}

func newQuantiles(n uint64, q []float32) Quantiles {
	out := Quantiles{N: int64(n)}
	if n > 0 && len(q) == 2 {
		p50, p95 := float64(q[0]), float64(q[1])
		out.P50, out.P95 = &p50, &p95
	}
	return out
}

// Summary reads what happened from one moment up to, but not including, another.
func (r *Reader) Summary(ctx context.Context, from, to time.Time) (Summary, error) {
	from, to = from.UTC().Truncate(time.Second), to.UTC().Truncate(time.Second)
	s := Summary{From: from, To: to, Rejections: []Counted{}, Targets: []TargetSummary{}}
	ctx = clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{"from": unix(from), "to": unix(to)}))
	if err := r.facts(ctx, &s); err != nil {
		return Summary{}, fmt.Errorf("reading the summary: %w", err)
	}
	if err := r.targets(ctx, &s); err != nil {
		return Summary{}, fmt.Errorf("reading the summary: %w", err)
	}
	return s, nil
}

func (r *Reader) facts(ctx context.Context, s *Summary) error {
	var submitted, rescued, byHistory uint64
	var ended, rejections []any
	if err := r.db.conn.QueryRow(ctx, statement("summary_facts")).Scan(&submitted, &ended, &rescued, &byHistory, &rejections); err != nil {
		return err
	}
	counts := [3]uint64{}
	for i := range counts {
		n, ok := ended[i].(uint64)
		if !ok {
			return fmt.Errorf("a count came as %T", ended[i])
		}
		counts[i] = n
	}
	s.Submitted, s.Ended, s.Rescued, s.RoutedByHistory = int64(submitted), int64(counts[0]), int64(rescued), int64(byHistory)
	s.SLA = newRate(counts[2], counts[1])
	names, ok1 := rejections[0].([]string)
	ns, ok2 := rejections[1].([]uint64)
	if !ok1 || !ok2 {
		return fmt.Errorf("rejections came as %T and %T", rejections[0], rejections[1])
	}
	for i := range names {
		s.Rejections = append(s.Rejections, Counted{names[i], int64(ns[i])})
	}
	return nil
}

func (r *Reader) targets(ctx context.Context, s *Summary) error {
	rows, err := r.db.conn.Query(ctx, statement("summary_targets"))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var t TargetSummary
		var n, hits, retried, rerouted, queueN, execN, totalN, readN, read uint64
		var queue, exec, total []float32
		if err := rows.Scan(&t.Engine, &t.Cluster, &t.Status, &t.Reason, &n, &hits, &retried, &rerouted,
			&queueN, &queue, &execN, &exec, &totalN, &total, &readN, &read); err != nil {
			return err
		}
		t.SLA, t.Retried, t.Rerouted = newRate(n, hits), int64(retried), int64(rerouted)
		t.Queue, t.Exec, t.Total = newQuantiles(queueN, queue), newQuantiles(execN, exec), newQuantiles(totalN, total)
		if readN > 0 {
			t.ReadBytes = (*Exact)(&read)
		}
		s.Targets = append(s.Targets, t)
	}
	return rows.Err()
}

// QueueHour is how long attempts waited for a cluster in one hour.
type QueueHour struct {
	Hour    time.Time `json:"hour"`
	Cluster string    `json:"cluster"`
	Queue   string    `json:"queue"`
	Waited  int64     `json:"waitedOverASecond,string"`
	Ms      Quantiles `json:"ms"`
	// Estimated is what was predicted for the attempts decided in that hour.
	Estimated Quantiles `json:"estimatedMs"`
}

// QueueHours reads the waits by the hour since a moment, newest first.
func (r *Reader) QueueHours(ctx context.Context, from time.Time) ([]QueueHour, error) {
	ctx = clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{"from": unix(from.Truncate(time.Hour))}))
	rows, err := r.db.conn.Query(ctx, statement("queue_hours"))
	if err != nil {
		return nil, fmt.Errorf("reading queue waits: %w", err)
	}
	defer rows.Close()
	out := []QueueHour{}
	for rows.Next() {
		var h QueueHour
		var n, waited, estN uint64
		var p50, p95 float32
		var est50, est95 *float32
		if err := rows.Scan(&h.Hour, &h.Cluster, &h.Queue, &n, &waited, &p50, &p95, &estN, &est50, &est95); err != nil {
			return nil, fmt.Errorf("reading queue waits: %w", err)
		}
		h.Hour, h.Waited, h.Ms = h.Hour.UTC(), int64(waited), newQuantiles(n, []float32{p50, p95})
		h.Estimated.N = int64(estN)
		if est50 != nil && est95 != nil {
			h.Estimated = newQuantiles(estN, []float32{*est50, *est95})
		}
		out = append(out, h)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading queue waits: %w", err)
	}
	return out, nil
}
