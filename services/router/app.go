// Package router turns requests into decisions: it reads Tasks, and failed attempts that want another place, gathers what is
// known of them, has route.Decide decide, and publishes the decision.
//
// It only decides. Running, ending and publishing Outcomes are the executor's; what a decision depends on beyond its Task is
// folded from topics (signals, budgets) or asked of history, in batches.
package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/trace"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/catalog"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/fingerprint/cache"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/shape/tidbast"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// App is a router.
type App struct {
	*lifecycle.Group
	cfg     Config
	tel     *telemetry.Telemetry
	log     *slog.Logger
	tracer  trace.Tracer
	metrics *metrics

	maxBytes     func(topic string) int
	decider      *decider
	producer     *stream.Producer
	inputs       *inputs
	owner        string // unique per process start
	keepers      *keepers
	ends         *lru.Cache[string, budget.Ended] // of Tasks with a session, by id
	signalsReady *telemetry.Gate
	budgetsReady *telemetry.Gate
	caughtUp     chan struct{}
	catchUp      func() // closes caughtUp, once
	signalsRead  chan struct{}
	readSignals  func() // closes signalsRead, once
	httpAddr     net.Addr
}

// Run is the whole service in a process of its own.
func Run(ctx context.Context, cfg Config) error {
	return telemetry.Run(ctx, cfg.Telemetry, "router", func(tel *telemetry.Telemetry) (lifecycle.App, error) {
		return New(ctx, cfg, tel)
	})
}

// New wires a router; Start sets it going. On an error it stops what it has opened.
func New(ctx context.Context, cfg Config, tel *telemetry.Telemetry) (_ *App, err error) {
	a := &App{
		Group: lifecycle.NewGroup(lifecycle.Options{}), cfg: cfg, tel: tel, log: stream.Calm(tel.Log), tracer: tel.Tracer("router"),
		metrics: newMetrics(tel.Registry), caughtUp: make(chan struct{}), owner: "router/" + ulid.Make().String(), keepers: newKeepers(),
	}
	if a.ends, err = newEnds(); err != nil {
		return nil, err
	}
	a.metrics.countSessions(tel.Registry, a.keepers.sessions)
	a.catchUp = sync.OnceFunc(func() { close(a.caughtUp) })
	a.signalsRead = make(chan struct{})
	a.readSignals = sync.OnceFunc(func() { close(a.signalsRead) })
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
		}
	}()
	specs, err := topicadmin.Specs()
	if err != nil {
		return nil, err
	}
	a.maxBytes = topicadmin.MaxBytes(specs)
	if _, err = tel.ServeAdmin(ctx, a.Group, cfg.Telemetry.Admin); err != nil {
		return nil, err
	}
	a.signalsReady = tel.Health.Gate("signals", "the signals topic is not read to its end yet")
	a.budgetsReady = tel.Health.Gate("budgets", "the budgets are not rebuilt yet")
	db, err := history.Open(cfg.History)
	if err != nil {
		return nil, fmt.Errorf("opening history: %w", err)
	}
	a.Close("history", db.Close)
	profiles, err := newProfiles(history.NewReader(db, 0), cfg.Profiles, a.log, a.metrics)
	if err != nil {
		return nil, err
	}
	a.Close("profiles", func() error { profiles.close(); return nil })
	texts, err := cache.New(cache.Default(), tidbast.Parse)
	if err != nil {
		return nil, err
	}
	a.Close("texts", func() error { texts.Close(); return nil })
	a.decider = &decider{
		texts:    texts,
		profiles: profiles,
		clusters: newClusters(), latches: newLatches(a.latchChanged), tenants: newTenants(a.metrics), metrics: a.metrics, clock: time.Now,
	}
	if cfg.Catalog.Folder != "" {
		a.decider.sizes = catalog.NewFolder(cfg.Catalog.Folder, cfg.Catalog.Schema, cfg.Catalog.MaxAge)
	}
	p, err := readPolicy(cfg.Policy)
	if err != nil {
		return nil, err
	}
	a.takePolicy(ctx, p)
	a.log.InfoContext(ctx, "policy loaded", "policy", p.Hash, "pools", len(p.Pools), "rules", len(p.Rules))
	if a.producer, err = stream.NewProducer(cfg.Kafka, a.deps(), "router"); err != nil {
		return nil, err
	}
	a.Close("producer", func() error { a.producer.Close(); return nil })
	a.inputs = &inputs{cfg: cfg.Kafka, write: a.producer.Start, log: a.log, metrics: a.metrics, clock: time.Now, on: cfg.Inputs.Enabled}
	if err = a.serveHTTP(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *App) deps() stream.Deps {
	return stream.Deps{
		Log: a.log, Registry: a.tel.Registry, Tracer: a.tel.TracerProvider(), Propagator: a.tel.Propagator(), MaxBytes: a.maxBytes,
	}
}

