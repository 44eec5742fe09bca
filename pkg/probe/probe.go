// Package probe finds out whether a pool can serve, layer by layer, because each single signal lies at some moment.
//
// The control plane counts pods, and says nothing of backends. An engine that answers may answer from its front end
// alone: SELECT 1 never reaches a backend. Only a canary that touches storage proves that a query can run, and it alone
// may be served by a pool that is on its way out. So all three must pass, and a layer is only asked when the one before
// it has passed: the first that has not is the step where the pool is stuck, with a reason.
//
// A layer passes, fails, or is unknown. Unknown never counts as passed, and how long it may be put up with is left to
// the caller, as is what to do about it.
package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/signal"
)

// Layer is one rung of the ladder.
type Layer string

// The layers, in the order in which they are asked.
const (
	ControlPlane Layer = "control_plane"
	Backends     Layer = "backends"
	Canary       Layer = "canary"
)

// Layers returns all layers, in order.
func Layers() []Layer { return []Layer{ControlPlane, Backends, Canary} }

// Verdict is what a layer says. The empty verdict is Unknown's meaning too.
type Verdict string

// The verdicts.
const (
	Unknown Verdict = "unknown"
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
)

// Check is the answer of one layer.
type Check struct {
	Layer   Layer
	Verdict Verdict
	Reason  string
	Took    time.Duration
}

// Report is one climb: a check per layer, in order.
type Report struct {
	At     time.Time
	Checks []Check
	// Load is what the engine said of its own load when it was asked; its facts are absent when it was not.
	Load signal.Observation
}

// Ready reports whether all layers have passed.
func (r Report) Ready() bool {
	_, stuck := r.Stuck()
	return !stuck
}

// Stuck is the first layer that has not passed.
func (r Report) Stuck() (Check, bool) {
	if len(r.Checks) == 0 {
		return Check{Layer: ControlPlane, Verdict: Unknown, Reason: "nothing was asked yet"}, true
	}
	for _, c := range r.Checks {
		if c.Verdict != Passed {
			return c, true
		}
	}
	return Check{}, false
}

// Of returns the check of a layer.
func (r Report) Of(l Layer) Check {
	for _, c := range r.Checks {
		if c.Layer == l {
			return c
		}
	}
	return Check{Layer: l, Verdict: Unknown, Reason: "not asked"}
}

// Pods is what the control plane says of a pool. Available is absent while nobody has reported it.
type Pods struct {
	Wanted    int
	Available signal.Value
	// Observed is true when the report is of the size that is wanted now, and not of an older one.
	Observed bool
}

// Engine is what is asked of the pool's engine.
type Engine interface {
	Observe(ctx context.Context) (signal.Observation, error)
	Canary(ctx context.Context) error
}

// Ladder asks one pool.
type Ladder struct {
	engine Engine
	limits Limits
}

// Limits bound how long a layer may take.
type Limits struct {
	Backends time.Duration `yaml:"backends" doc:"Longest the engine may take to say which backends live."`
	Canary   time.Duration `yaml:"canary" doc:"Longest the query that touches storage may take."`
}

// DefaultLimits are generous to an engine that has just started.
var DefaultLimits = Limits{Backends: 3 * time.Second, Canary: 10 * time.Second}

// Validate reports every fault of the limits.
func (l Limits) Validate() error {
	var errs []error
	if l.Backends <= 0 {
		errs = append(errs, errors.New("backends: must be above 0"))
	}
	if l.Canary <= 0 {
		errs = append(errs, errors.New("canary: must be above 0"))
	}
	return errors.Join(errs...)
}

// New makes a ladder for an engine.
func New(engine Engine, limits Limits) *Ladder { return &Ladder{engine: engine, limits: limits} }

// Climb asks the layers in order. Its report has a check for each.
func (l *Ladder) Climb(ctx context.Context, pods Pods) Report {
	report := Report{At: time.Now().UTC()}
	asks := []func(context.Context) (Verdict, string){
		func(context.Context) (Verdict, string) { return pods.judge() },
		func(ctx context.Context) (Verdict, string) { return l.backends(ctx, &report.Load) },
		l.canary,
	}
	stuckAt := Layer("")
	for i, layer := range Layers() {
		if stuckAt != "" {
			report.Checks = append(report.Checks, Check{Layer: layer, Verdict: Unknown, Reason: "not asked: " + string(stuckAt) + " has not passed"})
			continue
		}
		began := time.Now()
		verdict, why := asks[i](ctx)
		report.Checks = append(report.Checks, Check{Layer: layer, Verdict: verdict, Reason: why, Took: time.Since(began)})
		if verdict != Passed {
			stuckAt = layer
		}
	}
	return report
}

// Load asks the engine for its load alone.
func (l *Ladder) Load(ctx context.Context) (signal.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, l.limits.Backends)
	defer cancel()
	o, err := l.engine.Observe(ctx)
	if err != nil {
		return signal.Observation{}, fmt.Errorf("asking the engine for its load: %w", err)
	}
	return o, nil
}

func (p Pods) judge() (Verdict, string) {
	available, known := p.Available.Get()
	switch {
	case p.Wanted <= 0:
		return Failed, "no replicas are wanted"
	case !known:
		return Unknown, "the operator has not reported the pool"
	case available <= 0:
		return Failed, fmt.Sprintf("0 of %d replicas are available", p.Wanted)
	case !p.Observed:
		return Unknown, "the operator has not seen the newest size yet, its report is of an older one"
	default:
		return Passed, fmt.Sprintf("%g of %d replicas are available", available, p.Wanted)
	}
}

// backends asks the engine itself. Where it lists its backends at least one must live; being alive is what it must say
// in any case.
func (l *Ladder) backends(ctx context.Context, load *signal.Observation) (Verdict, string) {
	o, err := l.Load(ctx)
	if err != nil {
		return failure(err)
	}
	*load = o
	healthy, known := o.Values[signal.Healthy].Get()
	if !known {
		return Unknown, "the engine does not say whether it is healthy"
	}
	if healthy != 1 {
		return Failed, "the engine says that it is not healthy"
	}
	if live, listed := o.Values[signal.ReadyReplicas].Get(); listed {
		if live < 1 {
			return Failed, "the engine lists no live backend"
		}
		return Passed, fmt.Sprintf("the engine lists %g live backends", live)
	}
	return Passed, "the engine answers"
}

func (l *Ladder) canary(ctx context.Context) (Verdict, string) {
	ctx, cancel := context.WithTimeout(ctx, l.limits.Canary)
	defer cancel()
	if err := l.engine.Canary(ctx); err != nil {
		return failure(err)
	}
	return Passed, "a query has touched storage"
}

// failure tells an answer of no from no answer: a time-out proves nothing, neither good nor bad.
func failure(err error) (Verdict, string) {
	text := err.Error()
	if len(text) > maxReasonBytes {
		text = text[:maxReasonBytes]
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return Unknown, text
	}
	return Failed, text
}

const maxReasonBytes = 300
