package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// What became of decision records, as metric labels.
const (
	readFirst     = "first"
	readNext      = "next"
	readCancel    = "cancel"
	readRepeat    = "repeat"
	readConflict  = "conflict"
	readMalformed = "malformed"
)

// finishedKept is how many Tasks whose Outcome is acknowledged are remembered per partition, so that a late repeat of a
// decision costs nothing. What is forgotten here is still in the ledger.
const finishedKept = 8192

// partition is what the executor does for one partition of decisions.
type partition struct {
	app  *App
	part *stream.Partition
	log  *slog.Logger

	ctx  context.Context // it ends when this process must not act for the partition any more
	stop context.CancelCauseFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	lease    *lease
	changed  chan struct{} // closed when the lease changes
	tasks    map[string]*task
	finished *lru.Cache[string, string] // task id to digest
	draining bool                       // nothing new is claimed
	active   int                        // attempts from their claim to their end
	idle     chan struct{}              // closed when draining and nothing is active
}

// assign takes the ledger of a partition over. A broker that does not answer is waited for: records wait meanwhile.
func (a *App) assign(ctx context.Context, part *stream.Partition) (stream.Processor, error) {
	finished, err := lru.New[string, string](finishedKept)
	if err != nil {
		return nil, err
	}
	p := &partition{
		app: a, part: part, log: a.log.With(telemetry.KeyPartition, part.ID), changed: make(chan struct{}),
		tasks: map[string]*task{}, finished: finished, idle: make(chan struct{}),
	}
	p.ctx, p.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := p.take(ctx); err != nil {
		p.stop(err)
		return nil, err
	}
	p.wg.Go(p.keep)
	a.metrics.partitions.Inc()
	a.ready.Open()
	return p, nil
}

// Process hands each decision to its Task. One that can't be used is set aside, and ends its Task if it names one.
func (p *partition) Process(ctx context.Context, recs []*kgo.Record) error {
	for _, rec := range recs {
		d, fault := readDecision(rec)
		usable := fault == nil
		if usable {
			fault = p.hand(rec, d)
		} else {
			p.app.metrics.decisions.WithLabelValues(readMalformed).Inc()
		}
		if fault == nil {
			continue
		}
		if err := p.deadLetter(ctx, rec, fault); err != nil {
			return err
		}
		if !usable && query.ValidID(d.TaskID) && p.hand(rec, refusal(rec, d, fault)) == nil {
			continue // its Task finishes the record
		}
		p.part.Done(rec)
	}
	return nil
}

// refusal is what stands for a decision that can't be used: whoever waits for the Task must hear of its end.
func refusal(rec *kgo.Record, d event.RouteDecision, fault *stream.Fault) event.RouteDecision {
	d.Kind, d.Target, d.Fallbacks = event.Reject, event.Target{}, nil
	d.Attempt = max(d.Attempt, 1)
	d.Rejection = &event.Rejection{
		Code: unusableDecision, Message: "The Task can't be run, because its decision can't be used: " + fault.Err.Error() + ".",
		Suggestion: "Send the request with SQL, under a new id. The platform team finds the decision in the dead letters.",
	}
	return withDefaults(rec, d)
}

// unusableDecision is the code of a rejection that comes from no router.
const unusableDecision = "unusable_decision"

// withDefaults fills in what a decision of another producer may leave out.
func withDefaults(rec *kgo.Record, d event.RouteDecision) event.RouteDecision {
	if d.Deadline.IsZero() { // a claim without a deadline can't be kept apart from one that is for ever
		d.Deadline = rec.Timestamp.Add(query.DefaultLimits.MaxTimeout).UTC()
	}
	if d.TaskDigest == "" && d.Task != nil {
		d.TaskDigest = d.Task.Digest()
	}
	return d
}

func readDecision(rec *kgo.Record) (d event.RouteDecision, f *stream.Fault) {
	env, err := stream.Decode(rec, stream.RulesFor(event.TopicDecisions))
	if err != nil {
		if !errors.As(err, &f) {
			f = &stream.Fault{Class: stream.FaultInternal, Err: err}
		}
		return d, f
	}
	bad := func(class stream.FaultClass, format string, args ...any) (event.RouteDecision, *stream.Fault) {
		return d, &stream.Fault{Class: class, Err: fmt.Errorf(format, args...)}
	}
	if err := d.UnmarshalJSON(env.Data); err != nil {
		var named struct {
			TaskID string `json:"taskId"`
		}
		if json.Unmarshal(env.Data, &named) == nil {
			d = event.RouteDecision{TaskID: named.TaskID}
		}
		return bad(stream.FaultSchema, "%s", query.DescribeJSONError(err))
	}
	switch {
	case !query.ValidID(d.TaskID):
		return bad(stream.FaultSchema, "taskId: is missing or no valid id")
	case d.Kind == event.PassCancel:
	case d.Kind != event.Route && d.Kind != event.Reject:
		return bad(stream.FaultUnknownType, "kind %q is not known", d.Kind)
	case d.Attempt < 1:
		return bad(stream.FaultSchema, "attempt: must be at least 1")
	case d.Kind == event.Route && (d.Task == nil || d.Task.SQL == ""):
		return bad(stream.FaultSchema, "task: a routed Task must be in the decision, with its SQL")
	}
	return withDefaults(rec, d), nil
}

