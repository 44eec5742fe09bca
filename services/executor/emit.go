package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// emit publishes what the final record in the ledger holds: the Outcome, byte for byte, and the end of the attempt it came from. A
// later owner knows that attempt from the Outcome only, and passes no end. If the topic takes less than the ledger's does, it gets
// less of it, and the same whoever writes it.
func (t *task) emit(ctx context.Context, payload json.RawMessage, key string, end *event.Attempt) error {
	var o event.Outcome
	if err := json.Unmarshal(payload, &o); err != nil {
		return fmt.Errorf("reading the outcome in the ledger: %w", err)
	}
	if _, number, ok := ledger.SplitAttemptKey(key); ok && end == nil {
		a := t.change(number, seqOfEnd, stateOf(o.Status), "", o.FinishedAt)
		a.Target, a.Failure, a.Stats = o.Target, o.Failure, &o.Stats
		if o.Failure != nil {
			a.Remedy = event.RemedyFail
		}
		end = &a
	}
	err := t.writeOutcome(ctx, o, payload, end)
	for _, reduce := range reductions {
		if !errors.Is(err, stream.ErrTooLarge) {
			break
		}
		t.log.WarnContext(ctx, "the topic of outcomes takes less than the ledger's; a part of the outcome is left out", telemetry.Err(err))
		reduce(&o)
		var less []byte
		if less, err = event.Marshal(o); err == nil {
			err = t.writeOutcome(ctx, o, less, end)
		}
	}
	if err != nil {
		return err
	}
	t.p.app.metrics.outcomes.WithLabelValues(string(o.Status)).Inc()
	t.log.InfoContext(ctx, "a task has ended", "status", string(o.Status), "attempts", o.Attempts, telemetry.KeyCluster, o.Cluster, "total_ms", o.TotalMs, "sla_hit", o.SLAHit)
	return nil
}

// reductions make an Outcome smaller, one after the other. They look at nothing but the Outcome, so that every owner comes to the
// same bytes.
var reductions = []func(*event.Outcome){
	func(o *event.Outcome) {
		if o.Result != nil && o.Result.Inline != nil {
			r := *o.Result
			r.Inline, r.Truncated = nil, true
			o.Result = &r
		}
	},
	func(o *event.Outcome) {
		o.Tables, o.Tags, o.Reasons, o.Estimates, o.Extra = nil, nil, nil, nil, nil
		if o.Result != nil {
			r := *o.Result
			r.Columns = nil
			o.Result = &r
		}
		if o.Failure != nil {
			f := *o.Failure
			f.Message, f.Hint = "", ""
			o.Failure = &f
		}
	},
}

// writeOutcome writes an Outcome and the end of its attempt, and waits. The error is stream.ErrTooLarge if its topic does not take
// it.
func (t *task) writeOutcome(ctx context.Context, o event.Outcome, payload json.RawMessage, end *event.Attempt) error {
	rec, err := t.p.app.cfg.Kafka.Encode(stream.Message{
		Topic: event.TopicOutcomes, Key: t.id, Type: event.TaskEnded, Source: source, ID: t.id, Subject: t.id, Time: o.FinishedAt, Data: payload,
	})
	if err != nil {
		return err
	}
	recs := []*kgo.Record{rec}
	if end != nil {
		if rec, err = t.encode(*end); err != nil {
			return err
		}
		recs = append(recs, rec)
	}
	var refused error
	err = t.p.app.persist(ctx, "publishing the outcome of "+t.id, func(ctx context.Context) error {
		err := t.p.app.producer.Write(ctx, recs...)
		t.p.app.metrics.published.WithLabelValues(event.TopicOutcomes, word(err)).Inc()
		if errors.Is(err, stream.ErrTooLarge) {
			refused = err
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errLetGo, err)
	}
	return refused
}

// stateOf is the state of the attempt that ended a Task.
func stateOf(s event.Status) attempt.State {
	switch s {
	case event.Succeeded:
		return attempt.Succeeded
	case event.Cancelled:
		return attempt.Cancelled
	case event.Expired:
		return attempt.TimedOut
	default:
		return attempt.Failed
	}
}
