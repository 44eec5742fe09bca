package profiler

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

// pools knows from the signals which pools were sent to sleep.
type pools struct {
	mu    sync.Mutex
	facts signal.Snapshot
}

func newPools() *pools { return &pools{facts: signal.Snapshot{}} }

// asleep says that the newest word on a pool is that it has no replicas. How old it is does not matter: a pool stays as it was left.
func (p *pools) asleep(cluster string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, known := p.facts.Get(cluster, signal.Replicas, time.Time{}, 0).Last()
	return known && n == 0
}

// take folds records in. What can't be read is left out: the sink dead-letters it.
func (p *pools) take(recs []*kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rec := range recs {
		env, err := stream.Decode(rec, stream.RulesFor(event.TopicSignals))
		if err != nil || env.Tombstone {
			continue
		}
		var o signal.Observation
		if json.Unmarshal(env.Data, &o) == nil && o.Cluster != "" {
			p.facts.Merge(o)
		}
	}
}

// followPools reads the signals, outside the group, until the context ends.
func (a *App) followPools(ctx context.Context) error {
	deps := a.deps
	deps.Registry = nil
	again := a.backOff(ctx)
	for ctx.Err() == nil {
		err := stream.NewTail(a.cfg.Kafka, deps, stream.TailConfig{Name: "profiler-pools", Topics: []string{event.TopicSignals}}).Run(ctx, a.pools.take)
		if ctx.Err() != nil {
			return nil
		}
		a.log.WarnContext(ctx, "following signals; starting anew", telemetry.Err(err))
		select {
		case <-ctx.Done():
		case <-time.After(again.NextBackOff()):
		}
	}
	return nil
}
