package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/trace"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/executor/result"
	"github.com/pointsman/pointsman/services/executor/slotlog"
	"github.com/pointsman/pointsman/services/executor/watch"
)

// App is the executor.
type App struct {
	*lifecycle.Group
	cfg     Config
	log     *slog.Logger
	tracer  trace.Tracer
	deps    stream.Deps
	owner   string // unique per process start
	hooks   Hooks
	again   func() (Config, error)
	metrics *metrics

	clusters map[string]*cluster
	slots    *slotlog.Log
	producer *stream.Producer
	consumer *stream.Consumer
	watch    *watch.Watch
	results  *result.Store
	ready    *telemetry.Gate
	// leftovers are queries of attempts that were let go: they are read to their end, or to the client's.
	leftovers sync.WaitGroup
	// stopping are reads that were let go and are being stopped at the engine, which needs its client for that.
	stopping sync.WaitGroup
	arrivals atomic.Uint64
}

// Options are what a process that holds several services, or a test, hands in.
type Options struct {
	// Engines replaces the clients of the configured engines, by name.
	Engines map[string]engine.Engine
	// MaxBytes says how large a record of a topic may be; nil takes it from topics/.
	MaxBytes func(topic string) int
	Hooks    Hooks
	// Dialer replaces the network to Kafka, in tests.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
	// Again loads the configuration anew, so that caps can change while the process runs; nil never changes them.
	Again func() (Config, error)
}

// Run is the whole service in a process of its own. again loads its configuration anew.
func Run(ctx context.Context, cfg Config, again func() (Config, error)) error {
	return telemetry.Run(ctx, cfg.Telemetry, group, func(tel *telemetry.Telemetry) (lifecycle.App, error) {
		return New(ctx, cfg, tel, Options{Again: again})
	})
}

// goodbye is how long a broker that does not answer may hold up the stop. What matters is acknowledged by then, or read again by
// the next owner.
const goodbye = 2 * time.Second

// stopMargin is what stopping takes besides the grace of running attempts.
const stopMargin = 10 * time.Second

// New wires the executor. On an error it stops what it has opened.
func New(ctx context.Context, cfg Config, tel *telemetry.Telemetry, opts Options) (_ *App, err error) {
	cfg.Group.Group, cfg.Group.Topics = group, []string{event.TopicDecisions}
	a := &App{
		Group: lifecycle.NewGroup(lifecycle.Options{
			StopTimeout: cfg.Attempts.Grace + stopMargin, TotalTimeout: cfg.Attempts.Grace + 2*stopMargin,
		}),
		cfg: cfg, log: tel.Log, tracer: tel.Tracer("github.com/pointsman/pointsman/services/executor"), hooks: opts.Hooks, again: opts.Again,
		deps: stream.Deps{
			Log: stream.Calm(tel.Log), Registry: tel.Registry, Tracer: tel.TracerProvider(), Propagator: tel.Propagator(),
			Dialer: opts.Dialer, MaxBytes: opts.MaxBytes,
		},
		metrics: newMetrics(tel.Registry), clusters: map[string]*cluster{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if a.deps.MaxBytes == nil {
		specs, err := topicadmin.Specs()
		if err != nil {
			return nil, err
		}
		a.deps.MaxBytes = topicadmin.MaxBytes(specs)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	a.owner = host + "/" + ulid.Make().String()
	if _, err = tel.ServeAdmin(ctx, a.Group, cfg.Telemetry.Admin); err != nil {
		return nil, err
	}
	if a.results, err = result.Open(result.Config{
		Folder: cfg.Results.Folder, InlineBytes: int64(cfg.Results.Inline), MaxBytes: int64(cfg.Results.Max), Keep: cfg.Results.Keep,
	}); err != nil {
		return nil, err
	}
	if a.producer, err = stream.NewProducer(cfg.Kafka, a.deps, group); err != nil {
		return nil, err
	}
	a.OnStop("producer", func(ctx context.Context) error {
		defer a.producer.Close()
		ctx, cancel := context.WithTimeout(ctx, goodbye)
		defer cancel()
		return a.producer.Flush(ctx)
	})
	a.slots = slotlog.New(slotlog.Config{
		Owner: a.owner, Kafka: cfg.Kafka, Deps: a.deps, Log: tel.Log,
		Took: func(d time.Duration) { a.metrics.asked.Observe(d.Seconds()) },
	}, cfg.caps())
	if err = a.openClusters(opts.Engines); err != nil {
		return nil, err
	}
	a.watch = watch.New(cfg.Attempts.SignalAge)
	if a.consumer, err = stream.NewConsumer(cfg.Kafka, a.deps, cfg.Group, a.assign); err != nil {
		return nil, err
	}
	a.health(tel)
	return a, nil
}

// openClusters opens the configured engines. They are closed after the attempts have been let go, and after what is to be stopped
// has been: closing drops queries without killing them.
func (a *App) openClusters(given map[string]engine.Engine) error {
	a.await("queries that were let go", &a.leftovers)
	for _, cfg := range a.cfg.Engines {
		e, ok := given[cfg.Name]
		if !ok {
			var err error
			if e, err = OpenEngine(cfg); err != nil {
				return fmt.Errorf("opening engines: %w", err)
			}
		}
		c := newCluster(cfg, a.cfg.Attempts, e)
		a.clusters[cfg.Name] = c
		a.metrics.line(cfg.Name, c.line, a.slots)
		a.Close("engine "+cfg.Name, c.engine.Close)
	}
	a.await("reads that are stopped", &a.stopping)
	return nil
}

// await waits at the stop for what still goes on.
func (a *App) await(what string, wg *sync.WaitGroup) {
	a.OnStop(what, func(ctx context.Context) error {
		done := make(chan struct{})
		go func() {
			wg.Wait()
			close(done)
		}()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// Start sets the executor going. The consumer comes last, so that it is stopped first.
func (a *App) Start(ctx context.Context) error {
	a.Go(ctx, "signals", func(ctx context.Context) error { return a.watch.Run(ctx, a.cfg.Kafka, a.deps) })
	a.Go(ctx, "slots", a.slots.Run)
	if a.again != nil && a.cfg.Caps.Reload > 0 {
		a.Go(ctx, "caps", a.watchCaps)
	}
	a.Go(ctx, "result sweeper", a.sweep)
	a.Go(ctx, "consumer", a.consume)
	return nil
}

func (a *App) consume(ctx context.Context) error {
	err := a.consumer.Run(ctx)
	if errors.Is(err, stream.ErrFenced) {
		err = errors.Join(lifecycle.ErrFenced, err)
	}
	return err
}

// sweep removes expired results from time to time.
func (a *App) sweep(ctx context.Context) error {
	t := time.NewTicker(a.cfg.Results.Sweep)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-t.C:
			n, err := a.results.Sweep(now)
			if err != nil {
				a.log.WarnContext(ctx, "sweeping results", telemetry.Err(err))
			}
			if n > 0 {
				a.log.InfoContext(ctx, "removed expired results", "files", n)
			}
		}
	}
}

func (a *App) guard() ledger.Guard {
	return ledger.Guard{Leave: a.cfg.Attempts.GuardLeave, Settle: a.cfg.Attempts.GuardSettle}
}

// maxBytes is how large a record of a topic may be.
func (a *App) maxBytes(topic string) int {
	if n := a.deps.MaxBytes(topic); n > 0 {
		return n
	}
	return stream.DefaultMaxBytes
}
