package scaler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pointsman/pointsman/pkg/capacity"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/kube"
	"github.com/pointsman/pointsman/pkg/probe"
	"github.com/pointsman/pointsman/pkg/signal"
)

// control is the custom resource; it is kube.Client.
type control interface {
	Get(ctx context.Context) (kube.Cluster, error)
	Scale(ctx context.Context, uniqueID string, decide func(kube.Group) (int32, bool)) (kube.Result, error)
}

// ladder asks the pool's engine; it is probe.Ladder.
type ladder interface {
	Climb(ctx context.Context, pods probe.Pods) probe.Report
	Load(ctx context.Context) (signal.Observation, error)
}

// wishes are the Tasks that want pools; it is demand.Demand.
type wishes interface {
	Open(cluster string) int
	LastWork(cluster string) time.Time
	Changed() <-chan struct{}
}

// proof says how far the topics have been read; it is follow.Follower.
type proof interface {
	Complete() bool
	Verify(ctx context.Context) error
}

// pool keeps one pool.
type pool struct {
	cfg     PoolConfig
	timing  TimingConfig
	paused  bool
	control control
	ladder  ladder
	wishes  wishes
	proof   proof
	// queued is what others report of the engine's queue.
	queued func(now time.Time) signal.Value
	// leads says whether this instance acts.
	leads   func() bool
	publish func(ctx context.Context, o signal.Observation) error
	metrics *poolMetrics
	log     *slog.Logger

	mu sync.Mutex
	state
	dirty chan struct{} // holds a token when there may be something new to publish
	asked chan struct{} // holds a token when the ladder should be climbed now
}

// state is what is known of the pool, and what was announced.
type state struct {
	firstSeen time.Time
	// group is the pool in the custom resource, as it was read at readAt; readErr is set while it can't be read.
	group    kube.Group
	observed bool
	readAt   time.Time
	readErr  error

	report  probe.Report
	ready   bool // all layers have passed, and none has failed since
	wasOnce bool // it was ready since it was last at zero
	unknown time.Time
	unsure  bool // a ready pool of which nothing is known for too long

	lastRaise time.Time
	woken     time.Time // when it was raised from zero, until it is ready
	draining  time.Time
	wake      wakeTime
	waiting   []signal.Value
	readQueue time.Time
	plan      capacity.Plan
}

// replicas are what the control plane was told, or absent.
func (s *state) replicas() signal.Value {
	if s.readErr != nil || s.readAt.IsZero() {
		return signal.Missing(group)
	}
	return signal.Of(float64(s.group.Replicas()), signal.Count, group, s.readAt)
}

// available are the live replicas by the operator's word, or absent.
func (s *state) available() signal.Value {
	if s.readErr != nil || s.group.Status == nil || s.group.Status.Available == nil {
		return signal.Missing(group)
	}
	return signal.Of(float64(*s.group.Status.Available), signal.Count, group, s.readAt)
}

// run plans, probes and publishes until the context ends.
func (p *pool) run(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() { p.planLoop(ctx) })
	all.Go(func() { p.probeLoop(ctx) })
	all.Go(func() { p.publishLoop(ctx) })
	all.Wait()
	return nil
}

// stepGap is the least time between two plans.
const stepGap = 20 * time.Millisecond

func (p *pool) planLoop(ctx context.Context) {
	tick := time.NewTicker(p.timing.Every)
	defer tick.Stop()
	for {
		changed := p.wishes.Changed()
		if p.leads() {
			p.step(ctx)
		}
		select { // a hundred Tasks a second are no reason to read the custom resource as often
		case <-ctx.Done():
			return
		case <-time.After(stepGap):
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-tick.C:
		}
	}
}

// step reads the custom resource, plans, and carries the plan out.
func (p *pool) step(ctx context.Context) {
	p.read(ctx)
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	p.mu.Lock()
	in := p.input(now)
	plan := in.Next()
	p.note(ctx, plan)
	p.mu.Unlock()
	switch plan.Action {
	case capacity.Raise:
		p.raise(ctx, plan)
	case capacity.Lower:
		p.lower(ctx, plan)
	case capacity.Drain:
		p.set(func(s *state) { s.draining = now })
	case capacity.Undrain:
		p.set(func(s *state) { s.draining = time.Time{} })
	case capacity.Hold:
	}
}

// read takes the custom resource in.
func (p *pool) read(ctx context.Context) {
	cluster, err := p.control.Get(ctx)
	var group kube.Group
	if err == nil {
		group, err = cluster.Group(p.cfg.ComputeGroup)
	}
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if (err == nil) != (p.readErr == nil) || p.readAt.IsZero() {
		p.logRead(ctx, group, err)
	}
	p.readErr = err
	if err == nil {
		p.take(group, cluster.Observed())
	}
}

