package profiler

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// assign starts the feed of a partition.
func (a *App) assign(ctx context.Context, p *stream.Partition) (stream.Processor, error) {
	s := a.sinks[p.Topic]
	if s == nil {
		return nil, fmt.Errorf("topic %s has no table", p.Topic)
	}
	id, err := a.topicID(ctx, p.Topic)
	if err != nil {
		return nil, err
	}
	f := &feed{app: a, sink: s, part: p, topicID: id}
	s.open(f)
	a.assigned.Open()
	return f, nil
}

// topicID asks the broker for the id of a topic as it is now: one that was made anew under the same name is another topic.
func (a *App) topicID(ctx context.Context, topic string) (string, error) {
	var id string
	err := backoff.Retry(func() error {
		details, err := kadm.NewClient(a.admin).ListTopics(ctx, a.cfg.Kafka.Topic(topic))
		if err != nil {
			return err
		}
		d, ok := details[a.cfg.Kafka.Topic(topic)]
		switch {
		case !ok:
			return errors.New("the broker does not list it")
		case d.Err != nil:
			return d.Err
		}
		id = d.ID.String()
		return nil
	}, a.backOff(ctx))
	if err != nil {
		return "", fmt.Errorf("asking for the id of topic %s: %w", topic, err)
	}
	return id, nil
}

// flush stores what a sink has gathered, over and over, until the context ends.
func (a *App) flush(ctx context.Context, s *sink) error {
	for {
		wait, some := s.due(time.Now())
		if !some {
			wait = time.Hour
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-s.wake:
			timer.Stop()
			if wait, some := s.due(time.Now()); !some || wait > 0 {
				continue
			}
		case <-timer.C:
			if !some {
				continue
			}
		}
		if err := a.store(ctx, s, s.take()); err != nil {
			return nil // only the context's end gets here; what was cut is read again by the next owner
		}
	}
}

// store puts a cut into the history and calls its records done, in this order: the rows, the dead letters of rows that the server
// refuses, the marks of the hours, the offsets. A crash between any two of them repeats the earlier ones to no effect.
func (a *App) store(ctx context.Context, s *sink, c cut) error {
	if len(c.runs) == 0 {
		return nil
	}
	defer func() {
		for _, r := range c.runs {
			for _, h := range r.recs {
				a.memory.give(h.size)
			}
		}
	}()
	b := c.batch(s.kind)
	var rejected []history.Rejected
	if b.Rows.Len() > 0 {
		err := a.try(ctx, s.topic, "insert", func() (err error) {
			start := time.Now()
			if rejected, err = a.writer.Insert(ctx, b); err == nil {
				a.metrics.insertSeconds.WithLabelValues(b.Rows.Table()).Observe(time.Since(start).Seconds())
			}
			return err
		})
		if err != nil {
			return err
		}
		a.count(b, len(rejected))
	}
	for _, r := range rejected {
		rec := c.find(r.Base.Partition, r.Base.Offset)
		if err := a.unusable(ctx, s.topic, rec, &stream.Fault{Class: stream.FaultSchema, Err: r.Err}, false); err != nil {
			return err
		}
	}
	if hours := b.Rows.Hours(); len(hours) > 0 {
		if err := a.try(ctx, s.topic, "mark", func() error { return a.writer.MarkDirty(ctx, hours) }); err != nil {
			return err
		}
		a.dirty()
	}
	for _, r := range c.runs {
		recs := make([]*kgo.Record, len(r.recs))
		for i, h := range r.recs {
			recs[i] = h.rec
		}
		r.feed.part.Done(recs...)
	}
	return nil
}

func (a *App) count(b history.Batch, rejected int) {
	table := b.Rows.Table()
	a.metrics.stored.WithLabelValues(table).Add(float64(b.Rows.Len() - rejected))
	a.metrics.insertRows.Observe(float64(b.Rows.Len()))
	clamped := 0
	for i := range b.Rows.Len() {
		if b.Rows.Base(i).Clamped {
			clamped++
		}
	}
	a.metrics.clamped.WithLabelValues(table).Add(float64(clamped))
}

// try does something to the history until it succeeds or the context ends. While it fails the service is not ready.
func (a *App) try(ctx context.Context, topic, what string, do func() error) error {
	failed := false
	err := backoff.RetryNotify(do, a.backOff(ctx), func(err error, next time.Duration) {
		failed = true
		kind, code := history.Classify(err)
		a.metrics.insertErrors.WithLabelValues(string(kind)).Inc()
		why := gistOfError(err)
		a.stored.Close(string(kind) + ": " + why)
		if times, due := a.complaints.add(topic, time.Now()); due {
			a.log.WarnContext(ctx, "the history did not take it; it is tried again", telemetry.KeyTopic, topic, "what", what,
				telemetry.KeyClass, string(kind), "code", strconv.Itoa(int(code)), "times", times,
				"again_in", next.Round(time.Millisecond).String(), telemetry.KeyError, why)
		}
	})
	if err == nil && failed {
		a.stored.Open()
		a.log.InfoContext(ctx, "the history takes it again", "what", what)
	}
	return err
}

func (a *App) backOff(ctx context.Context) backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.MaxElapsedTime = 100*time.Millisecond, a.cfg.Sink.MaxBackoff, 0
	return backoff.WithContext(b, ctx)
}

// unusable sends a record to the dead letters, unless that is another service's to do, and returns when it is there: a record that
// could not be dead-lettered is not done. The error is the context's.
func (a *App) unusable(ctx context.Context, topic string, rec *kgo.Record, f *stream.Fault, others bool) error {
	a.metrics.faults.WithLabelValues(topic, string(f.Class), strconv.FormatBool(others)).Inc()
	a.log.WarnContext(ctx, "a record has no row", telemetry.KeyTopic, topic, telemetry.KeyPartition, rec.Partition, telemetry.KeyOffset, rec.Offset,
		telemetry.KeyClass, string(f.Class), "left_to_others", others, telemetry.Err(f.Err))
	if others {
		return nil
	}
	return backoff.RetryNotify(func() error {
		return a.producer.DeadLetter(ctx, stream.DeadLetter{Record: rec, Group: group, Stage: "profiler", Class: f.Class, Err: f.Err})
	}, a.backOff(ctx), func(err error, _ time.Duration) {
		a.log.ErrorContext(ctx, "the dead letters can't be reached; the partition waits", telemetry.KeyTopic, topic,
			telemetry.KeyPartition, rec.Partition, telemetry.KeyOffset, rec.Offset, telemetry.Err(err))
	})
}
