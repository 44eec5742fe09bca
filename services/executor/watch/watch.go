// Package watch reads the newest state of the clusters off the signals topic, for attempts that wait for a pool to wake up.
//
// It reads the whole topic without a group: every executor needs all of it. What a fact means for routing is the router's.
package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
)

// Watch knows which pools sleep.
type Watch struct {
	log *slog.Logger
	// fresh is how old a fact may be. What is older counts as unknown, and an unknown pool is tried, not waited for.
	fresh time.Duration

	mu      sync.Mutex
	facts   signal.Snapshot
	changed chan struct{}
}

// New makes a watch that knows nothing yet.
func New(log *slog.Logger, fresh time.Duration) *Watch {
	return &Watch{log: log, fresh: fresh, facts: signal.Snapshot{}, changed: make(chan struct{})}
}

// Run reads signals until the context ends.
func (w *Watch) Run(ctx context.Context, cfg stream.Config, deps stream.Deps) error {
	cl, err := stream.NewClient(cfg, deps, "executor-signals",
		kgo.ConsumeTopics(cfg.Topic(event.TopicSignals)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return fmt.Errorf("watching signals: %w", err)
	}
	defer cl.Close()
	for {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return nil
		}
		for _, e := range fetches.Errors() {
			w.log.WarnContext(ctx, "reading signals", "partition", e.Partition, "error", e.Err)
		}
		fetches.EachRecord(w.record)
	}
}

// record takes one record. What can't be read is left out: it says nothing, and the profiler counts it.
func (w *Watch) record(rec *kgo.Record) {
	env, err := stream.Decode(rec, stream.RulesFor(event.TopicSignals))
	if err != nil || env.Tombstone {
		return
	}
	var o signal.Observation
	if json.Unmarshal(env.Data, &o) != nil || o.Cluster == "" {
		return
	}
	w.Observe(o)
}

// Observe folds an observation in and wakes whoever waits.
func (w *Watch) Observe(o signal.Observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.facts.Merge(o)
	close(w.changed)
	w.changed = make(chan struct{})
}

// Changed is closed at the next observation. Take it before asking.
func (w *Watch) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Asleep says that a cluster is known not to be ready and that somebody can wake it, which is known by the number of
// replicas or the time to wake that are reported for it. A cluster that nobody scales and that is down is not waited for: a
// query finds that out sooner.
func (w *Watch) Asleep(cluster string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ready, known := w.facts.Get(cluster, signal.Ready, now, w.fresh).Get()
	if !known || ready != 0 {
		return false
	}
	_, replicas := w.facts.Get(cluster, signal.Replicas, now, 0).Last()
	_, wakes := w.facts.Get(cluster, signal.WakeMs, now, 0).Last()
	return replicas || wakes
}
