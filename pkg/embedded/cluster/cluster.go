package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// The resource that is served.
const (
	APIVersion = "disaggregated.cluster.doris.com/v1"
	Kind       = "DorisDisaggregatedCluster"
	plural     = "dorisdisaggregatedclusters"
)

// Where the options say nothing.
const (
	DefaultNamespace = "pointsman"
	DefaultName      = "lakehouse"
	DefaultAddr      = "127.0.0.1:0"
	defaultResync    = 500 * time.Millisecond
)

// PoolRunner runs a pool. Its methods are called from one goroutine, never two at once.
// A runner that also has `Alive() bool` is asked whether what it started still runs, so that the status can say it.
type PoolRunner interface {
	// Start returns once the pool's process runs. Its context ends when the pool is not wanted any more; the process
	// must outlive the context once Start has returned nil.
	Start(ctx context.Context) error
	// Stop ends the process and returns when it is gone.
	Stop(ctx context.Context) error
}

// Group is one compute group of the resource.
type Group struct {
	UniqueID string
	// Replicas at the start; nil leaves the field out, which the operator reads as 1.
	Replicas *int32
	// Runner runs the group while its replicas are above zero. However many replicas are asked for, it is one process.
	Runner PoolRunner
	// StartDelay is what a node takes to come up before the pool's process is started: part of a batch pool's physics.
	StartDelay time.Duration
}

// Options say what is served. Zero fields have defaults; Groups must be set.
type Options struct {
	Addr      string // loopback address, port 0 picks a free one
	Namespace string
	Name      string
	Groups    []Group
	// Token must be sent as a bearer token when it is set; ReadOnlyToken is one that may read but not patch.
	Token         string
	ReadOnlyToken string
	// MaxReplicas stands for an admission policy: a patch beyond it, or below zero, is refused with 422. 0 means none,
	// and then the server takes -1 as the real one does.
	MaxReplicas int32
	// Resync is how often the operator looks whether its pools still live.
	Resync time.Duration
	Logger *slog.Logger
}

// Server serves the resource and runs its operator.
type Server struct {
	opts  Options
	log   *slog.Logger
	store *store

	mu       sync.Mutex
	http     *http.Server
	listener net.Listener
	cancel   context.CancelFunc
	running  sync.WaitGroup
	serveErr error
}

// New checks the options and builds the resource; nothing is started yet.
func New(opts Options) (*Server, error) {
	if opts.Addr == "" {
		opts.Addr = DefaultAddr
	}
	if opts.Namespace == "" {
		opts.Namespace = DefaultNamespace
	}
	if opts.Name == "" {
		opts.Name = DefaultName
	}
	if opts.Resync <= 0 {
		opts.Resync = defaultResync
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if len(opts.Groups) == 0 {
		return nil, errors.New("a cluster needs at least one compute group")
	}
	seen := map[string]bool{}
	for _, g := range opts.Groups {
		switch {
		case g.UniqueID == "":
			return nil, errors.New("a compute group needs a unique id")
		case seen[g.UniqueID]:
			return nil, fmt.Errorf("compute group %q is there twice", g.UniqueID)
		case g.Runner == nil:
			return nil, fmt.Errorf("compute group %q has no runner", g.UniqueID)
		}
		seen[g.UniqueID] = true
	}
	st, err := newStore(opts)
	if err != nil {
		return nil, fmt.Errorf("building the custom resource: %w", err)
	}
	return &Server{opts: opts, log: opts.Logger, store: st}, nil
}

// Start listens and sets the operator going. The context bounds the start only.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return errors.New("the cluster is already started")
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", s.opts.Addr)
	if err != nil {
		return fmt.Errorf("listening for the custom resource on %s: %w", s.opts.Addr, err)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.listener, s.cancel = listener, cancel
	s.http = &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	server := s.http
	s.running.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.mu.Lock()
			s.serveErr = err
			s.mu.Unlock()
		}
	})
	for _, g := range s.opts.Groups {
		op := newOperator(s.store, g, s.opts.Resync, s.log)
		s.running.Go(func() { op.run(run) })
	}
	return nil
}

// URL is the server's base address, once it has started.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return ""
	}
	return "http://" + s.listener.Addr().String()
}

// Namespace and Name say which object is served.
func (s *Server) Namespace() string { return s.opts.Namespace }

// Name is the name of the served object.
func (s *Server) Name() string { return s.opts.Name }

// Writes counts the patches that changed the spec: the test of "one write".
func (s *Server) Writes() int64 { return s.store.writeCount() }

// Stop ends the operator, its pools and the listener. It may be called more than once.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	server, cancel := s.http, s.cancel
	s.mu.Unlock()
	if server == nil {
		return nil
	}
	cancel()
	err := server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("stopping the pools: %w", ctx.Err()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.serveErr)
}
