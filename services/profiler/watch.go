package profiler

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// engineSource is the name under which what an engine says of itself is published.
const engineSource = "engine"

// watched is one engine under watch.
type watched struct {
	cfg    EngineConfig
	engine engine.Engine
	// canary is what the last canary said, and when it was sent.
	canary   error
	canaryAt time.Time
	// told is the state that was logged last, and ever says that it was healthy once.
	told state
	ever bool
}

// state is what a log line says of an engine.
type state string

const (
	healthy   state = "healthy"
	quiet     state = "quiet" // nobody listens, and that may be meant
	unhealthy state = "unhealthy"
)

// watch asks one engine for its load and its health until the context ends.
func (a *App) watch(ctx context.Context, w *watched) error {
	tick := time.NewTicker(a.cfg.Watch.Every)
	defer tick.Stop()
	for {
		a.publish(ctx, a.observe(ctx, w))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// observe makes an observation of an engine. It is healthy when it answers and its newest canary came back; what it can't tell is
// absent.
func (a *App) observe(ctx context.Context, w *watched) signal.Observation {
	asked, cancel := context.WithTimeout(ctx, a.cfg.Watch.Timeout)
	defer cancel()
	o, err := w.engine.Observe(asked)
	o.Cluster, o.Source = w.cfg.Name, engineSource
	if o.At.IsZero() {
		o.At = time.Now().UTC()
	}
	if o.Values == nil {
		o.Values = map[signal.Name]signal.Value{}
	}
	for name, v := range o.Values {
		v.Source = engineSource
		o.Values[name] = v
	}
	if err == nil && time.Since(w.canaryAt) >= a.cfg.Watch.CanaryEvery {
		proof, done := context.WithTimeout(ctx, a.cfg.Watch.Timeout)
		w.canaryAt = time.Now()
		w.canary = w.engine.Canary(proof)
		done()
	}
	if err == nil {
		err = w.canary
	} else {
		w.canaryAt = time.Time{} // whoever comes back proves itself at once
	}
	if ctx.Err() == nil {
		a.tell(ctx, w, err)
	}
	o.Values[signal.Healthy] = signal.OfFlag(err == nil, engineSource, o.At)
	return o
}

// tell logs a change of health, once. That nobody listens is no warning where the pool sleeps by the scaler's word, and where nobody
// has listened yet: a pool that can sleep starts asleep, and one that wakes up is refused until it is there.
func (a *App) tell(ctx context.Context, w *watched, err error) {
	if err != nil {
		a.metrics.observeErrors.WithLabelValues(w.cfg.Name).Inc()
	}
	now := unhealthy
	asleep := false
	switch {
	case err == nil:
		now = healthy
	case errors.Is(err, syscall.ECONNREFUSED):
		if asleep = a.pools.asleep(w.cfg.Name); asleep || !w.ever || w.told == quiet {
			now = quiet
		}
	}
	w.ever = w.ever || now == healthy
	if now == w.told {
		return
	}
	w.told = now
	switch {
	case now == healthy:
		a.log.InfoContext(ctx, "the cluster is healthy", telemetry.KeyCluster, w.cfg.Name)
	case asleep:
		a.log.InfoContext(ctx, "the cluster sleeps", telemetry.KeyCluster, w.cfg.Name)
	case now == quiet:
		a.log.InfoContext(ctx, "the cluster does not answer yet", telemetry.KeyCluster, w.cfg.Name, telemetry.Err(err))
	default:
		a.log.WarnContext(ctx, "the cluster is not healthy", telemetry.KeyCluster, w.cfg.Name, telemetry.Err(err))
	}
}

// publish sends an observation. One that can't be sent is dropped: the next one says more.
func (a *App) publish(ctx context.Context, o signal.Observation) {
	if ctx.Err() != nil {
		return
	}
	sending, cancel := context.WithTimeout(ctx, a.cfg.Watch.Timeout)
	defer cancel()
	data, err := event.Marshal(o)
	if err == nil {
		key := o.Cluster + "/" + o.Source
		err = a.producer.Send(sending, stream.Message{
			Topic: event.TopicSignals, Key: key, Type: event.ClusterObserved, ID: fmt.Sprintf("%s/%d", key, o.At.UnixNano()),
			Subject: o.Cluster, Time: o.At, Data: data,
		})
	}
	switch {
	case err == nil:
		a.metrics.signals.WithLabelValues(o.Source).Inc()
	case ctx.Err() == nil:
		a.metrics.signalErrors.WithLabelValues(o.Source).Inc()
		a.log.WarnContext(ctx, "a signal could not be published", telemetry.KeyCluster, o.Cluster, "source", o.Source, telemetry.Err(err))
	}
}
