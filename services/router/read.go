package router

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
)

// request is what a record on `requests` or `attempts` asks the router to do. Exactly one of its parts is set.
type request struct {
	rec *kgo.Record
	// task is to be routed; its id and submission time are stamped.
	task *query.Task
	// reroute is a failed attempt whose Task is to be routed again.
	reroute *event.Attempt
	cancel  *event.Cancel
	// invalid is a Task that is to be rejected: its id could be read, the rest is wrong.
	invalid *invalidTask
	// fault sends the record to the dead letters; it may come with invalid.
	fault *stream.Fault
	// skip is a record that asks nothing of the router.
	skip bool
}

type invalidTask struct {
	task    query.Task
	message string
}

// maxSkew is how far a producer's clock may be off before its time stamp is not believed.
const maxSkew = 5 * time.Minute

// read understands one record. It is pure: now is the router's clock, which bounds time stamps that lie in the future.
func read(rec *kgo.Record, topic string, limits query.Limits, now time.Time) request {
	env, err := stream.Decode(rec, stream.RulesFor(topic))
	if topic == event.TopicAttempts {
		if err != nil || !env.Type.IsAttempt() {
			return request{rec: rec, skip: true} // the profiler reads every attempt and dead-letters it, once
		}
		return readAttempt(rec, env)
	}
	if err != nil {
		return faulty(rec, err, env)
	}
	switch env.Type {
	case event.QueryRequested:
		return readTask(rec, topic, env, limits, now)
	case event.CancelRequested:
		var c event.Cancel
		if err := json.Unmarshal(env.Data, &c); err != nil {
			return faulty(rec, &stream.Fault{Class: stream.FaultSchema, Err: errors.New(query.DescribeJSONError(err))}, env)
		}
		if !query.ValidID(c.TaskID) {
			return faulty(rec, &stream.Fault{Class: stream.FaultSchema, Err: errors.New("taskId: is missing or no valid id")}, env)
		}
		return request{rec: rec, cancel: &c}
	default:
		return faulty(rec, &stream.Fault{Class: stream.FaultUnknownType, Err: fmt.Errorf("type %q is not known on %s", env.Type, topic)}, env)
	}
}

func readAttempt(rec *kgo.Record, env stream.Envelope) request {
	// Most attempt events ask nothing: a look at the remedy spares decoding them whole.
	if !bytes.Contains(env.Data, []byte(event.RemedyReroute)) && bytes.IndexByte(env.Data, '\\') < 0 {
		return request{rec: rec, skip: true}
	}
	var probe struct {
		Remedy event.Remedy `json:"remedy"`
	}
	if err := json.Unmarshal(env.Data, &probe); err == nil && probe.Remedy != event.RemedyReroute {
		return request{rec: rec, skip: true}
	}
	var a event.Attempt
	if err := a.UnmarshalJSON(env.Data); err != nil {
		return request{rec: rec, skip: true} // as above
	}
	if a.Decision == nil || a.Decision.Task == nil {
		return faulty(rec, &stream.Fault{Class: stream.FaultSchema, Err: errors.New("decision: a reroute must carry the decision with its task")}, env)
	}
	return request{rec: rec, reroute: &a}
}

func readTask(rec *kgo.Record, topic string, env stream.Envelope, limits query.Limits, now time.Time) request {
	var t query.Task
	if err := t.UnmarshalJSON(env.Data); err != nil { // that it is JSON is known already
		return faulty(rec, &stream.Fault{Class: stream.FaultSchema, Err: errors.New(query.DescribeJSONError(err))}, env)
	}
	t.ID = t.IDIn(query.Origin{EventSource: env.Source, EventID: env.ID, Topic: topic, Partition: rec.Partition, Offset: rec.Offset})
	at := submittedAt(t, env, rec, now)
	t.SubmittedAt = &at
	if err := t.Validate(limits); err != nil {
		message := strings.ReplaceAll(err.Error(), "\n", "; ")
		r := request{rec: rec, fault: &stream.Fault{Class: stream.FaultSchema, Err: errors.New(message)}}
		if query.ValidID(t.ID) {
			r.invalid = &invalidTask{task: trim(t, limits), message: message}
		}
		return r
	}
	return request{rec: rec, task: &t}
}

