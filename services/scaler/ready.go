package scaler

import (
	"context"
	"time"

	"github.com/pointsman/pointsman/pkg/probe"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// wakeTime is how long the pool takes from the raise to serve-ready: an average in which the newest time weighs most.
type wakeTime struct {
	ms    float64
	known bool
	at    time.Time
}

// wakeWeight is the weight of the newest time.
const wakeWeight = 0.3

func (w *wakeTime) measured(d time.Duration, at time.Time) {
	ms := float64(d.Milliseconds())
	if w.known {
		ms = wakeWeight*ms + (1-wakeWeight)*w.ms
	}
	w.ms, w.known, w.at = ms, true, at
}

// value is absent before the first wake: nobody knows how long that will take.
func (w wakeTime) value() signal.Value {
	if !w.known {
		return signal.Missing(group)
	}
	return signal.Of(w.ms, signal.Millis, group, w.at)
}

// probeLoop climbs the ladder while there is something to climb.
func (p *pool) probeLoop(ctx context.Context) {
	for {
		p.mu.Lock()
		wait := p.cfg.Probe.Every
		if !p.ready {
			wait = p.cfg.Probe.WakeEvery
		}
		// With the control plane away its last word stands: the ladder then stops at its first layer, and says so.
		pods := probe.Pods{Wanted: int(p.group.Replicas()), Available: p.available(), Observed: p.observed}
		seen := !p.readAt.IsZero()
		p.mu.Unlock()
		if p.leads() && seen && pods.Wanted > 0 {
			report := p.ladder.Climb(ctx, pods)
			if ctx.Err() != nil {
				return
			}
			p.judge(ctx, report, time.Now())
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-p.asked:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// climbNow has the ladder climbed without waiting for its turn.
func (p *pool) climbNow() {
	select {
	case p.asked <- struct{}{}:
	default:
	}
}

// judge takes a report. A failed layer takes readiness away at once. An unanswered one does not, for a while: a time-out
// proves nothing. And it never gives it.
func (p *pool) judge(ctx context.Context, report probe.Report, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.group.Replicas() <= 0 {
		return // it was put to sleep meanwhile
	}
	p.report = report
	stuck, isStuck := report.Stuck()
	switch {
	case !isStuck:
		if !p.ready {
			p.becameReady(ctx, now)
		}
		p.ready, p.wasOnce, p.unsure, p.unknown = true, true, false, time.Time{}
	case stuck.Verdict == probe.Failed:
		if p.ready {
			p.log.WarnContext(ctx, "the pool is not ready any more", "layer", string(stuck.Layer), "why", stuck.Reason)
		}
		p.ready, p.unsure, p.unknown = false, false, time.Time{}
	case p.ready:
		if p.unknown.IsZero() {
			p.unknown = now
		}
		if now.Sub(p.unknown) > p.cfg.HoldUnknown {
			p.ready, p.unsure = false, true
			p.log.WarnContext(ctx, "whether the pool is ready is not known any more", "layer", string(stuck.Layer), "why", stuck.Reason)
		}
	}
	p.metrics.climbed(report, p.stuckFor(now))
	if over := p.stuckFor(now); isStuck && over > p.cfg.WakeTimeout {
		p.log.WarnContext(ctx, "the pool does not become ready", "layer", string(stuck.Layer), "why", stuck.Reason, "for", over.Round(time.Second))
	}
	p.poke()
}

// stuckFor is how long the pool has been on its way up.
func (p *pool) stuckFor(now time.Time) time.Duration {
	if p.woken.IsZero() {
		return 0
	}
	return now.Sub(p.woken)
}

func (p *pool) becameReady(ctx context.Context, now time.Time) {
	if p.woken.IsZero() { // it was up when we came, or has only stumbled
		p.log.InfoContext(ctx, "the pool is ready")
		return
	}
	took := now.Sub(p.woken)
	p.wake.measured(took, now)
	p.metrics.wake.Observe(took.Seconds())
	p.woken = time.Time{}
	p.log.InfoContext(ctx, "the pool is ready", "after", took.Round(time.Millisecond))
}

// serves says whether the pool takes work now. The lock is held.
func (p *pool) serves() bool { return p.ready && p.draining.IsZero() && p.group.Replicas() > 0 }

// observation is what is published. What is not known is absent. The lock is held.
func (p *pool) observation(now time.Time) signal.Observation {
	flag := func(is bool) signal.Value { return signal.OfFlag(is, group, now) }
	o := signal.Observation{Cluster: p.cfg.Name, Source: group, At: now.UTC(), Values: map[signal.Name]signal.Value{
		signal.Replicas: p.replicas(), signal.ReadyReplicas: p.available(), signal.WakeMs: p.wake.value(),
		signal.Ready: signal.Missing(group), signal.Healthy: signal.Missing(group),
	}}
	replicas, known := p.replicas().Get()
	switch {
	case p.serves():
		o.Values[signal.Ready] = flag(true)
	case p.unsure:
	case known || p.wasOnce || !p.draining.IsZero():
		o.Values[signal.Ready] = flag(false)
	}
	switch {
	case known && replicas <= 0: // nobody asks a pool that sleeps, so nobody knows
	case p.report.Of(probe.Backends).Verdict == probe.Passed:
		o.Values[signal.Healthy] = flag(true)
	case p.wasOnce && p.report.Of(probe.Backends).Verdict == probe.Failed:
		o.Values[signal.Healthy] = flag(false)
	}
	return o
}

// publishLoop publishes on every change, and often enough that what was published does not grow old.
func (p *pool) publishLoop(ctx context.Context) {
	var last signal.Observation
	var at time.Time
	tick := time.NewTicker(p.timing.PublishEvery / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.dirty:
		case <-tick.C:
		}
		now := time.Now()
		open := p.wishes.Open(p.cfg.Name)
		p.mu.Lock()
		o, seen := p.observation(now), !p.readAt.IsZero() || p.readErr != nil
		p.metrics.level(o, open, now)
		p.mu.Unlock()
		if !p.leads() || !seen || (sameFacts(o, last) && now.Sub(at) < p.timing.PublishEvery-p.timing.PublishEvery/10) {
			continue
		}
		if err := p.publish(ctx, o); err != nil {
			if ctx.Err() == nil {
				p.log.WarnContext(ctx, "signals could not be published", telemetry.Err(err))
			}
			continue
		}
		last, at = o, now
	}
}

// sameFacts compares what two observations say, not when.
func sameFacts(a, b signal.Observation) bool {
	if len(a.Values) != len(b.Values) {
		return false
	}
	for name, v := range a.Values {
		w := b.Values[name]
		x, _ := v.Last()
		y, _ := w.Last()
		if v.State() != w.State() || x != y {
			return false
		}
	}
	return true
}
