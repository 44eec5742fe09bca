package router

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// follow reads all partitions of some topics without a group, from a moment on, and hands each record over. It calls ready
// once it has read what was there when it began.
func (a *App) follow(ctx context.Context, role string, from time.Time, topics []string, ready func(), take func(*kgo.Record)) error {
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = a.cfg.Kafka.Topic(t)
	}
	start := kgo.NewOffset().AtStart()
	if !from.IsZero() {
		start = kgo.NewOffset().AfterMilli(from.UnixMilli())
	}
	cl, err := stream.NewClient(a.cfg.Kafka, a.deps(), role, kgo.ConsumeTopics(names...),
		kgo.ConsumeStartOffset(start), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer cl.Close()
	left, err := a.pending(ctx, cl, from, names)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		ready()
	}
	for {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		for _, e := range fetches.Errors() {
			a.log.WarnContext(ctx, "following a topic", telemetry.KeyTopic, e.Topic, telemetry.KeyPartition, e.Partition, telemetry.Err(e.Err))
		}
		for it := fetches.RecordIter(); !it.Done(); {
			rec := it.Next()
			if !rec.Attrs.IsControl() {
				take(rec)
			}
			at := place{rec.Topic, rec.Partition}
			if end, ok := left[at]; ok && rec.Offset >= end-1 {
				if delete(left, at); len(left) == 0 {
					ready()
				}
			}
		}
	}
}

type place struct {
	topic     string
	partition int32
}

// pending returns the partitions that hold records to catch up with, and where each of them ends now.
func (a *App) pending(ctx context.Context, cl *kgo.Client, from time.Time, topics []string) (map[place]int64, error) {
	adm := kadm.NewClient(cl)
	starts, err := adm.ListStartOffsets(ctx, topics...)
	if err == nil && !from.IsZero() {
		starts, err = adm.ListOffsetsAfterMilli(ctx, from.UnixMilli(), topics...)
	}
	if err != nil {
		return nil, fmt.Errorf("asking where the topics begin: %w", err)
	}
	ends, err := adm.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("asking where the topics end: %w", err)
	}
	left := map[place]int64{}
	var broken error
	ends.Each(func(end kadm.ListedOffset) {
		begin, ok := starts.Lookup(end.Topic, end.Partition)
		switch {
		case end.Err != nil:
			broken = fmt.Errorf("asking where %s[%d] ends: %w", end.Topic, end.Partition, end.Err)
		case ok && begin.Err == nil && begin.Offset < end.Offset:
			left[place{end.Topic, end.Partition}] = end.Offset
		}
	})
	return left, broken
}

// followSignals keeps the newest signals of all clusters.
func (a *App) followSignals(ctx context.Context) error {
	return a.follow(ctx, "signals", time.Time{}, []string{event.TopicSignals}, func() { a.signalsReady.Open() }, func(rec *kgo.Record) {
		env, err := stream.Decode(rec, stream.RulesFor(event.TopicSignals))
		if err != nil || env.Tombstone {
			return // the profiler dead-letters what can't be read; a router must not do it once more for each of its replicas
		}
		var o signal.Observation
		if err := json.Unmarshal(env.Data, &o); err != nil || o.Cluster == "" {
			return
		}
		a.decider.clusters.observe(o)
	})
}

// followBudgets folds decisions and outcomes, everybody's, into the sessions' accounts.
func (a *App) followBudgets(ctx context.Context) error {
	from := time.Now().Add(-a.cfg.Budgets.Window)
	topics := []string{event.TopicDecisions, event.TopicOutcomes}
	return a.follow(ctx, "budgets", from, topics, func() { a.budgetsReady.Open(); close(a.caughtUp) }, func(rec *kgo.Record) {
		topic := a.cfg.Kafka.Name(rec.Topic)
		env, err := stream.Decode(rec, stream.RulesFor(topic))
		if err != nil {
			return
		}
		switch topic {
		case event.TopicDecisions:
			var d event.RouteDecision
			if json.Unmarshal(env.Data, &d) == nil {
				a.decider.reserved(d)
			}
		case event.TopicOutcomes:
			var o event.Outcome
			if json.Unmarshal(env.Data, &o) == nil {
				a.decider.settled(o)
			}
		}
	})
}

// sweep drops accounts of sessions that have fallen silent.
func (a *App) sweep(ctx context.Context) error {
	ticker := time.NewTicker(a.cfg.Budgets.Window / 10)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			a.decider.forget(time.Now().Add(-a.cfg.Budgets.Window))
		}
	}
}
