package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// group is the router's consumer group.
const group = "router"

// worker routes what one partition of requests or attempts brings: read a batch, ask history once, decide each, produce all,
// and only then call the records done. Tasks of sessions with a budget go to the partition's keeper.
type worker struct {
	app    *App
	part   *stream.Partition
	keeper *bookkeeper // nil for attempts: a later attempt is charged already
	parts  int         // of requests
}

func (a *App) assign(ctx context.Context, p *stream.Partition) (stream.Processor, error) {
	w := &worker{app: a, part: p}
	if p.Topic != event.TopicRequests {
		return w, nil
	}
	if err := stream.Persist(ctx, a.log, "counting the partitions of "+p.Topic, func(ctx context.Context) (err error) {
		w.parts, err = a.partitions(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	w.keeper = newBookkeeper(a, p)
	a.keepers.put(w.keeper)
	return w, nil
}

// Close ends the worker.
func (w *worker) Close() {
	if w.keeper != nil {
		w.app.keepers.remove(w.keeper)
		w.keeper.close()
	}
}

// Process routes a batch. A crash before Done repeats it: the decisions have the same ids then, and the first in the log
// counts.
func (w *worker) Process(ctx context.Context, recs []*kgo.Record) error {
	a := w.app
	start := time.Now()
	rest := make([]request, 0, len(recs))
	for _, rec := range recs {
		r := read(rec, w.part.Topic, a.cfg.Limits.limits(), start.UTC())
		switch {
		case w.keeper == nil || !w.keeper.wants(r):
			rest = append(rest, r)
		case w.belongsHere(r):
			w.keeper.take(r)
		default:
			w.keeper.stray(r)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return w.route(ctx, rest, start)
}

// route decides what no budget concerns.
func (w *worker) route(ctx context.Context, requests []request, start time.Time) error {
	a := w.app
	subjects := make([]subject, len(requests))
	for i, r := range requests {
		switch {
		case r.task != nil:
			subjects[i] = a.decider.subject(ctx, *r.task, 1)
		case r.reroute != nil:
			subjects[i] = a.decider.reroute(ctx, r.reroute)
		}
	}
	history := a.decider.lookup(ctx, subjects)
	out := make([]answer, 0, len(requests))
	for i, r := range requests {
		if r.fault != nil {
			if err := w.deadLetter(ctx, r); err != nil {
				return err
			}
		}
		if d, ok := w.answer(r, subjects[i], history.of(subjects[i].fingerprint, subjects[i].bucket)); ok {
			out = append(out, d)
		}
	}
	if err := a.publish(ctx, out); err != nil {
		return err
	}
	a.metrics.routeSeconds.Observe(time.Since(start).Seconds())
	for _, r := range requests {
		w.part.Done(r.rec)
	}
	return nil
}

// answer is a decision that is to be published, the record that asked for it, and what it depended on when a policy made it.
type answer struct {
	rec      *kgo.Record
	decision event.RouteDecision
	input    *route.Input
}

// publish writes decisions and their inputs, and returns when they are acknowledged. A query waits for its decision and nobody for
// its input, so the decisions go first.
func (a *App) publish(ctx context.Context, answers []answer) error {
	out, kept := make([]*kgo.Record, 0, len(answers)), make([]*kgo.Record, 0, len(answers))
	for i := range answers {
		rec, err := a.encode(&answers[i].decision, answers[i].rec)
		if err != nil {
			return err
		}
		out = append(out, rec)
	}
	acknowledged := a.producer.Start(ctx, out...)
	for i := range answers {
		if rec, ok := a.inputs.encode(answers[i].input, answers[i].rec); ok {
			kept = append(kept, rec)
		}
	}
	keptToo := a.inputs.start(ctx, kept)
	if err := acknowledged(); err != nil {
		if err = a.shrink(ctx, out, err); err != nil {
			return err
		}
	}
	return keptToo()
}

// answer is the decision for a request, with its input when a policy made it, or false when the request gets none.
func (w *worker) answer(r request, s subject, history profile.Lookup) (answer, bool) {
	a := w.app
	switch {
	case r.task != nil:
		return a.traced(r.rec, s, history, nil), true
	case r.reroute != nil && r.reroute.Number >= a.cfg.MaxAttempts:
		return answer{rec: r.rec, decision: a.giveUp(r.reroute, s)}, true
	case r.reroute != nil:
		return a.traced(r.rec, s, history, nil), true
	case r.cancel != nil:
		return answer{rec: r.rec, decision: passCancel(*r.cancel, time.Now().UTC())}, true
	case r.invalid != nil:
		return answer{rec: r.rec, decision: a.rejectInvalid(*r.invalid, time.Now().UTC())}, true
	default:
		return answer{}, false
	}
}

// traced decides within a span that continues the record's trace, counts and logs. account gives the account of the Task's session,
// nil if it has none.
func (a *App) traced(rec *kgo.Record, s subject, history profile.Lookup, account func(*route.Input) *route.SessionAccount) answer {
	parent := rec.Context
	if parent == nil {
		parent = context.Background()
	}
	ctx, span := a.tracer.Start(parent, "route")
	defer span.End()
	rec.Context = ctx
	d, in := a.decider.decide(s, history, account)
	reason := ""
	if len(d.Reasons) > 0 {
		reason = d.Reasons[0].Code
	}
	span.SetAttributes(attribute.String("pointsman.task", d.TaskID), attribute.String("pointsman.kind", string(d.Kind)),
		attribute.String("pointsman.cluster", d.Cluster), attribute.String("pointsman.reason", reason))
	a.metrics.decisions.WithLabelValues(string(d.Kind), reason).Inc()
	a.log.DebugContext(ctx, "decided", telemetry.KeyTask, d.TaskID, telemetry.KeyAttempt, d.Attempt, "kind", string(d.Kind),
		telemetry.KeyCluster, d.Cluster, telemetry.KeyRule, d.Rule, telemetry.KeyReason, reason)
	return answer{rec: rec, decision: d, input: in}
}

func (w *worker) deadLetter(ctx context.Context, r request) error {
	w.app.metrics.faults.WithLabelValues(string(r.fault.Class)).Inc()
	w.app.log.WarnContext(ctx, "a record can't be used; it goes to the dead letters", telemetry.KeyTopic, w.part.Topic,
		telemetry.KeyPartition, r.rec.Partition, telemetry.KeyOffset, r.rec.Offset, telemetry.KeyClass, string(r.fault.Class), telemetry.Err(r.fault))
	return w.app.producer.DeadLetter(ctx, stream.DeadLetter{
		Record: r.rec, Group: group, Stage: "router", Class: r.fault.Class, Err: r.fault.Err,
	})
}

// encode makes the record of a decision, in the trace of the record that asked for it.
func (a *App) encode(d *event.RouteDecision, from *kgo.Record) (*kgo.Record, error) {
	data, err := event.Marshal(d)
	if err != nil {
		return nil, err
	}
	id := d.DecisionID
	if d.Kind == event.PassCancel {
		id = d.TaskID + "/cancel"
	}
	rec, err := a.cfg.Kafka.Encode(stream.Message{
		Topic: event.TopicDecisions, Key: d.TaskID, Type: d.Type(), ID: id, Subject: d.TaskID, Time: d.DecidedAt, Data: data, Fresh: true,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding decision %s: %w", id, err)
	}
	rec.Context = from.Context
	return rec, nil
}

// tooLargeToRoute is what is said of a Task for which some topic is too small.
const tooLargeToRoute = "the request is too large to be routed"

// shrink answers for decisions that were too large for their topic: the Task is rejected, and of it there is only who it is. Any other
// error is returned as it is.
func (a *App) shrink(ctx context.Context, recs []*kgo.Record, cause error) error {
	if !errors.Is(cause, stream.ErrTooLarge) {
		return cause
	}
	for _, rec := range recs {
		err := a.producer.Write(ctx, rec) // one that was written gets a second copy with the same id, which changes nothing
		if err == nil {
			continue
		}
		if !errors.Is(err, stream.ErrTooLarge) {
			return err
		}
		var d event.RouteDecision
		if err := d.UnmarshalJSON(rec.Value); err != nil {
			return fmt.Errorf("reading our own decision back: %w", err)
		}
		refusal := a.rejectInvalid(invalidTask{task: bare(*d.Task), message: tooLargeToRoute}, time.Now().UTC())
		// It answers for the very attempt whose decision did not fit, or the Task would wait for that one.
		refusal.DecisionID, refusal.Attempt, refusal.Deadline, refusal.TaskDigest = d.DecisionID, d.Attempt, d.Deadline, d.TaskDigest
		small, err := a.encode(&refusal, rec)
		if err != nil {
			return err
		}
		if err := a.producer.Write(ctx, small); err != nil {
			return err
		}
	}
	return nil
}

// cancelMemory is how long a cancelled Task that nobody has asked for yet stays cancelled. The wish follows its Task under one
// key, so it overtakes it only when a producer sent them the wrong way round; a longer memory would only make take-overs slow.
const cancelMemory = 10 * time.Minute

func passCancel(c event.Cancel, now time.Time) event.RouteDecision {
	return event.RouteDecision{
		DecisionID: c.TaskID + "/cancel", TaskID: c.TaskID, Kind: event.PassCancel, Cancel: &c, DecidedAt: now, Deadline: now.Add(cancelMemory),
	}
}

// rejectInvalid rejects a Task that can't be decided.
func (a *App) rejectInvalid(t invalidTask, now time.Time) event.RouteDecision {
	r := route.NewReason(route.InvalidTask, "message", t.message)
	p := a.decider.policy.Load()
	task := t.task
	deadline := now.Add(p.Defaults.Timeout)
	a.metrics.decisions.WithLabelValues(string(event.Reject), r.Code).Inc()
	return event.RouteDecision{
		DecisionID: query.AttemptID(task.ID, 1), TaskID: task.ID, Attempt: 1, Kind: event.Reject, Task: &task, TaskDigest: task.Digest(),
		DecidedAt: now, Deadline: deadline, PolicyHash: p.Hash, Reasons: []event.Reason{r},
		Rejection: &event.Rejection{Code: r.Code, Message: r.Text, Suggestion: "Correct the request and send it under a new id."},
	}
}

// giveUp rejects a Task whose attempts have all failed.
func (a *App) giveUp(failed *event.Attempt, s subject) event.RouteDecision {
	last := "an unknown error"
	if failed.Failure != nil {
		last = failed.Failure.Class + ": " + failed.Failure.Message
	}
	d := *failed.Decision
	r := route.NewReason(route.TooManyTries, "attempts", fmt.Sprint(failed.Number), "failure", last)
	a.metrics.decisions.WithLabelValues(string(event.Reject), r.Code).Inc()
	return event.RouteDecision{
		DecisionID: query.AttemptID(failed.TaskID, s.attempt), TaskID: failed.TaskID, Attempt: s.attempt, Kind: event.Reject,
		Task: d.Task, TaskDigest: d.TaskDigest, DecidedAt: time.Now().UTC(), Deadline: d.Deadline, PolicyHash: d.PolicyHash,
		Reasons: []event.Reason{r}, Excluded: failed.Excluded, Fingerprint: d.Fingerprint, Bucket: d.Bucket, Statement: d.Statement, ReadOnly: d.ReadOnly,
		Tables: d.Tables, Rejection: &event.Rejection{Code: r.Code, Message: r.Text},
	}
}
