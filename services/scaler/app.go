package scaler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/kube"
	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/probe"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/scaler/demand"
	"github.com/pointsman/pointsman/services/scaler/follow"
)

// App is the scaler.
type App struct {
	*lifecycle.Group
	cfg     Config
	tel     *telemetry.Telemetry
	log     *slog.Logger
	deps    stream.Deps
	metrics *metrics

	demand   *demand.Demand
	facts    *facts
	follower *follow.Follower
	producer *stream.Producer
	consumer *stream.Consumer
	lagger   *kgo.Client
	kube     *kube.Client
	pools    []*pool
	leading  atomic.Bool
	addr     net.Addr
}

// Options are what a process that holds several services, or a test, hands in.
type Options struct {
	// Engines replaces the clients of the configured engines, by pool.
	Engines map[string]probe.Engine
	// MaxBytes says how large a record of a topic may be, see stream.Deps.
	MaxBytes func(topic string) int
}

var _ lifecycle.App = (*App)(nil)

// Run is the whole service in a process of its own.
func Run(ctx context.Context, cfg Config) error {
	return telemetry.Run(ctx, cfg.Telemetry, group, func(tel *telemetry.Telemetry) (lifecycle.App, error) {
		return New(ctx, cfg, tel, Options{})
	})
}

// New wires the scaler. On an error it stops what it has opened.
func New(ctx context.Context, cfg Config, tel *telemetry.Telemetry, opts Options) (_ *App, err error) {
	cfg.Group.Group, cfg.Group.Topics = group, []string{event.TopicDecisions}
	a := &App{
		Group: lifecycle.NewGroup(lifecycle.Options{}), cfg: cfg, tel: tel, log: tel.Log, metrics: newMetrics(tel.Registry), facts: newFacts(),
		deps: stream.Deps{
			Log: stream.Calm(tel.Log), Registry: tel.Registry, Tracer: tel.TracerProvider(), Propagator: tel.Propagator(), MaxBytes: opts.MaxBytes,
		},
		demand: demand.New(demand.Options{Grace: cfg.Timing.Grace, Unended: cfg.Timing.LookBack, KeepEnded: keepEnded}),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if _, err = tel.ServeAdmin(ctx, a.Group, cfg.Telemetry.Admin); err != nil {
		return nil, err
	}
	if a.kube, err = kube.New(cfg.Kube); err != nil {
		return nil, err
	}
	a.Close("kube client", a.kube.Close)
	if a.producer, err = stream.NewProducer(cfg.Kafka, a.deps, group); err != nil {
		return nil, err
	}
	a.Close("producer", func() error { a.producer.Close(); return nil })
	if a.lagger, err = stream.NewClient(cfg.Kafka, a.deps, "lag"); err != nil {
		return nil, err
	}
	a.Close("lag client", func() error { a.lagger.Close(); return nil })
	f := fold{kafka: cfg.Kafka, demand: a.demand, facts: a.facts, skipped: func(topic string, class stream.FaultClass) {
		a.metrics.skipped.WithLabelValues(topic, string(class)).Inc()
	}}
	a.follower = follow.New(cfg.Kafka, a.deps, "reader", f.record, stages(cfg.Timing.LookBack)...)
	if a.consumer, err = stream.NewConsumer(cfg.Kafka, a.deps, cfg.Group, a.assign); err != nil {
		return nil, err
	}
	if err = a.openPools(opts.Engines); err != nil {
		return nil, err
	}
	tel.Health.Check("topics", a.follower.Health)
	tel.Health.Check("kafka", a.producer.Ping)
	tel.Health.Check("custom resource", a.readable)
	return a, a.serveHTTP(ctx)
}

func (a *App) openPools(engines map[string]probe.Engine) error {
	for _, cfg := range a.cfg.Pools {
		engine, given := engines[cfg.Name]
		if !given {
			e, err := openEngine(cfg.Name, cfg.Engine)
			if err != nil {
				return err
			}
			a.Close("engine "+cfg.Name, e.Close)
			engine = e
		}
		a.pools = append(a.pools, &pool{
			cfg: cfg, timing: a.cfg.Timing, paused: a.cfg.Paused, control: a.kube, ladder: probe.New(engine, cfg.Probe.Limits), wishes: a.demand,
			proof: a.follower, leads: a.acts, publish: a.publish, metrics: a.metrics.of(cfg.Name),
			queued: func(now time.Time) signal.Value { return a.facts.queued(cfg.Name, now) },
			log:    a.log.With(telemetry.KeyCluster, cfg.Name), dirty: make(chan struct{}, 1), asked: make(chan struct{}, 1),
		})
	}
	return nil
}

// Start sets it going. The consumer starts last, so that Stop ends the acting first.
func (a *App) Start(ctx context.Context) error {
	a.Go(ctx, "topics", a.follower.Run)
	a.Go(ctx, "sweep", a.sweep)
	for _, p := range a.pools {
		a.Go(ctx, "pool "+p.cfg.Name, func(ctx context.Context) error {
			if a.caughtUp(ctx) {
				p.mu.Lock()
				p.wake = a.facts.wakeBefore(p.cfg.Name)
				p.mu.Unlock()
			}
			return p.run(ctx)
		})
	}
	a.Go(ctx, "consumer", func(ctx context.Context) error {
		err := a.consumer.Run(ctx)
		if errors.Is(err, stream.ErrFenced) {
			return errors.Join(lifecycle.ErrFenced, err)
		}
		return err
	})
	return nil
}

// caughtUp waits until the topics have been read once: what was measured before a restart is in them.
func (a *App) caughtUp(ctx context.Context) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !a.follower.Complete() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

func (a *App) lead(now bool) {
	a.leading.Store(now)
	value := 0.0
	if now {
		value = 1
	}
	a.metrics.leads.Set(value)
}

// acts says whether this instance acts: the group has chosen it, and it knows what the topics say.
func (a *App) acts() bool { return a.leading.Load() && a.follower.Complete() }

// Leads reports whether this instance acts.
func (a *App) Leads() bool { return a.acts() }

// publishTimeout bounds a write: the next observation says more.
const publishTimeout = 5 * time.Second

func (a *App) publish(ctx context.Context, o signal.Observation) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	data, err := event.Marshal(o)
	if err != nil {
		return err
	}
	key := o.Cluster + "/" + o.Source
	return a.producer.Send(ctx, stream.Message{
		Topic: event.TopicSignals, Key: key, Type: event.ClusterObserved, ID: fmt.Sprintf("%s/%d", key, o.At.UnixNano()),
		Subject: o.Cluster, Time: o.At, Data: data,
	})
}

// keepEnded is how long the end of a Task is remembered once the topics have been caught up with: they are read side by
// side then, seconds apart.
const keepEnded = 10 * time.Minute

// sweepEvery is how often Tasks past their deadlines are dropped, and the lag is read.
const sweepEvery = 5 * time.Second

func (a *App) sweep(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if a.follower.Complete() { // before that, an end may be read long before its beginning
				a.demand.Sweep(time.Now())
			}
			if lags, err := a.Lag(ctx); err == nil {
				records, _ := stream.TotalLag(lags)
				a.metrics.lag.Set(float64(records))
			}
		}
	}
}

// Lag is what the group has not heard of decisions. It counts from the start of the log where there is no commit, and
// reaches zero behind transaction markers.
func (a *App) Lag(ctx context.Context) ([]stream.Lag, error) {
	return stream.Lags(ctx, a.cfg.Kafka, a.lagger, group, event.TopicDecisions)
}

func (a *App) readable(context.Context) error {
	if !a.acts() {
		return nil // another instance reads it
	}
	for _, p := range a.pools {
		p.mu.Lock()
		err := p.readErr
		p.mu.Unlock()
		if err != nil {
			return fmt.Errorf("pool %s: %w", p.cfg.Name, err)
		}
	}
	return nil
}
