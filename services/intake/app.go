package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/intake/access"
	"github.com/pointsman/pointsman/services/intake/board"
)

// App is the intake.
type App struct {
	*lifecycle.Group
	cfg      Config
	tel      *telemetry.Telemetry
	board    *board.Board
	reader   *reader
	producer *stream.Producer
	server   *server
	stopping chan struct{}
	listener net.Listener
}

var _ lifecycle.App = (*App)(nil)

// Run is the whole service in a process of its own.
func Run(ctx context.Context, cfg Config) error {
	return telemetry.Run(ctx, cfg.Telemetry, "intake", func(tel *telemetry.Telemetry) (lifecycle.App, error) {
		return New(ctx, cfg, tel)
	})
}

// New wires the service. On an error it stops what it has opened.
func New(ctx context.Context, cfg Config, tel *telemetry.Telemetry) (_ *App, err error) {
	a := &App{Group: lifecycle.NewGroup(lifecycle.Options{}), cfg: cfg, tel: tel, stopping: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if _, err = tel.ServeAdmin(ctx, a.Group, cfg.Telemetry.Admin); err != nil {
		return nil, err
	}
	gate, err := access.NewGate(cfg.Auth)
	if err != nil {
		return nil, fmt.Errorf("reading the tokens: %w", err)
	}
	limiter, err := access.NewLimiter(cfg.RateLimit)
	if err != nil {
		return nil, fmt.Errorf("making the rate limiter: %w", err)
	}
	results, err := openResults(cfg.Results.Folder)
	if err != nil {
		return nil, err
	}
	a.Close("result folder", results.close)

	specs, err := topicadmin.Specs()
	if err != nil {
		return nil, err
	}
	deps := stream.Deps{
		Log: stream.Calm(tel.Log), Registry: tel.Registry, Tracer: tel.TracerProvider(), Propagator: tel.Propagator(), MaxBytes: topicadmin.MaxBytes(specs),
	}
	if a.producer, err = stream.NewProducer(cfg.Kafka, deps, "intake"); err != nil {
		return nil, err
	}
	a.Close("producer", func() error { a.producer.Close(); return nil })
	a.board = board.New(board.Options{MaxBytes: int64(cfg.Tasks.MaxBytes), KeepFor: cfg.Tasks.KeepFor})
	a.reader = newReader(cfg, deps, a.board, time.Now)

	explainer := newExplainer(tel)
	a.Close("explain client", func() error { explainer.CloseIdleConnections(); return nil })
	a.server = &server{
		cfg: cfg, tel: tel, gate: gate, limiter: limiter, board: a.board, caughtUp: a.reader.caughtUp, producer: a.producer,
		results: results, explainer: explainer, metrics: newMetrics(tel.Registry, a.board),
		waiting: semaphore.NewWeighted(int64(cfg.HTTP.MaxWaiting)), now: time.Now, stopping: a.stopping,
	}
	tel.Health.Check("tasks", a.reader.health)
	tel.Health.Check("kafka", a.producer.Ping)
	return a, nil
}

// Start reads the topics and then serves, so that Stop ends serving first.
func (a *App) Start(ctx context.Context) error {
	a.Go(ctx, "topics", a.reader.run)
	a.Go(ctx, "board sweep", a.sweep)
	return a.serve(ctx)
}

// Addr is where the server listens, once it has started.
func (a *App) Addr() net.Addr {
	if a.listener == nil {
		return nil
	}
	return a.listener.Addr()
}

// Registry holds the service's metrics.
func (a *App) Registry() *prometheus.Registry { return a.tel.Registry }

// Ready reports whether the topics have been read up to now.
func (a *App) Ready() bool { return a.reader.caughtUp() }

func (a *App) serve(ctx context.Context) error {
	var err error
	if a.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", a.cfg.HTTP.Address); err != nil {
		return fmt.Errorf("listening for requests: %w", err)
	}
	srv := &http.Server{
		Handler:           a.server.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		// The longest answer is one that waits; event streams and result files set their own deadlines.
		WriteTimeout:   a.cfg.HTTP.MaxWait + time.Minute,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(a.tel.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan struct{})
	a.OnStop("http server", func(ctx context.Context) error {
		a.tel.Health.Drain("stopping")
		close(a.stopping) // whoever waits gets an answer
		err := srv.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, srv.Close())
		}
		<-served
		return err
	})
	go func() {
		defer close(served)
		err := a.listen(srv)
		if !errors.Is(err, http.ErrServerClosed) {
			a.Fail(fmt.Errorf("serving requests: %w", err))
		}
	}()
	a.tel.Log.InfoContext(ctx, "intake is open", "address", a.listener.Addr().String())
	return nil
}

func (a *App) listen(srv *http.Server) error {
	if a.cfg.HTTP.CertFile != "" {
		return srv.ServeTLS(a.listener, a.cfg.HTTP.CertFile, a.cfg.HTTP.KeyFile)
	}
	return srv.Serve(a.listener)
}

// sweepEvery is how often old tasks are let go when nothing happens.
const sweepEvery = time.Minute

func (a *App) sweep(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			a.board.Sweep(time.Now())
		}
	}
}
