package router

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// startAgain is how long a follower waits before it starts anew: the broker may be away, or a topic was made anew.
const startAgain = time.Second

// follow reads all partitions of some topics without a group until the context ends, and calls ready once what was there has
// been handed over.
func (a *App) follow(ctx context.Context, tc stream.TailConfig, ready func(), take func(*kgo.Record)) error {
	said := a.deps().Chatter() // a broker that is gone is so for many rounds
	for ctx.Err() == nil {
		tail := stream.NewTail(a.cfg.Kafka, a.deps(), tc)
		ended := make(chan struct{})
		go func() {
			select {
			case <-tail.Ready():
				ready()
			case <-ended:
			}
		}()
		err := tail.Run(ctx, func(recs []*kgo.Record) {
			for _, rec := range recs {
				take(rec)
			}
		})
		close(ended)
		if ctx.Err() != nil {
			return nil
		}
		said.WarnContext(ctx, "following topics; starting anew", telemetry.KeyTopic, strings.Join(tc.Topics, ","), telemetry.Err(err))
		select {
		case <-ctx.Done():
		case <-time.After(startAgain):
		}
	}
	return nil
}

// followSignals keeps the newest signals of all clusters.
func (a *App) followSignals(ctx context.Context) error {
	tc := stream.TailConfig{Name: "signals", Topics: []string{event.TopicSignals}}
	told := map[string]bool{}
	return a.follow(ctx, tc, func() { a.signalsReady.Open(); a.readSignals() }, func(rec *kgo.Record) {
		env, err := stream.Decode(rec, stream.RulesFor(event.TopicSignals))
		if err != nil || env.Tombstone {
			return // the profiler dead-letters what can't be read; a router must not do it once more for each of its replicas
		}
		var o signal.Observation
		if err := json.Unmarshal(env.Data, &o); err != nil || o.Cluster == "" {
			return
		}
		if now := time.Now(); ahead(&o, now) {
			if source := o.Cluster + "/" + o.Source; !told[source] {
				told[source] = true
				a.log.WarnContext(ctx, "signals from the future are not looked at: a clock is wrong", "cluster", o.Cluster, "source", o.Source, "observed_at", o.At)
			}
			return
		}
		a.decider.clusters.observe(o)
		a.decider.latches.observe(o)
	})
}

// ahead reports whether an observation is from further in the future than a clock may be off. Taken in, it would keep all that is
// observed until then from being news, and a cluster would look as it did for hours.
func ahead(o *signal.Observation, now time.Time) bool {
	most := now.Add(maxSkew)
	for _, v := range o.Values {
		if v.At.After(most) {
			return true
		}
	}
	return o.At.After(most)
}