// hand gives a decision to its Task. The first in the log makes the Task; what comes later under the same id is its next
// decision, a cancel, a repeat, or another Task under a name that is taken.
func (p *partition) hand(rec *kgo.Record, d event.RouteDecision) *stream.Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	counted := p.app.metrics.decisions.WithLabelValues
	conflict := func(digest string) *stream.Fault {
		if d.Kind == event.PassCancel || digest == "" || d.TaskDigest == "" || digest == d.TaskDigest {
			return nil
		}
		counted(readConflict).Inc()
		return &stream.Fault{Class: stream.FaultSchema, Err: fmt.Errorf("duplicate id with another body: task %s was decided before with digest %s, this one has %s", d.TaskID, digest, d.TaskDigest)}
	}
	if t := p.tasks[d.TaskID]; t != nil {
		if f := conflict(t.first.TaskDigest); f != nil {
			return f
		}
		counted(t.add(rec, d)).Inc()
		return nil
	}
	if digest, ok := p.finished.Get(d.TaskID); ok {
		if f := conflict(digest); f != nil {
			return f
		}
		counted(readRepeat).Inc()
		p.part.Done(rec)
		return nil
	}
	counted(readFirst).Inc()
	t := newTask(p, rec, d)
	p.tasks[d.TaskID] = t
	p.app.metrics.open.Inc()
	p.wg.Go(t.run)
	return nil
}

// finish lets the offsets of a Task be committed: its Outcome is acknowledged. Whatever way it came to it, it holds no slot.
func (p *partition) finish(t *task) {
	for _, m := range t.tried {
		p.app.slots.Free(query.AttemptID(t.id, m.number))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tasks, t.id)
	p.finished.Add(t.id, t.first.TaskDigest)
	p.app.metrics.open.Dec()
	p.part.Done(t.records()...)
}

// drop forgets a Task without an end.
func (p *partition) drop(t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tasks, t.id)
	p.app.metrics.open.Dec()
}

// enter counts an attempt as active; it is false once nothing new may be claimed.
func (p *partition) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.draining {
		return false
	}
	p.active++
	return true
}

func (p *partition) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active--
	if p.draining && p.active == 0 {
		close(p.idle)
	}
}

// Close gives the partition back. Attempts that run may finish within the grace, since the lease still holds; what is left then
// is the next owner's. Nothing is ended here: a shutdown uses no attempt up. Reads are stopped at the engine, writes go on.
func (p *partition) Close() {
	p.mu.Lock()
	p.draining = true
	if p.active == 0 {
		close(p.idle)
	}
	p.mu.Unlock()
	grace := time.NewTimer(p.app.cfg.Attempts.Grace)
	defer grace.Stop()
	p.mu.Lock()
	l := p.lease
	p.mu.Unlock()
	select {
	case <-p.idle:
	case <-grace.C:
	case <-l.ctx.Done(): // somebody else has it already
	}
	p.stop(errReleased)
	p.wg.Wait()
	p.mu.Lock()
	l = p.lease
	p.mu.Unlock()
	p.app.slots.Drop(p.part.ID)
	p.closeLedger(l)
	p.app.metrics.partitions.Dec()
}

// deadLetter sets a record aside. Until that is acknowledged the partition does not go on.
func (p *partition) deadLetter(ctx context.Context, rec *kgo.Record, fault *stream.Fault) error {
	p.log.WarnContext(ctx, "a decision can't be used; it goes to the dead letters", telemetry.KeyTopic, p.part.Topic,
		telemetry.KeyOffset, rec.Offset, telemetry.KeyClass, string(fault.Class), telemetry.Err(fault))
	return p.app.persist(ctx, "writing a dead letter", func(ctx context.Context) error {
		return p.app.producer.DeadLetter(ctx, stream.DeadLetter{Record: rec, Group: group, Stage: group, Class: fault.Class, Err: fault.Err})
	})
}
