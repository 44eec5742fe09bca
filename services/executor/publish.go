package executor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// An attempt's changes are numbered so that they are in order, and unique, whoever writes them: each owner numbers from its
// epoch on, and the end comes last whatever came before, under one number, so that the first end in the log is the only one.
const (
	seqPerEpoch = 1000
	seqOfEnd    = 2_000_000_000
)

// source names the writer in every event, so that a repeat by another process is the same byte for byte.
const source = "pointsman/executor"

// nextSeq numbers the attempt's next change. The task counts, since an attempt that is begun again from the ledger goes on under
// the same epoch.
func (y *try) nextSeq() int {
	y.t.changes[y.number]++
	return int(y.t.ledger.Epoch()-1)*seqPerEpoch + min(y.t.changes[y.number], seqPerEpoch-1)
}

// change is an attempt's event, with what every one of them says.
func (t *task) change(number, seq int, state, prev attempt.State, at time.Time) event.Attempt {
	a := event.Attempt{
		AttemptID: query.AttemptID(t.id, number), TaskID: t.id, Number: number, Seq: seq, State: string(state), Prev: string(prev),
		At: at.UTC().Truncate(time.Millisecond), Fingerprint: t.current.Fingerprint, Bucket: t.current.Bucket, Executor: t.p.app.owner, Epoch: t.ledger.Epoch(),
	}
	if t.first.Task != nil {
		a.Tenant = t.first.Task.Tenant
	}
	return a
}

// announce publishes the attempt's state without waiting: the hot path has no time for it, and a change that gets lost in a crash
// is followed by others.
func (y *try) announce(ctx context.Context) {
	a := y.t.change(y.number, y.nextSeq(), y.state, y.prev, time.Now())
	a.Target = y.target
	if y.state == attempt.Start && !y.told {
		a.Prev = ""
	}
	y.told = true
	if y.position > 0 {
		a.QueuePosition, a.WaitsFor = y.position, y.p.app.slots.Why(y.id)
	}
	if y.state.AtEngine() {
		a.ExternalID = y.id // over ClickHouse the engine's id of a run is ours
		stats := y.stats()
		a.Stats = &stats
		a.Failure = y.failure
	}
	rec, err := y.t.encode(a)
	if err != nil {
		y.log.ErrorContext(ctx, "encoding an attempt's change", telemetry.Err(err))
		return
	}
	done := y.p.app.metrics.published
	y.p.app.producer.Produce(context.WithoutCancel(ctx), rec, func(_ *kgo.Record, err error) {
		done.WithLabelValues(event.TopicAttempts, word(err)).Inc()
		if err != nil {
			y.log.WarnContext(ctx, "publishing an attempt's change", telemetry.Err(err))
		}
	})
}

func word(err error) string {
	if err != nil {
		return "failed"
	}
	return "ok"
}

func (t *task) encode(a event.Attempt) (*kgo.Record, error) {
	data, err := event.Marshal(a)
	if err != nil {
		return nil, err
	}
	return t.p.app.cfg.Kafka.Encode(stream.Message{
		Topic: event.TopicAttempts, Key: t.id, Type: a.Type(), Source: source, ID: a.AttemptID + "#" + strconv.Itoa(a.Seq), Subject: a.AttemptID, Time: a.At, Data: data,
	})
}

// publishEnding publishes how an attempt ended whose Task goes on, and waits: a reroute must not get lost.
func (t *task) publishEnding(ctx context.Context, number int, e ending) error {
	a := t.change(number, seqOfEnd, e.State, e.Prev, e.At)
	a.Target, a.Failure, a.Remedy, a.Next, a.Stats = e.Target, e.Failure, e.Remedy, e.Next, e.Stats
	if e.Claimed {
		a.ExternalID = a.AttemptID
	}
	if e.Remedy == event.RemedyReroute {
		d := t.current
		d.Task = t.first.Task
		a.Decision, a.Excluded = &d, t.excluded()
	}
	return t.publish(ctx, a)
}

// endOf is the event of the attempt that ended the Task, with all that this process knows of it.
func (y *try) endOf(o event.Outcome) *event.Attempt {
	a := y.t.change(y.number, seqOfEnd, y.state, y.prev, o.FinishedAt)
	a.Target, a.Failure, a.Stats = y.target, o.Failure, &o.Stats
	if o.Failure != nil {
		a.Remedy = event.RemedyFail
	}
	if y.claimed {
		a.ExternalID = y.id
	}
	return &a
}

// publish writes an attempt's change and waits. One that is too large for its topic goes without the decision's candidates.
func (t *task) publish(ctx context.Context, a event.Attempt) error {
	for {
		rec, err := t.encode(a)
		if err != nil {
			return err
		}
		tooLarge := false
		err = t.p.app.persist(ctx, "publishing the end of "+a.AttemptID, func(ctx context.Context) error {
			err := t.p.app.producer.Write(ctx, rec)
			t.p.app.metrics.published.WithLabelValues(event.TopicAttempts, word(err)).Inc()
			if tooLarge = errors.Is(err, stream.ErrTooLarge); tooLarge {
				return nil
			}
			return err
		})
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", errLetGo, err)
		case !tooLarge:
			return nil
		case a.Decision == nil || len(a.Decision.Candidates)+len(a.Decision.Signals) == 0:
			return fmt.Errorf("publishing the end of %s: %w", a.AttemptID, stream.ErrTooLarge)
		}
		d := *a.Decision
		d.Candidates, d.Signals = nil, nil
		a.Decision = &d
	}
}