// faulty makes the request of a record that can't be read. If its id can be, the Task is rejected too, so that whoever waits
// for it hears of it.
func faulty(rec *kgo.Record, err error, env stream.Envelope) request {
	r := request{rec: rec}
	if !errors.As(err, &r.fault) {
		r.fault = &stream.Fault{Class: stream.FaultInternal, Err: err}
	}
	var probe struct {
		ID     any `json:"id"`
		Tenant any `json:"tenant"`
	}
	data := env.Data
	switch {
	case data != nil:
	case env.Mode == stream.ModeStructured:
		return r // the id out there is the event's, not the Task's: somebody else's Task may have that name
	default:
		data = rec.Value
	}
	if json.Unmarshal(data, &probe) != nil || (env.Type != "" && env.Type != event.QueryRequested) {
		return r
	}
	id, ok := probe.ID.(string)
	if !ok || !query.ValidID(id) {
		return r
	}
	tenant, _ := probe.Tenant.(string)
	at := rec.Timestamp.UTC()
	r.invalid = &invalidTask{task: query.Task{ID: id, Tenant: tenant, SubmittedAt: &at}, message: r.fault.Err.Error()}
	return r
}

// submittedAt is when the user handed the Task in, as far as it can be believed. A time in the request may lie before the
// record's own by a few minutes, for the way here; else the record's counts, which on `requests` is the broker's. And nothing
// was submitted in the future. What a router has passed on keeps its time, however long it lay before that: a later one would be a later
// deadline, and a Task that was passed on twice could run again after the first of them.
func submittedAt(t query.Task, env stream.Envelope, rec *kgo.Record, now time.Time) time.Time {
	at := rec.Timestamp
	if !env.Time.IsZero() {
		at = env.Time
	}
	if t.SubmittedAt != nil {
		at = *t.SubmittedAt
	}
	if at.After(rec.Timestamp) || rec.Timestamp.Sub(at) > maxSkew && !passedOn(rec) {
		at = rec.Timestamp
	}
	if at.After(now) {
		at = now
	}
	return at.UTC().Truncate(time.Millisecond)
}

// trim cuts what can't travel on in a rejection: SQL that is too large, and times that no reader can keep. A decision and an
// Outcome that carried a negative SLA would be refused by the history, which then knows nothing of the rejection.
func trim(t query.Task, l query.Limits) query.Task {
	if len(t.SQL) > cmp.Or(l.MaxSQLBytes, query.DefaultLimits.MaxSQLBytes) {
		t.SQL = ""
	}
	t.SLASeconds = inRange(t.SLASeconds, cmp.Or(l.MaxSLA, query.DefaultLimits.MaxSLA))
	t.TimeoutSeconds = inRange(t.TimeoutSeconds, cmp.Or(l.MaxTimeout, query.DefaultLimits.MaxTimeout))
	return t
}

// bare is who a Task is and when it has to be done, without what can be large.
func bare(t query.Task) query.Task {
	b := query.Task{
		ID: t.ID, Tenant: start(t.Tenant), User: start(t.User), SLASeconds: t.SLASeconds, TimeoutSeconds: t.TimeoutSeconds, SubmittedAt: t.SubmittedAt,
	}
	if t.Session != nil {
		b.Session = &query.Session{ID: start(t.Session.ID), Class: query.SessionClass(start(string(t.Session.Class)))}
	}
	return b
}

// start is a name as far as a name may be long.
func start(name string) string {
	const most = 256
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "")
}

func inRange(s *float64, most time.Duration) *float64 {
	if s != nil && *s > 0 && *s <= most.Seconds() {
		return s
	}
	return nil
}
