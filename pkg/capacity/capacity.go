// Package capacity plans the size of a pool in discrete steps between a floor, which may be zero, and a small cap.
//
// It is core: a Plan is computed from an Input and nothing else. What it plans on are levels, not events: so many Tasks
// wait for this pool or run on it. A hundred Tasks that want the pool at once are one wish, a plan that was carried out
// is not made again, and a process that starts anew plans the same.
//
// A launch only ever raises. Only the reaper lowers, on evidence of idleness and never on the lack of evidence. Who
// patches and who measures is left to services/scaler, pkg/kube and pkg/probe.
package capacity

import (
	"errors"
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Spec is what a pool may be.
type Spec struct {
	// Min is the floor, 0 for a pool that sleeps; Max is the cap. Sizes between are Min plus whole steps.
	Min, Max, Step int
	// IdleAfter is how long a pool must have had nothing to do before it is drained.
	IdleAfter time.Duration
	// DrainFor is how long the pool must have been announced as going before it is lowered, so that whoever routes or
	// submits has heard of it.
	DrainFor time.Duration
	// WakeWindow is the time from a raise to the new capacity. Within it a queue says nothing: it is the backlog that the
	// start itself has built up.
	WakeWindow time.Duration
	// UnknownFor bounds how long an engine that says nothing of its load can hold a pool that our own Tasks have left.
	UnknownFor time.Duration
}

// Validate reports every fault of a spec.
func (s Spec) Validate() error {
	var errs []error
	if s.Min < 0 {
		errs = append(errs, fmt.Errorf("the floor is %d: it cannot be below 0", s.Min))
	}
	if s.Max < max(s.Min, 1) {
		errs = append(errs, fmt.Errorf("the cap is %d: it must be at least 1 and not below the floor", s.Max))
	}
	if s.Step < 1 {
		errs = append(errs, fmt.Errorf("the step is %d: it must be at least 1", s.Step))
	}
	if s.IdleAfter <= 0 || s.DrainFor < 0 || s.WakeWindow < 0 || s.UnknownFor < 0 {
		errs = append(errs, errors.New("the times must not be negative, and the idle time must be above 0"))
	}
	return errors.Join(errs...)
}

// Tier is the smallest allowed size that is at least n.
func (s Spec) Tier(n int) int {
	if n <= s.Min {
		return s.Min
	}
	steps := (n - s.Min + s.Step - 1) / s.Step
	return min(s.Min+steps*s.Step, s.Max)
}

// Above is the next size over n, or the cap.
func (s Spec) Above(n int) int { return s.Tier(n + 1) }

// Input is everything a plan depends on.
type Input struct {
	Now  time.Time
	Spec Spec
	// Paused stops every write, the first step from zero and the last step to it too.
	Paused bool

	// Replicas is what the control plane has been told, absent while it cannot be read.
	Replicas signal.Value
	// Open counts our own Tasks that wait for this pool or run on it, absent until the topics have been read up to now.
	Open signal.Value
	// Running and Queued are the engine's own counts; others may use it too. Running is absent while it does not answer,
	// Queued also when the engine has no queue of its own.
	Running, Queued signal.Value
	// Waiting are the newest readings of the engine's queue, oldest first, absent ones included.
	Waiting []signal.Value
	// ScaleHelps is false when what waits is bound by the memory of one node: more nodes would be no use to it.
	ScaleHelps bool

	// LastWork is when the pool last had something to do; a pool that never had counts from when it was first seen.
	LastWork time.Time
	// LastRaise is when it was last raised, zero for never; Up is true once a raise from zero has come to bear.
	LastRaise time.Time
	Up        bool
	// Draining is since when the pool is announced as going, zero when it is not.
	Draining time.Time
}

// Action is what to do with the pool.
type Action string

// The actions.
const (
	Hold Action = "hold"
	// Raise and Lower set the replicas.
	Raise Action = "raise"
	Lower Action = "lower"
	// Drain announces that the pool is going; Undrain takes that back.
	Drain   Action = "drain"
	Undrain Action = "undrain"
)

// Reason codes of a plan: the closed list.
const (
	ReasonPaused          = "paused"
	ReasonControlUnknown  = "control_plane_unknown"
	ReasonFloor           = "below_floor"
	ReasonWanted          = "tasks_wait"
	ReasonQueue           = "queue_pressure"
	ReasonBusy            = "has_work"
	ReasonCap             = "at_cap"
	ReasonWaking          = "within_wake_window"
	ReasonAsleep          = "asleep"
	ReasonAtFloor         = "at_floor"
	ReasonNotIdleLong     = "idle_not_long_enough"
	ReasonTopicsUnknown   = "topics_not_read_yet"
	ReasonEngineUnknown   = "engine_load_unknown"
	ReasonEngineBusy      = "engine_has_other_work"
	ReasonDraining        = "draining"
	ReasonIdle            = "idle"
	ReasonIdleEngineMute  = "idle_engine_mute"
	ReasonWorkWhileDrains = "work_came_while_draining"
)

// Plan is what to do, to what size, and why.
type Plan struct {
	Action   Action
	Replicas int
	Reason   event.Reason
	// Alarm is set when a person should look: the pool is held or lowered on less evidence than it should be.
	Alarm bool
}
