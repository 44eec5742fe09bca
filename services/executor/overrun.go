package executor

import (
	"context"
	"time"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// What became of an attempt over its bounds, as a metric label.
const (
	overrunStopped = "stopped"
	overrunLeft    = "left"
)

// scanBytes is the name under which a decision carries the estimate of the bytes to be read.
const scanBytes = "scanBytes"

// bounds are what the attempt may take before it is stopped in favour of another place. Only what may run again is bounded.
func (y *try) bounds() attempt.Bounds {
	c := y.p.app.cfg.Attempts.Overrun
	if c.Every == 0 || !y.t.current.ReadOnly || y.cluster == nil {
		return attempt.Bounds{}
	}
	var b attempt.Bounds
	if task := y.t.first.Task; c.SLAFactor > 0 && task.SubmittedAt != nil {
		b.SLA, b.Factor = task.SLA(0), c.SLAFactor
	}
	if bytes, known := y.t.current.Estimates[scanBytes].Get(); known && bytes > 0 {
		b.EstimatedBytes = int64(bytes)
		if c.EstimateFactor > 0 {
			b.ReadBytes = max(int64(bytes*c.EstimateFactor), int64(c.EstimateFloor))
		}
	}
	if c.Memory {
		b.MemoryBytes = int64(y.cluster.cfg.limits(y.target).MaxMemory)
	}
	return b
}

// seen is what the engine says of an attempt, or why it could not be asked.
type seen struct {
	run engine.Run
	err error
}

// watcher asks the engine for an attempt's progress: from time to time, one question at a time, and without making whoever waits
// for the attempt wait for the answer.
type watcher struct {
	y          *try
	wait, most time.Duration
	timer      *time.Timer
	answers    chan seen
}

// watch begins to ask after a while, and then ever more seldom. 0 never asks.
func (y *try) watch(first, most time.Duration) *watcher {
	w := &watcher{y: y, wait: first, most: most, answers: make(chan seen, 1)}
	if first > 0 {
		w.timer = time.NewTimer(first)
	}
	return w
}

// due fires when it is time to ask.
func (w *watcher) due() <-chan time.Time {
	if w.timer == nil {
		return nil
	}
	return w.timer.C
}

// ask sends the question. Its answer comes to answers, and the next one is due some time after it.
func (w *watcher) ask(ctx context.Context) {
	e, id, bound := w.y.cluster.engine, w.y.id, w.y.p.app.cfg.Attempts.LookUpTimeout
	w.y.p.app.leftovers.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, bound)
		defer cancel()
		run, err := e.Find(ctx, id)
		w.answers <- seen{run, err}
	})
}

func (w *watcher) again() {
	w.wait = min(2*w.wait, w.most)
	w.timer.Reset(w.wait)
}

// stop ends the asking; it may be called twice.
func (w *watcher) stop() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// watchProgress watches an attempt that runs, if there is anything to watch.
func (y *try) watchProgress() *watcher {
	every := y.p.app.cfg.Attempts.Overrun.Every
	if !y.bounds().Any() {
		every = 0
	}
	return y.watch(every, 5*every)
}

// progress takes what the engine says of an attempt that is not done.
func (y *try) progress(ctx context.Context, w *watcher, s seen) attempt.Event {
	w.again()
	if y.vanished(ctx, s) {
		return attempt.ConnectionLost
	}
	if s.err != nil || s.run.State != engine.RunActive {
		return "" // its answer will say more
	}
	if y.state != attempt.Running && y.state != attempt.Delivering {
		if s.run.Waiting {
			if y.state == attempt.Submitting {
				return attempt.EngineQueued
			}
			return ""
		}
		if s.run.Elapsed > 0 {
			if started := time.Now().Add(-s.run.Elapsed); started.After(y.times.started) {
				y.times.started = started
			}
		}
		return attempt.EngineStarted
	}
	p := attempt.Progress{Running: time.Since(y.times.started), ReadBytes: s.run.Stats.ReadBytes, PeakMemoryBytes: s.run.Stats.PeakMemoryBytes, Done: s.run.Progress}
	if at := y.t.first.Task.SubmittedAt; at != nil {
		p.Since = y.t.now().Sub(*at)
	}
	class, why := y.bounds().Overrun(p)
	if class == "" {
		return ""
	}
	if !y.elsewhere(class) {
		w.stop()
		y.p.app.metrics.overruns.WithLabelValues(y.label(), string(class), overrunLeft).Inc()
		y.log.InfoContext(ctx, "an attempt is over its bounds and goes on, since no other place is left for it", telemetry.KeyClass, string(class), telemetry.KeyReason, why)
		return ""
	}
	y.p.app.metrics.overruns.WithLabelValues(y.label(), string(class), overrunStopped).Inc()
	y.log.InfoContext(ctx, "an attempt is over its bounds and is stopped", telemetry.KeyClass, string(class), telemetry.KeyReason, why)
	f := failure.Of(class, why)
	y.failure, y.reach, y.engine = &f, failure.Answered, s.run.Stats
	return attempt.EstimateOverran
}

// vanished says that the engine has had no trace of it for a while, has not answered all that time, and that nothing of it can be on
// its way any more: a network that drops what it carries tells nobody, and the answer would be waited for until the Task's deadline.
// Of a write the answer is waited for: it may still come, and nothing else tells how it ended.
func (y *try) vanished(ctx context.Context, s seen) bool {
	if !y.t.current.ReadOnly || y.state == attempt.Delivering || s.err != nil || s.run.State != engine.RunUnknown {
		y.missing = time.Time{}
		return false
	}
	if y.missing.IsZero() {
		y.missing = time.Now()
	}
	if now := time.Now(); now.Sub(y.missing) < y.p.app.cfg.Attempts.LookUpTimeout || now.Before(y.settles(now)) {
		return false
	}
	y.log.WarnContext(ctx, "the engine has nothing more of an attempt that it has not answered; its connection is taken for lost")
	f := failure.Of(failure.SubmitUnknown, "the engine has nothing of it any more, and its answer never came")
	y.failure, y.reach = &f, failure.SentUnknown
	y.running.stop(errStopped) // nobody waits for it any more
	return true
}

// elsewhere says that the Task would not end with this attempt, and that the decision knows another place for it.
func (y *try) elsewhere(c failure.Class) bool {
	if len(y.t.candidates(y.target, c)) == 0 {
		return false
	}
	remedy, _, _ := y.remedy(c)
	return remedy != event.RemedyFail
}
