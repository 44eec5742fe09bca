package executor

import (
	"context"
	"time"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/failure"
)

// takeSlot stands in the cluster's line.
func (y *try) takeSlot(ctx context.Context) attempt.Event {
	if e := y.interrupted(ctx); e != "" {
		return e
	}
	if y.cluster == nil {
		f := failure.Of(failure.ClusterDown, errNoEngine.Error()+": "+y.target.Cluster)
		y.failure = &f
		return attempt.PoolNeverReady
	}
	if y.asleep() {
		return attempt.PoolAsleep
	}
	y.place = y.cluster.line.Join(y.t.first.Task.Priority, y.t.order, y.ask())
	if e := y.awaitAnswer(ctx); e != "" {
		return e
	}
	select {
	case <-y.place.Granted():
		return y.granted(ctx)
	default:
		y.position, y.waited = y.place.Position(), true
		return attempt.SlotBusy
	}
}

// answerIn is how long an attempt that has asked for a slot is not said to wait: with a broker that answers it has it before.
const answerIn = 2 * time.Second

// awaitAnswer waits until it is known what became of an ask. Whoever has none goes on at once.
func (y *try) awaitAnswer(ctx context.Context) attempt.Event {
	if !y.place.Asked() {
		return ""
	}
	late := time.NewTimer(answerIn)
	defer late.Stop()
	select {
	case <-y.place.Granted():
	case <-y.p.app.slots.Read(y.id):
	case <-late.C:
	case <-y.t.cancelled:
		return attempt.CancelWished
	case <-y.late.C:
		return attempt.DeadlinePassed
	case <-ctx.Done():
		return attempt.Abandoned
	}
	return ""
}

// awaitSlot waits in the line.
func (y *try) awaitSlot(ctx context.Context) attempt.Event {
	for {
		changed, turned := y.p.app.watch.Changed(), y.p.app.slots.Turned()
		if y.asleep() {
			return attempt.PoolAsleep
		}
		select {
		case <-y.place.Granted():
			return y.granted(ctx)
		case <-changed:
		case <-turned: // whoever looks at the Task wants to know
			if y.p.app.slots.Err() != nil {
				y.place.Waits()
			}
			y.position = y.place.Position()
			y.announce(ctx)
		case <-y.t.cancelled:
			return attempt.CancelWished
		case <-y.late.C:
			return attempt.DeadlinePassed
		case <-ctx.Done():
			return attempt.Abandoned
		}
	}
}

// granted is the way from the line to the claim. A process that ends, or gives the partition back, claims nothing more.
func (y *try) granted(ctx context.Context) attempt.Event {
	y.position = 0
	if y.asleep() {
		return attempt.PoolAsleep
	}
	y.p.app.slots.Runs(y.part(), y.want())
	if !y.active && !y.p.enter() {
		y.freeSlot()
		<-ctx.Done()
		return attempt.Abandoned
	}
	y.active = true
	y.times.slot = time.Now()
	return attempt.SlotGranted
}

func (y *try) asleep() bool { return y.p.app.watch.Asleep(y.target.Cluster, time.Now()) }

// freeSlot leaves the line, or gives the slot back. What is let go may still run at the engine: it goes on holding the slot that all
// executors count, until its next owner ends it.
func (y *try) freeSlot() {
	if y.place != nil {
		y.place.Leave() // before the free: whoever stands in line may be asked for once more
		y.place = nil
	}
	if !y.claimed || y.state.Terminal() {
		y.p.app.slots.Free(y.id)
	}
}

// awaitPool waits until the pool is not known to sleep any more.
func (y *try) awaitPool(ctx context.Context) attempt.Event {
	y.waited = true
	began := time.Now()
	defer func() { y.times.asleep += time.Since(began) }()
	bound := time.NewTimer(y.p.app.cfg.Attempts.CapacityWait)
	defer bound.Stop()
	// A signal grows old without a change: then the pool is not known to sleep any more, and is tried.
	look := time.NewTicker(max(y.p.app.cfg.Attempts.SignalAge/4, 10*time.Millisecond))
	defer look.Stop()
	for {
		changed := y.p.app.watch.Changed()
		if !y.asleep() {
			return attempt.PoolReady
		}
		select {
		case <-changed:
		case <-look.C:
		case <-bound.C:
			f := failure.Of(failure.EngineStart, "the pool was not ready within "+y.p.app.cfg.Attempts.CapacityWait.String())
			y.failure = &f
			return attempt.PoolNeverReady
		case <-y.t.cancelled:
			return attempt.CancelWished
		case <-y.late.C:
			return attempt.DeadlinePassed
		case <-ctx.Done():
			return attempt.Abandoned
		}
	}
}
