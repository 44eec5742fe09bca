// Package watch reads the newest state of the clusters off the signals topic, for attempts that wait for a pool to wake up.
//
// It reads the whole topic without a group: every executor needs all of it. What a fact means for routing is the router's.
package watch

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// Watch knows which pools sleep.
type Watch struct {
	// fresh is how old a fact may be. What is older counts as unknown, and an unknown pool is tried, not waited for.
	fresh time.Duration

	mu      sync.Mutex
	facts   signal.Snapshot
	changed chan struct{}
}

// New makes a watch that knows nothing yet.
func New(fresh time.Duration) *Watch {
	return &Watch{fresh: fresh, facts: signal.Snapshot{}, changed: make(chan struct{})}
}

// startAgain is how long it waits before it starts anew: the broker may be away, or the topic was made anew.
const startAgain = time.Second

// Run reads signals until the context ends.
func (w *Watch) Run(ctx context.Context, cfg stream.Config, deps stream.Deps) error {
	said := deps.Chatter() // a broker that is gone is so for many rounds
	for ctx.Err() == nil {
		tail := stream.NewTail(cfg, deps, stream.TailConfig{Name: "executor-signals", Topics: []string{event.TopicSignals}})
		err := tail.Run(ctx, func(recs []*kgo.Record) {
			for _, rec := range recs {
				w.record(rec)
			}
		})
		if ctx.Err() != nil {
			return nil
		}
		said.WarnContext(ctx, "reading signals; starting anew", telemetry.KeyTopic, event.TopicSignals, telemetry.Err(err))
		select {
		case <-ctx.Done():
		case <-time.After(startAgain):
		}
	}
	return nil
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

// Ready says that a fresh signal calls a cluster ready, or healthy where nobody scales it, and none says the opposite.
func (w *Watch) Ready(cluster string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ready, readyKnown := w.facts.Get(cluster, signal.Ready, now, w.fresh).Get()
	healthy, healthyKnown := w.facts.Get(cluster, signal.Healthy, now, w.fresh).Get()
	return (readyKnown || healthyKnown) && (!readyKnown || ready != 0) && (!healthyKnown || healthy != 0)
}
