package profiler

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/profiler/load"
)

// loads reads all of attempts, outside the group, folds it and publishes the load of each cluster. Every profiler does so for all
// clusters: the newest signal counts, and the death of one leaves no gap.
type loads struct {
	app  *App
	fold *load.Fold
	// behind holds the ends of partitions as they were at the start, until they have been read: before that the fold knows less than
	// the log, and says nothing.
	behind map[int32]int64
	sent   map[string]sentLoad
}

type sentLoad struct {
	at   time.Time
	gist string
}

func (a *App) newLoads() *loads {
	slots := map[string]int{}
	for _, e := range a.cfg.Engines {
		if e.Slots != nil {
			slots[e.Name] = *e.Slots
		}
	}
	l := &loads{app: a, fold: load.New(slots), sent: map[string]sentLoad{}}
	for _, e := range a.cfg.Engines {
		l.fold.Know(e.Name)
	}
	return l
}

// run starts anew when its client fails: a fold that lost records would be wrong for as long as it lived.
func (a *App) loads(ctx context.Context) error {
	return backoff.RetryNotify(func() error {
		err := a.newLoads().follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		return err
	}, a.backOff(ctx), func(err error, _ time.Duration) {
		a.log.WarnContext(ctx, "following attempts; starting anew", telemetry.Err(err))
	})
}

func (l *loads) follow(ctx context.Context) error {
	a := l.app
	topic := a.cfg.Kafka.Topic(event.TopicAttempts)
	deps := a.deps
	deps.Registry, deps.Tracer = nil, nil
	from := time.Now().Add(-a.cfg.Load.LookBack)
	if err := l.measure(ctx, topic, from); err != nil {
		return err
	}
	cl, err := stream.NewClient(a.cfg.Kafka, deps, "profiler-loads",
		kgo.ConsumeTopics(topic), kgo.ConsumeStartOffset(kgo.NewOffset().AfterMilli(from.UnixMilli())),
		kgo.ConsumeResetOffset(kgo.NewOffset().AfterMilli(from.UnixMilli())))
	if err != nil {
		return err
	}
	defer cl.Close()
	tick := time.NewTicker(a.cfg.Load.Every)
	defer tick.Stop()
	for {
		polling, cancel := context.WithTimeout(ctx, a.cfg.Load.Every)
		fetches := cl.PollFetches(polling)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		for _, e := range fetches.Errors() {
			if polling.Err() == nil {
				return fmt.Errorf("reading attempts: %w", e.Err)
			}
		}
		fetches.EachRecord(l.apply)
		select {
		case <-tick.C:
			l.publish(ctx, time.Now())
		default:
		}
	}
}

// measure notes where the log ends now.
func (l *loads) measure(ctx context.Context, topic string, from time.Time) error {
	admin := kadm.NewClient(l.app.admin)
	starts, err := admin.ListOffsetsAfterMilli(ctx, from.UnixMilli(), topic)
	if err != nil {
		return fmt.Errorf("asking where attempts start: %w", err)
	}
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return fmt.Errorf("asking where attempts end: %w", err)
	}
	l.behind = map[int32]int64{}
	ends.Each(func(end kadm.ListedOffset) {
		if start, ok := starts.Lookup(topic, end.Partition); ok && start.Err == nil && end.Err == nil && start.Offset < end.Offset {
			l.behind[end.Partition] = end.Offset
		}
	})
	return nil
}

func (l *loads) apply(rec *kgo.Record) {
	if rec.Offset+1 >= l.behind[rec.Partition] {
		delete(l.behind, rec.Partition)
	}
	env, err := stream.Decode(rec, stream.RulesFor(event.TopicAttempts))
	if err != nil || !env.Type.IsAttempt() {
		return // the sink dead-letters it
	}
	var at event.Attempt
	if at.UnmarshalJSON(env.Data) == nil {
		l.fold.Apply(at)
	}
}

// publish sends the load of every cluster that has changed, or has not been told of for a while.
func (l *loads) publish(ctx context.Context, now time.Time) {
	if len(l.behind) > 0 {
		return
	}
	for _, cluster := range l.fold.Clusters() {
		o := l.fold.Observe(cluster, now)
		gist := gistOf(o)
		if have, ok := l.sent[cluster]; ok && have.gist == gist && now.Sub(have.at) < l.app.cfg.Load.Heartbeat {
			continue
		}
		l.sent[cluster] = sentLoad{now, gist}
		l.app.publish(ctx, o)
	}
}

// gistOf is what makes an observation worth telling before its time: the counts, and the estimate to the tenth of a second. Ages
// change by themselves.
func gistOf(o signal.Observation) string {
	wait := "unknown"
	if ms, ok := o.Values[signal.EstWaitMs].Get(); ok {
		wait = fmt.Sprint(int64(ms) / 100)
	}
	return fmt.Sprint(o.Values[signal.Queued], o.Values[signal.Running], o.Values[signal.Slots], wait)
}