// take notes the pool as it is in the custom resource. A pool at zero has nothing left to be ready or draining.
func (p *pool) take(g kube.Group, observed bool) {
	before, was := p.group.Replicas(), !p.readAt.IsZero()
	p.group, p.observed, p.readAt = g, observed, time.Now()
	if g.Replicas() <= 0 {
		p.report, p.ready, p.wasOnce, p.unsure = probe.Report{}, false, false, false
		p.unknown, p.woken, p.draining = time.Time{}, time.Time{}, time.Time{}
	}
	if !was || before != g.Replicas() {
		p.poke()
	}
}

// input is what the plan depends on. The lock is held.
func (p *pool) input(now time.Time) capacity.Input {
	if p.firstSeen.IsZero() {
		p.firstSeen = now
	}
	if now.Sub(p.readQueue) >= p.timing.QueueEvery {
		p.readQueue = now
		p.waiting = append(p.waiting, p.queued(now))
		if len(p.waiting) > keptReadings {
			p.waiting = p.waiting[1:]
		}
	}
	fresh := 3 * p.cfg.Probe.Every
	in := capacity.Input{
		Now: now, Spec: p.cfg.spec(), Paused: p.paused, Replicas: p.replicas(), Open: signal.Missing(group),
		Running: p.report.Load.Values[signal.Running].Aged(now, fresh), Queued: p.report.Load.Values[signal.Queued].Aged(now, fresh),
		Waiting: p.waiting, ScaleHelps: p.cfg.RaiseOnQueue, LastRaise: p.lastRaise, Up: p.woken.IsZero(), Draining: p.draining, LastWork: p.firstSeen,
	}
	if p.proof.Complete() {
		open := p.wishes.Open(p.cfg.Name)
		in.Open = signal.Of(float64(open), signal.Count, group, now)
		if last := p.wishes.LastWork(p.cfg.Name); !last.IsZero() {
			in.LastWork = last
		}
		if open > 0 {
			in.LastWork = now
		}
	}
	if in.LastWork.After(now) {
		in.LastWork = now // a clock that is ahead must not keep the pool awake
	}
	return in
}

const keptReadings = 8

// note keeps the plan, and says so when it is another one.
func (p *pool) note(ctx context.Context, plan capacity.Plan) {
	before := p.plan
	p.plan = plan
	p.metrics.planned(plan)
	if before.Action == plan.Action && before.Reason.Code == plan.Reason.Code {
		return
	}
	level := slog.LevelDebug
	switch {
	case plan.Alarm:
		level = slog.LevelWarn
	case plan.Action != capacity.Hold:
		level = slog.LevelInfo
	}
	p.log.Log(ctx, level, "planned", "action", string(plan.Action), "replicas", plan.Replicas, "reason", plan.Reason.Code, "why", plan.Reason.Text)
}

// set changes the state and has it published.
func (p *pool) set(change func(*state)) {
	p.mu.Lock()
	change(&p.state)
	p.mu.Unlock()
	p.poke()
}

// poke has the publisher look whether there is something new.
func (p *pool) poke() {
	select {
	case p.dirty <- struct{}{}:
	default:
	}
}

// Status is what is shown of a pool.
type Status struct {
	Pool          string        `json:"pool"`
	ComputeGroup  string        `json:"computeGroup"`
	Leads         bool          `json:"leads"`
	Replicas      signal.Value  `json:"replicas"`
	ReadyReplicas signal.Value  `json:"readyReplicas"`
	ServeReady    bool          `json:"serveReady"`
	Draining      bool          `json:"draining"`
	OpenTasks     int           `json:"openTasks"`
	WakeMs        signal.Value  `json:"wakeMs"`
	Layers        []LayerStatus `json:"layers"`
	Plan          PlanStatus    `json:"plan"`
	Error         string        `json:"error,omitempty"`
}

// LayerStatus is one rung of the readiness ladder.
type LayerStatus struct {
	Layer   probe.Layer   `json:"layer"`
	Verdict probe.Verdict `json:"verdict"`
	Reason  string        `json:"reason"`
}

// PlanStatus is the newest plan.
type PlanStatus struct {
	Action   capacity.Action `json:"action"`
	Replicas int             `json:"replicas"`
	Reason   event.Reason    `json:"reason"`
	Alarm    bool            `json:"alarm"`
}

func (p *pool) status() Status {
	leads, open := p.leads(), p.wishes.Open(p.cfg.Name)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{
		Pool: p.cfg.Name, ComputeGroup: p.cfg.ComputeGroup, Leads: leads, Replicas: p.replicas(), ReadyReplicas: p.available(),
		ServeReady: p.serves(), Draining: !p.draining.IsZero(), OpenTasks: open, WakeMs: p.wake.value(),
		Plan: PlanStatus{p.plan.Action, p.plan.Replicas, p.plan.Reason, p.plan.Alarm},
	}
	for _, l := range probe.Layers() {
		c := p.report.Of(l)
		s.Layers = append(s.Layers, LayerStatus{l, c.Verdict, c.Reason})
	}
	if p.readErr != nil {
		s.Error = p.readErr.Error()
	}
	return s
}
