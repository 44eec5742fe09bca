package intake

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/services/intake/board"
)

// boardTopics are what the board is folded from.
var boardTopics = []string{event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes}

// fold puts records on the board.
type fold struct {
	kafka stream.Config
	board *board.Board
	now   func() time.Time
	// lookBack is how far back is read.
	lookBack time.Duration
	skipped  func(topic string, class stream.FaultClass)
}

// record takes one record. One that can't be read is counted and passed over: the consumer that acts on the topic
// dead-letters it, and a second letter from here would say nothing new.
func (f *fold) record(rec *kgo.Record) {
	if rec.Attrs.IsControl() {
		return
	}
	topic := f.kafka.Name(rec.Topic)
	if err := f.take(topic, rec); err != nil {
		f.skipped(topic, stream.FaultOf(err))
	}
}

func (f *fold) take(topic string, rec *kgo.Record) error {
	env, err := stream.Decode(rec, stream.RulesFor(topic))
	if err != nil || env.Tombstone {
		return err
	}
	now := f.moment(rec)
	switch topic {
	case event.TopicRequests:
		return f.request(env, rec, now)
	case event.TopicDecisions:
		var d event.RouteDecision
		if err := d.UnmarshalJSON(env.Data); err != nil {
			return err
		}
		f.board.Decision(d, env.Data, now)
	case event.TopicAttempts:
		var a event.Attempt
		if err := a.UnmarshalJSON(env.Data); err != nil {
			return err
		}
		f.board.Attempt(a, env.Data, now)
	case event.TopicOutcomes:
		var o event.Outcome
		if err := o.UnmarshalJSON(env.Data); err != nil {
			return err
		}
		f.board.Outcome(o, env.Data, now)
	}
	return nil
}

// moment is when a record was written: on a start those of an hour are read at once. A clock that is far off counts as one that is at
// the edge of what is read.
func (f *fold) moment(rec *kgo.Record) time.Time {
	now := f.now()
	at, earliest := rec.Timestamp, now.Add(-f.lookBack)
	switch {
	case at.After(now):
		return now
	case at.Before(earliest):
		return earliest
	default:
		return at
	}
}

func (f *fold) request(env stream.Envelope, rec *kgo.Record, now time.Time) error {
	switch env.Type {
	case event.QueryRequested:
		var t query.Task
		if err := t.UnmarshalJSON(env.Data); err != nil {
			return err
		}
		t.ID = t.IDIn(query.Origin{
			EventSource: env.Source, EventID: env.ID, Topic: event.TopicRequests, Partition: rec.Partition, Offset: rec.Offset,
		})
		f.board.Request(t, env.Data, now)
	case event.CancelRequested:
		var c event.Cancel
		if err := c.UnmarshalJSON(env.Data); err != nil {
			return err
		}
		f.board.Cancel(c, env.Data, now)
	default:
		return &stream.Fault{Class: stream.FaultUnknownType, Err: errors.New("no request")}
	}
	return nil
}
