package profiler

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history/row"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
)

// kind says how the events of one topic become rows.
type kind struct {
	topic string
	// shared means that another service reads the topic too, acts on it, and dead-letters what can't be read: a record would be in
	// the dead letters twice if this one did so as well. What only the history can't store is dead-lettered all the same.
	shared bool
	// patient means that nobody waits for the rows: they are gathered for longer.
	patient bool
	decode  func(rec row.Record, kr *kgo.Record, env stream.Envelope) (any, error)
	rows    func(rows []any) row.Set
}

var kinds = []kind{
	{topic: event.TopicRequests, shared: true, decode: decodeRequest, rows: gather(row.Requests)},
	{topic: event.TopicDecisions, shared: true, decode: decodeDecision, rows: gather(row.Decisions)},
	{topic: event.TopicAttempts, decode: decodeAttempt, rows: gather(row.Attempts)},
	{topic: event.TopicOutcomes, decode: decodeOutcome, rows: gather(row.Outcomes)},
	{topic: event.TopicSignals, patient: true, decode: decodeSignal, rows: gather(row.Samples)},
}

func gather[R any](set func([]R) row.Set) func([]any) row.Set {
	return func(rows []any) row.Set {
		out := make([]R, len(rows))
		for i, r := range rows {
			out[i] = r.(R)
		}
		return set(out)
	}
}

// read makes a row of a record. A record without one (a tombstone) gives nil. The error is a *stream.Fault, and says whether the
// record is another service's to dead-letter.
func (k kind) read(kr *kgo.Record, now time.Time) (r any, others bool, err error) {
	env, err := stream.Decode(kr, stream.RulesFor(k.topic))
	if err != nil {
		return nil, k.shared, asFault(err)
	}
	if env.Tombstone {
		return nil, false, nil
	}
	rec := row.Record{Topic: k.topic, Partition: kr.Partition, Offset: kr.Offset, At: recordTime(kr, now)}
	r, err = k.decode(rec, kr, env)
	var column *row.ColumnError
	var f *stream.Fault
	switch {
	case err == nil:
		return r, false, nil
	case errors.As(err, &column):
		return nil, false, &stream.Fault{Class: stream.FaultSchema, Err: err}
	case errors.As(err, &f):
		return nil, k.shared, f
	default:
		return nil, k.shared, asFault(err)
	}
}

func asFault(err error) *stream.Fault {
	if f, ok := errors.AsType[*stream.Fault](err); ok {
		return f
	}
	return &stream.Fault{Class: stream.FaultInternal, Err: err}
}

func unknownType(env stream.Envelope, topic string) error {
	return &stream.Fault{Class: stream.FaultUnknownType, Err: fmt.Errorf("type %q is not known on %s", env.Type, topic)}
}

// into decodes a payload. The envelope has checked that it is JSON: payloads that decode themselves are spared a second look.
func into(env stream.Envelope, v json.Unmarshaler) error {
	return badPayload(v.UnmarshalJSON(env.Data))
}

func badPayload(err error) error {
	if err != nil {
		return &stream.Fault{Class: stream.FaultSchema, Err: errors.New(query.DescribeJSONError(err))}
	}
	return nil
}

// wide are limits that let through whatever any router may be configured to let through.
var wide = query.Limits{MaxSQLBytes: math.MaxInt, MaxSLA: math.MaxInt64, MaxTimeout: math.MaxInt64}

// validate finds every fault of a Task. Of spans only that they are there to be met: how long they may be is the router's to say.
func validate(t query.Task) error {
	span := func(field string, s *float64, most time.Duration) error {
		switch {
		case s == nil:
			return nil
		case !(*s > 0): // NaN too
			return &query.FieldError{Field: field, Message: fmt.Sprintf("%v must be above 0", *s)}
		case *s > most.Seconds():
			return &query.FieldError{Field: field, Message: fmt.Sprintf("%v is too large", *s)}
		}
		return nil
	}
	sla, timeout := span("slaSeconds", t.SLASeconds, wide.MaxSLA), span("timeoutSeconds", t.TimeoutSeconds, wide.MaxTimeout)
	t.SLASeconds, t.TimeoutSeconds = nil, nil
	return errors.Join(sla, timeout, t.Validate(wide))
}

func decodeRequest(rec row.Record, kr *kgo.Record, env stream.Envelope) (any, error) {
	switch env.Type {
	case event.QueryRequested:
		var t query.Task
		if err := into(env, &t); err != nil {
			return nil, err
		}
		if err := validate(t); err != nil { // the router rejects it, and says why
			return nil, &stream.Fault{Class: stream.FaultSchema, Err: err}
		}
		t.ID = t.IDIn(query.Origin{EventSource: env.Source, EventID: env.ID, Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset})
		if t.SubmittedAt == nil && !env.Time.IsZero() {
			t.SubmittedAt = &env.Time
		}
		return value(row.FromTask(rec, t))
	case event.CancelRequested:
		var c event.Cancel
		if err := into(env, &c); err != nil {
			return nil, err
		}
		if !query.ValidID(c.TaskID) {
			return nil, &stream.Fault{Class: stream.FaultSchema, Err: errors.New("taskId: is missing or no valid id")}
		}
		return value(row.FromCancel(rec, c))
	default:
		return nil, unknownType(env, rec.Topic)
	}
}

func decodeDecision(rec row.Record, _ *kgo.Record, env stream.Envelope) (any, error) {
	switch env.Type {
	case event.DecisionRouted, event.DecisionRejected, event.DecisionCancel:
		var d event.RouteDecision
		if err := into(env, &d); err != nil {
			return nil, err
		}
		return value(row.FromDecision(rec, d))
	default:
		return nil, unknownType(env, rec.Topic)
	}
}

func decodeAttempt(rec row.Record, _ *kgo.Record, env stream.Envelope) (any, error) {
	if !env.Type.IsAttempt() {
		return nil, unknownType(env, rec.Topic)
	}
	var a event.Attempt
	if err := into(env, &a); err != nil {
		return nil, err
	}
	return value(row.FromAttempt(rec, a))
}

func decodeOutcome(rec row.Record, _ *kgo.Record, env stream.Envelope) (any, error) {
	if env.Type != event.TaskEnded {
		return nil, unknownType(env, rec.Topic)
	}
	var o event.Outcome
	if err := into(env, &o); err != nil {
		return nil, err
	}
	return value(row.FromOutcome(rec, o))
}

func decodeSignal(rec row.Record, _ *kgo.Record, env stream.Envelope) (any, error) {
	if env.Type != event.ClusterObserved {
		return nil, unknownType(env, rec.Topic)
	}
	var o signal.Observation
	if err := badPayload(json.Unmarshal(env.Data, &o)); err != nil {
		return nil, err
	}
	return value(row.FromObservation(rec, o))
}

// value keeps a row that did not come about from looking like one.
func value[R any](r R, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

const (
	// logAppendTime is Kafka's timestamp type for records stamped by the broker.
	logAppendTime = 1
	// maxAhead is how far a producer's stamp may lie in the future before it is not believed.
	maxAhead = time.Minute
)

// recordTime is the clock that event times are held against. The broker's stamp is the same for every reader and every replay. A
// producer's is believed unless it lies in the future, or is none.
func recordTime(kr *kgo.Record, now time.Time) time.Time {
	at := kr.Timestamp
	if kr.Attrs.TimestampType() != logAppendTime && (at.After(now.Add(maxAhead)) || at.UnixMilli() <= 0) {
		at = now
	}
	return at.UTC().Truncate(time.Millisecond)
}
