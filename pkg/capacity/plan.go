package capacity

import (
	"strconv"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Pressure is a raise by queue: this many of the last readings must be above zero.
const (
	pressureReadings = 4
	pressureOver     = 3
)

// Next plans the pool's next step. The order of the questions is the order of what may not go wrong: nothing is written
// while paused or blind, work outranks saving, and lowering comes last and needs the most.
func (in Input) Next() Plan {
	replicas, known := in.Replicas.Get()
	now := int(replicas)
	open, openKnown := in.Open.Get()
	switch {
	case in.Paused:
		return in.hold(now, ReasonPaused, "writes are paused")
	case !known:
		return Plan{Action: Hold, Reason: reason(ReasonControlUnknown, "the control plane does not say how large the pool is"), Alarm: true}
	case now < in.Spec.Min:
		return in.raise(in.Spec.Min, ReasonFloor, "the pool is below its floor of "+strconv.Itoa(in.Spec.Min))
	case openKnown && open > 0:
		return in.withWork(now, int(open))
	case now <= in.Spec.Min:
		if now == 0 {
			return in.hold(now, ReasonAsleep, "the pool sleeps and nothing asks for it")
		}
		return in.hold(now, ReasonAtFloor, "the pool is at its floor")
	default:
		return in.reap(now, openKnown)
	}
}

// withWork is the plan while Tasks wait for the pool or run on it.
func (in Input) withWork(now, open int) Plan {
	tasks := strconv.Itoa(open) + " tasks"
	switch first := in.Spec.Tier(1); {
	case now < first:
		return in.raise(first, ReasonWanted, tasks+" want the pool")
	case !in.Draining.IsZero():
		return Plan{Action: Undrain, Replicas: now, Reason: reason(ReasonWorkWhileDrains, tasks+" came while the pool was going")}
	case !in.pressed():
		return in.hold(now, ReasonBusy, tasks+" wait or run")
	case now >= in.Spec.Max:
		return in.hold(now, ReasonCap, "the queue is long, and the pool is at its cap")
	case !in.ScaleHelps:
		return in.hold(now, ReasonBusy, "the queue is long, but what waits is bound by the memory of one node")
	case in.waking():
		return in.hold(now, ReasonWaking, "the queue is long, but the last raise has not come to bear yet")
	default:
		return in.raise(in.Spec.Above(now), ReasonQueue, "the queue has been above zero for most of the last readings")
	}
}

// reap is the plan for a pool over its floor that none of our Tasks is known to use.
func (in Input) reap(now int, openKnown bool) Plan {
	if !openKnown {
		return in.keep(now, ReasonTopicsUnknown, "the topics have not been read up to now: unknown is not idle")
	}
	running, runningKnown := in.Running.Get()
	queued, queuedKnown := in.Queued.Get()
	idle := in.Now.Sub(in.LastWork)
	// An engine that tells what runs and never had a queue of its own leaves Queued absent; a stale one is another matter.
	quiet := runningKnown && (queuedKnown || in.Queued.State() == signal.Absent)
	switch {
	case running > 0 || queued > 0:
		return in.keep(now, ReasonEngineBusy, "the engine runs or queues what did not come through our topics")
	case in.waking() && !in.Up:
		return in.keep(now, ReasonWaking, "it is on its way up: taken away now, it would never arrive")
	case idle < in.Spec.IdleAfter:
		return in.keep(now, ReasonNotIdleLong, "idle for "+short(idle)+" of "+short(in.Spec.IdleAfter))
	case !quiet && idle < in.Spec.IdleAfter+in.Spec.UnknownFor:
		p := in.keep(now, ReasonEngineUnknown, "the engine does not say whether it is idle: unknown is not idle")
		p.Alarm = true
		return p
	case in.Draining.IsZero():
		return Plan{Action: Drain, Replicas: now, Reason: in.idleReason(idle, quiet), Alarm: !quiet}
	case in.Now.Sub(in.Draining) < in.Spec.DrainFor:
		return in.hold(now, ReasonDraining, "announced as going for "+short(in.Now.Sub(in.Draining))+" of "+short(in.Spec.DrainFor))
	default:
		return Plan{Action: Lower, Replicas: in.Spec.Min, Reason: in.idleReason(idle, quiet), Alarm: !quiet}
	}
}

// keep holds, and takes an announced end back: whatever started the drain does not hold any more.
func (in Input) keep(now int, code, text string) Plan {
	if in.Draining.IsZero() {
		return in.hold(now, code, text)
	}
	return Plan{Action: Undrain, Replicas: now, Reason: reason(code, text)}
}

func (in Input) hold(now int, code, text string) Plan {
	return Plan{Action: Hold, Replicas: now, Reason: reason(code, text)}
}

func (in Input) raise(to int, code, text string) Plan {
	return Plan{Action: Raise, Replicas: to, Reason: reason(code, text)}
}

func (in Input) idleReason(idle time.Duration, quiet bool) event.Reason {
	if quiet {
		return reason(ReasonIdle, "idle for "+short(idle))
	}
	return reason(ReasonIdleEngineMute, "none of our tasks for "+short(idle)+"; the engine does not answer, and may not hold the pool for ever")
}

// waking says whether the last raise is too fresh to be judged.
func (in Input) waking() bool {
	return !in.LastRaise.IsZero() && in.Now.Sub(in.LastRaise) < in.Spec.WakeWindow
}

// pressed says whether the queue has been above zero for most of the last readings. A reading that is not there does not
// count as one.
func (in Input) pressed() bool {
	last := in.Waiting
	if len(last) > pressureReadings {
		last = last[len(last)-pressureReadings:]
	}
	over := 0
	for _, v := range last {
		if n, ok := v.Get(); ok && n > 0 {
			over++
		}
	}
	return over >= pressureOver
}

func reason(code, text string) event.Reason { return event.Reason{Code: code, Text: text} }

func short(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
