package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/loadgen/publish"
	"github.com/pointsman/pointsman/loadgen/workload"
	"github.com/pointsman/pointsman/pkg/event"
)

// latencyResult is the time from a request's produce to the engine that has the query, against three plain hops.
type latencyResult struct {
	PerSecond int       `json:"perSecond"`
	Ours      quantiles `json:"ours"`
	Plain     quantiles `json:"plain"`
	// Cold is the first second of each window, after the other side's turn: our router asks history anew then for what it has not
	// used for two seconds, and waits for the answer, up to 150 ms.
	OursCold  quantiles `json:"oursCold"`
	PlainCold quantiles `json:"plainCold"`
	RatioP50  float64   `json:"ratioP50"`
	RatioP99  float64   `json:"ratioP99"`
	GoalP50   float64   `json:"goalP50"`
	GoalP99   float64   `json:"goalP99"`
	// WindowRatiosP50 are those of each pair of windows: their spread says how quiet the machine was.
	WindowRatiosP50 []float64 `json:"windowRatiosP50"`
	DecisionBytes   int       `json:"decisionBytes"`
	ClaimBytes      int       `json:"claimBytes"`
}

// quantiles are in milliseconds. Seen is where the decision is read: after two of the three hops.
type quantiles struct {
	N       int     `json:"n"`
	P50     float64 `json:"p50"`
	P95     float64 `json:"p95"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
	SeenP50 float64 `json:"seenP50"`
	SeenP99 float64 `json:"seenP99"`
}

// The goals.
const (
	latencyGoalP50 = 1.5
	latencyGoalP99 = 2.0
)

// side is what carries a request through: our services, or a plain chain.
type side struct {
	topics
	producer *kgo.Client
	watch    *stopwatch
	stop     func() error
}

func measureLatency(ctx context.Context, g *ground, o options) (_ *latencyResult, err error) {
	db, err := g.history(ctx, "bench_latency")
	if err != nil {
		return nil, err
	}
	const warmUp = 300
	perWindow := int(float64(o.rate) * o.window.Seconds())
	leadIn := o.rate // a second's
	tasks, err := reads("latency", warmUp+(leadIn+perWindow)*o.windows)
	if err != nil {
		return nil, err
	}
	ours, err := startOurs(ctx, g, db)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ours.close(ctx)) }()
	if err := ours.window(ctx, o.rate, tasks[:warmUp]); err != nil {
		return nil, fmt.Errorf("warming up: %w", err)
	}
	out := &latencyResult{PerSecond: o.rate, GoalP50: latencyGoalP50, GoalP99: latencyGoalP99}
	decisions, claims, err := ours.recordsOf(ctx, warmUp)
	if err != nil {
		return nil, err
	}
	out.DecisionBytes, out.ClaimBytes = meanBytes(decisions), meanBytes(claims)
	plain, err := startChain(ctx, g, decisions, claims)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plain.close(ctx)) }()
	if err := plain.window(ctx, o.rate, tasks[:warmUp]); err != nil {
		return nil, fmt.Errorf("warming up: %w", err)
	}
	for i := range o.windows {
		batch := tasks[warmUp+i*(leadIn+perWindow):][:leadIn+perWindow]
		var pair [2]float64
		for at, s := range []*side{ours, plain} {
			s.watch.measure(&s.watch.cold)
			if err := s.window(ctx, o.rate, batch[:leadIn]); err != nil {
				return nil, err
			}
			done := func() {}
			if s == ours {
				if done, err = g.profiling("latency"); err != nil {
					return nil, err
				}
			}
			from := s.watch.measure(&s.watch.steady)
			err := s.window(ctx, o.rate, batch[leadIn:])
			done()
			if err != nil {
				return nil, err
			}
			pair[at] = s.watch.since(from)
		}
		g.say("  window %d: p50 %.2f ms, three plain hops %.2f ms", i+1, pair[0], pair[1])
		out.WindowRatiosP50 = append(out.WindowRatiosP50, pair[0]/pair[1])
	}
	out.Ours, out.Plain = ours.watch.steady.quantiles(), plain.watch.steady.quantiles()
	out.OursCold, out.PlainCold = ours.watch.cold.quantiles(), plain.watch.cold.quantiles()
	out.RatioP50, out.RatioP99 = out.Ours.P50/out.Plain.P50, out.Ours.P99/out.Plain.P99
	return out, nil
}

// window sends Tasks open loop, one each time it is due, whatever came of those before, and waits until all have arrived.
func (s *side) window(ctx context.Context, rate int, tasks []workload.Arrival) error {
	start := time.Now()
	for i, a := range tasks {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		if err := sleepUntil(ctx, due); err != nil {
			return err
		}
		rec, err := publish.Record(a)
		if err != nil {
			return err
		}
		s.watch.sent(a.Task.ID)
		s.producer.Produce(ctx, rec, func(_ *kgo.Record, err error) {
			if err != nil {
				s.watch.fail(err)
			}
		})
	}
	return s.watch.wait(ctx)
}

func (s *side) close(ctx context.Context) error {
	err := s.stop()
	s.producer.Close()
	return errors.Join(err, s.drop(context.WithoutCancel(ctx)))
}

func sleepUntil(ctx context.Context, due time.Time) error {
	wait := time.Until(due)
	if wait <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newSide makes the topics and the producer, which is the same on both sides.
func newSide(ctx context.Context, g *ground, prefix string) (*side, error) {
	t, err := g.topics(ctx, prefix)
	if err != nil {
		return nil, err
	}
	cl, err := t.client(kgo.DefaultProduceTopic(t.Topic(event.TopicRequests)), kgo.ProducerLinger(0))
	if err != nil {
		return nil, err
	}
	return &side{topics: t, producer: cl, watch: newStopwatch()}, nil
}

// stopwatch takes the time of each Task on its way.
type stopwatch struct {
	mu           sync.Mutex
	at           map[string]time.Time
	into         *times
	cold, steady times
	failed       error
	changed      chan struct{}
}

// times are how long it took until the decision was read, and until the query was there.
type times struct{ seen, arrived []time.Duration }

func newStopwatch() *stopwatch {
	return &stopwatch{at: map[string]time.Time{}, into: &times{}, changed: make(chan struct{}, 1)}
}

// measure says where what is sent from now on belongs, and how much is there already. Nothing may be under way.
func (w *stopwatch) measure(into *times) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.into = into
	return len(into.arrived)
}

func (w *stopwatch) sent(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at[id] = time.Now()
}

// decided notes that the decision was read.
func (w *stopwatch) decided(id string) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.at[id]; ok {
		w.into.seen = append(w.into.seen, now.Sub(at))
	}
}

// arrive notes that the query has come to its engine.
func (w *stopwatch) arrive(id string) {
	now := time.Now()
	w.mu.Lock()
	if at, ok := w.at[id]; ok {
		delete(w.at, id)
		w.into.arrived = append(w.into.arrived, now.Sub(at))
	}
	w.mu.Unlock()
	w.tell()
}

func (w *stopwatch) fail(err error) {
	w.mu.Lock()
	w.failed = err
	w.mu.Unlock()
	w.tell()
}

func (w *stopwatch) tell() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// wait waits until everything that was sent has arrived.
func (w *stopwatch) wait(ctx context.Context) error {
	late := time.After(patience)
	for {
		w.mu.Lock()
		left, failed := len(w.at), w.failed
		w.mu.Unlock()
		switch {
		case failed != nil:
			return fmt.Errorf("publishing: %w", failed)
		case left == 0:
			return nil
		}
		select {
		case <-w.changed:
		case <-late:
			return fmt.Errorf("%d tasks have not arrived after %s", left, patience)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// since is the median of what has arrived after the first n.
func (w *stopwatch) since(n int) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return quantile(slices.Sorted(slices.Values(w.into.arrived[n:])), 0.5)
}

func (t times) quantiles() quantiles {
	arrived, seen := slices.Sorted(slices.Values(t.arrived)), slices.Sorted(slices.Values(t.seen))
	return quantiles{
		N: len(arrived), P50: quantile(arrived, 0.5), P95: quantile(arrived, 0.95), P99: quantile(arrived, 0.99), Max: quantile(arrived, 1),
		SeenP50: quantile(seen, 0.5), SeenP99: quantile(seen, 0.99),
	}
}

// quantile is in milliseconds; the list is sorted.
func quantile(list []time.Duration, q float64) float64 {
	if len(list) == 0 {
		return 0
	}
	i := min(len(list)-1, int(q*float64(len(list))))
	return float64(list[i]) / float64(time.Millisecond)
}
