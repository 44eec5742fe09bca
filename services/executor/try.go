package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/executor/line"
	"github.com/pointsman/pointsman/services/executor/result"
)

// try is one attempt on its way through the attempt table. Each effect of the table is a method.
type try struct {
	t       *task
	p       *partition
	number  int
	id      string
	target  event.Target
	cluster *cluster // nil if no such cluster is known here
	log     *slog.Logger
	late    *time.Timer // fires at the Task's deadline

	state, prev attempt.State
	told        bool // its state was published once
	position    int  // in the line
	waited      bool // for a slot or for the pool
	place       *line.Place
	active      bool // counted by the partition
	claimed     bool
	adopted     bool      // an earlier owner claimed it
	claimedAt   time.Time // just before the claim was handed to the producer: the guard runs from here
	noted       bool      // the ledger says that the engine had it
	missing     time.Time // since when the engine has had no trace of what it was seen at work on
	settled     time.Time // after a broken connection: from then on a look-up that finds nothing is believed

	running  *submission
	failure  *event.Failure
	reach    failure.Reach
	fate     fate // of a write that was stopped
	unstored bool // this process can't store its result, whichever engine it came from
	result   *event.Result
	sink     *result.Sink
	engine   event.Stats // what the engine said
	times    times

	next step // what follows, once it has ended
}

// times are the moments of an attempt, by this process's clock; a zero one has not come, or came in another process.
type times struct {
	placed, slot, started, first, done time.Time
	asleep                             time.Duration // spent waiting for the pool before the slot
}

func (t *task) newTry(s step) *try {
	id := query.AttemptID(t.id, s.number)
	t.govern(s.number)
	return &try{
		t: t, p: t.p, number: s.number, id: id, target: s.target, cluster: t.p.app.clusters[s.target.Cluster],
		log:   t.log.With(telemetry.KeyAttempt, id, telemetry.KeyCluster, s.target.Cluster),
		state: attempt.Start, reach: failure.NotSent, late: t.untilDeadline(),
	}
}

// make makes the attempt from its start.
func (y *try) make(ctx context.Context) (step, error) {
	y.times.placed = time.Now()
	if y.number == y.t.first.Attempt {
		y.times.placed = y.t.seen
	}
	y.t.tried = append(y.t.tried, tried{number: y.number, target: y.target})
	return y.drive(ctx, attempt.Placed)
}

// adopt goes on with an attempt that another owner claimed and did not end.
func (y *try) adopt(ctx context.Context, open ledger.Attempt) (step, error) {
	y.claimed, y.adopted, y.state, y.reach = true, true, attempt.Claimed, failure.SentUnknown
	y.active = y.p.enter()
	if open.Submitted != nil {
		y.noted, y.state = true, attempt.Running
		if note, err := decodeNote[submittedNote](open.Submitted.Payload); err == nil {
			y.times.started = note.StartedAt
		}
	}
	y.log.InfoContext(ctx, "found an open attempt of an earlier owner", "state", string(y.state), "claimed_by", open.Claim.Owner, "claim_epoch", open.Claim.Epoch)
	return y.drive(ctx, attempt.TakenOver)
}

// drive walks the table until the attempt has ended or is let go.
func (y *try) drive(ctx context.Context, e attempt.Event) (step, error) {
	ctx, span := y.p.app.tracer.Start(ctx, "attempt")
	span.SetAttributes(attribute.String("pointsman.attempt", y.id), attribute.Int("pointsman.attempt.number", y.number),
		attribute.String("pointsman.cluster", y.target.Cluster), attribute.String("pointsman.queue", y.target.Queue), attribute.Bool("pointsman.adopted", y.adopted))
	defer span.End()
	defer func() { y.release(context.Cause(ctx)) }()
	for {
		tr, err := attempt.Apply(y.state, e)
		if err != nil {
			y.p.app.metrics.missing.Inc()
			return step{}, err
		}
		y.log.DebugContext(ctx, "attempt", "event", string(e), "state", string(y.state), "next", string(tr.Next))
		if y.state != tr.Next {
			span.AddEvent(string(tr.Next), trace.WithAttributes(attribute.String("event", string(e))))
		}
		y.prev, y.state = y.state, tr.Next
		came := e
		e = ""
		for _, effect := range tr.Do {
			y.p.app.hooks.effect(ctx, y.id, y.prev, came, effect)
			if e, err = y.do(ctx, effect); err != nil {
				return step{}, err
			}
		}
		if y.state.Terminal() {
			span.SetAttributes(attribute.String("pointsman.state", string(y.state)))
			if y.failure != nil {
				span.SetAttributes(attribute.String("pointsman.class", y.failure.Class), attribute.String("pointsman.code", y.failure.Code))
			}
			if y.state != attempt.Succeeded {
				span.SetStatus(codes.Error, string(y.state))
			}
			return y.next, nil
		}
	}
}

// do carries one effect out. One that yields gives the next event.
func (y *try) do(ctx context.Context, effect attempt.Effect) (attempt.Event, error) {
	switch effect {
	case attempt.Announce:
		y.announce(ctx)
	case attempt.TakeSlot:
		return y.takeSlot(ctx), nil
	case attempt.AwaitSlot:
		return y.awaitSlot(ctx), nil
	case attempt.FreeSlot:
		y.freeSlot()
	case attempt.AwaitPool:
		return y.awaitPool(ctx), nil
	case attempt.WriteClaim:
		return y.writeClaim(ctx)
	case attempt.CheckGuard:
		return y.checkGuard(ctx), nil
	case attempt.Submit:
		y.submit(ctx)
	case attempt.NoteSubmitted:
		y.noteSubmitted(ctx)
	case attempt.Follow:
		return y.follow(ctx), nil
	case attempt.Deliver:
		return y.deliver(ctx), nil
	case attempt.StopEngine:
		y.stopEngine(ctx)
		y.askFate(ctx)
	case attempt.AwaitGuard:
		y.awaitGuard(ctx)
	case attempt.LookUp:
		return y.lookUp(ctx), nil
	case attempt.WatchEngine:
		return y.watchEngine(ctx), nil
	case attempt.WriteEnd:
		return "", y.writeEnd(ctx)
	case attempt.LetGo:
		y.letGo(context.Cause(ctx))
		return "", errLetGo
	default:
		return "", fmt.Errorf("nobody knows how to do %q", effect)
	}
	return "", nil
}

// release gives back what an attempt holds, on every way out.
func (y *try) release(why error) {
	y.late.Stop()
	y.freeSlot()
	if y.active {
		y.active = false
		y.p.leave()
	}
	if y.running != nil && !y.running.done() {
		y.letGo(why) // only after an error: every end of the table has stopped it
	}
}

// interrupted says what has come that ends every wait, or "".
func (y *try) interrupted(ctx context.Context) attempt.Event {
	select {
	case <-ctx.Done():
		return attempt.Abandoned
	default:
	}
	select {
	case <-y.t.cancelled:
		return attempt.CancelWished
	default:
	}
	if !y.t.now().Before(y.t.deadline()) {
		return attempt.DeadlinePassed
	}
	return ""
}

// excluded are the targets that failed in this Task, this one included once it has.
func (t *task) excluded() []event.Target {
	out := slices.Clone(t.first.Excluded)
	for _, m := range t.tried {
		if m.ending != nil && m.ending.Remedy != event.RemedyRetry && !slices.Contains(out, m.ending.Target) {
			out = append(out, m.ending.Target)
		}
	}
	return out
}

var errNoEngine = errors.New("this executor has no engine of that name")