// Start sets the followers going and, once they have caught up, the consumer: a decision without what tenants have used in the last
// window would let them use it twice. The consumer starts last, so that Stop ends it first.
func (a *App) Start(ctx context.Context) error {
	a.Go(ctx, "signals", a.followSignals)
	a.Go(ctx, "accounts", a.followAccounts)
	if a.cfg.Inputs.Enabled {
		a.Go(ctx, "policy record", a.recordPolicies)
	}
	// The first connection costs more than a decision may wait: it is made before there is anything to decide.
	a.Go(ctx, "history connection", func(ctx context.Context) error {
		a.decider.profiles.lookupWithin(ctx, []string{"warm-up"}, queryTime)
		return nil
	})
	if a.cfg.Policy.File != "" && a.cfg.Policy.Reload > 0 {
		a.Go(ctx, "policy reload", a.watchPolicy)
	}
	cc := stream.DefaultConsumerConfig(group, event.TopicRequests, event.TopicAttempts)
	cc.OnLoss, cc.SessionTimeout = a.cfg.Group.OnLoss, a.cfg.Group.SessionTimeout
	cc.HeartbeatEvery = min(cc.HeartbeatEvery, cc.SessionTimeout/4)
	cc.RebalanceTimeout = min(cc.RebalanceTimeout, 4*cc.SessionTimeout) // who notices a death soon does not wait for the dead for long
	consumer, err := stream.NewConsumer(a.cfg.Kafka, a.deps(), cc, a.assign)
	if err != nil {
		return err
	}
	a.tel.Health.Check("consumer", func(context.Context) error {
		switch {
		case consumer.Lost() > 0:
			return fmt.Errorf("%d records were deleted before they were read", consumer.Lost())
		case consumer.Assigned() == 0:
			return errors.New("no partitions assigned yet")
		}
		return nil
	})
	a.Go(ctx, "consumer", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-a.caughtUp:
		}
		// Signals are waited for too, but not for ever: without them decisions go on, and say so.
		select {
		case <-ctx.Done():
			return nil
		case <-a.signalsRead:
		case <-time.After(signalsWait):
			a.log.WarnContext(ctx, "the signals are not read yet; deciding without them")
		}
		err := consumer.Run(ctx)
		if errors.Is(err, stream.ErrFenced) {
			return errors.Join(lifecycle.ErrFenced, err)
		}
		return err
	})
	return nil
}

// signalsWait is how long a start waits for the signals topic to be read to its end.
const signalsWait = 5 * time.Second

// serveHTTP serves POST /v1/explain.
func (a *App) serveHTTP(ctx context.Context) error {
	if a.cfg.HTTP.Address == "" {
		return nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", a.cfg.HTTP.Address)
	if err != nil {
		return fmt.Errorf("listening for explain requests: %w", err)
	}
	a.httpAddr = l.Addr()
	srv := &http.Server{Handler: a.handler(), ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelWarn)}
	a.Go(ctx, "http", func(context.Context) error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	a.OnStop("http listener", srv.Shutdown) // stopped before the goroutine that it ends
	return nil
}

// HTTPAddr is where POST /v1/explain is served, nil when it is not.
func (a *App) HTTPAddr() net.Addr { return a.httpAddr }
