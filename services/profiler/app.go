package profiler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/history/migrate"
	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// App is the profiler.
type App struct {
	*lifecycle.Group
	cfg     Config
	log     *slog.Logger
	deps    stream.Deps
	metrics *metrics

	db       *history.DB
	writer   *history.Writer
	reader   *history.Reader
	producer *stream.Producer
	admin    *kgo.Client
	consumer *stream.Consumer

	memory      *memory
	sinks       map[string]*sink
	watched     []*watched
	pools       *pools
	complaints  *complaints
	wakeRollups chan struct{}
	console     net.Addr

	migrated, assigned, stored *telemetry.Gate
}

// Run is the whole service in a process of its own.
func Run(ctx context.Context, cfg Config) error {
	return telemetry.Run(ctx, cfg.Telemetry, group, func(tel *telemetry.Telemetry) (lifecycle.App, error) {
		return New(ctx, cfg, tel)
	})
}

// Option changes what New wires.
type Option func(*options)

type options struct {
	open func(EngineConfig) (engine.Engine, error)
}

// WithEngines makes New open engines by a function of the caller's.
func WithEngines(open func(EngineConfig) (engine.Engine, error)) Option {
	return func(o *options) { o.open = open }
}

// New wires the service straight down; on an error it stops what it has opened.
func New(ctx context.Context, cfg Config, tel *telemetry.Telemetry, opts ...Option) (_ *App, err error) {
	o := options{open: openEngine}
	for _, opt := range opts {
		opt(&o)
	}
	if len(cfg.Consumer.Topics) == 0 {
		cfg.Consumer.Topics = consumerDefaults().Topics
	}
	if err := config.Validate(cfg); err != nil {
		return nil, err
	}
	specs, err := topicadmin.Specs()
	if err != nil {
		return nil, err
	}
	a := &App{
		Group: lifecycle.NewGroup(lifecycle.Options{}), cfg: cfg, log: tel.Log, metrics: newMetrics(tel.Registry),
		deps: stream.Deps{
			Log: stream.Calm(tel.Log), Registry: tel.Registry, Tracer: tel.TracerProvider(), Propagator: tel.Propagator(), MaxBytes: topicadmin.MaxBytes(specs),
		},
		sinks: map[string]*sink{}, pools: newPools(), complaints: newComplaints(), wakeRollups: make(chan struct{}, 1),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if _, err = tel.ServeAdmin(ctx, a.Group, cfg.Telemetry.Admin); err != nil {
		return nil, err
	}
	a.migrated = tel.Health.Gate("schema", "the history's schema is not up yet")
	a.assigned = tel.Health.Gate("consumer", "no partitions assigned yet")
	a.stored = tel.Health.Gate("history", "nothing has been tried yet")
	a.stored.Open()
	a.memory = newMemory(int64(cfg.Sink.MaxBytes), a.metrics.held)
	for _, k := range kinds {
		a.sinks[k.topic] = newSink(k, cfg.Sink, cfg.Consumer.MaxSpan)
	}
	if err = a.openHistory(); err != nil {
		return nil, err
	}
	if err = a.openKafka(); err != nil {
		return nil, err
	}
	tel.Health.Check("records", a.nothingLost) // not before there is a consumer to ask: the admin server answers already
	for _, e := range cfg.Engines {
		eng, err := o.open(e)
		if err != nil {
			return nil, fmt.Errorf("opening the engines: %w", err)
		}
		a.Close("engine "+e.Name, eng.Close)
		a.watched = append(a.watched, &watched{cfg: e, engine: eng})
	}
	return a, nil
}

func (a *App) openHistory() (err error) {
	if a.db, err = history.Open(a.cfg.History); err != nil {
		return err
	}
	a.Close("history", a.db.Close)
	a.writer, a.reader = history.NewWriter(a.db), history.NewReader(a.db, 0)
	return nil
}

func (a *App) openKafka() (err error) {
	if a.producer, err = stream.NewProducer(a.cfg.Kafka, a.deps, group); err != nil {
		return err
	}
	a.Close("producer", func() error { a.producer.Close(); return nil })
	if a.admin, err = stream.NewClient(a.cfg.Kafka, a.deps, group+"-admin"); err != nil {
		return err
	}
	a.Close("admin client", func() error { a.admin.Close(); return nil })
	a.consumer, err = stream.NewConsumer(a.cfg.Kafka, a.deps, a.cfg.Consumer, a.assign)
	return err
}

// Start sets everything going, the consumer last, so that Stop ends it first. The history may be down: the signals do not wait for
// it, the events do.
func (a *App) Start(ctx context.Context) error {
	if err := a.serve(ctx); err != nil {
		return err
	}
	for _, w := range a.watched {
		a.Go(ctx, "watch "+w.cfg.Name, func(ctx context.Context) error { return a.watch(ctx, w) })
	}
	if len(a.watched) > 0 {
		a.Go(ctx, "pools", a.followPools)
	}
	a.Go(ctx, "loads", a.loads)
	a.Go(ctx, "history", a.storeEvents)
	return nil
}

// storeEvents brings the schema up, as soon as the history answers, and then moves events into it.
func (a *App) storeEvents(ctx context.Context) error {
	if err := a.migrate(ctx); err != nil {
		return err
	}
	a.migrated.Open()
	inner := lifecycle.NewGroup(lifecycle.Options{})
	inner.Go(ctx, "rollups", a.rollups)
	for _, s := range a.sinks {
		inner.Go(ctx, "sink "+s.topic, func(ctx context.Context) error { return a.flush(ctx, s) })
	}
	inner.Go(ctx, "consumer", a.consume)
	select {
	case <-ctx.Done():
	case <-inner.Done():
	}
	return errors.Join(inner.Err(), inner.Stop(context.WithoutCancel(ctx)))
}

// consume reads until the context ends. A process whose place in the group was taken says so by its exit code.
func (a *App) consume(ctx context.Context) error {
	err := a.consumer.Run(ctx)
	if errors.Is(err, stream.ErrFenced) {
		return errors.Join(lifecycle.ErrFenced, err)
	}
	return err
}

// nothingLost is a check that stays red once records were deleted before they were read: the history has a hole.
func (a *App) nothingLost(context.Context) error {
	if n := a.consumer.Lost(); n > 0 {
		return fmt.Errorf("%d records were deleted before they were read", n)
	}
	return nil
}

func (a *App) migrate(ctx context.Context) error {
	if !a.cfg.Migrate {
		return nil
	}
	return backoff.RetryNotify(func() error {
		_, err := migrate.Up(ctx, a.cfg.History)
		return err
	}, a.backOff(ctx), func(err error, next time.Duration) {
		a.migrated.Close(err.Error())
		a.log.WarnContext(ctx, "the history's schema can't be brought up yet", "again_in", next.Round(time.Millisecond).String(), telemetry.Err(err))
	})
}
