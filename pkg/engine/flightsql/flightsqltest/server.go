// Package flightsqltest is a small Arrow Flight SQL server in front of an embedded ClickHouse engine, for tests.
//
// A statement starts when its rows are asked for, and streams as record batches at its reader's pace. CancelFlightInfo, a stream that
// is dropped and the action that kills by an attempt id all stop it at the engine. What the engine says of an error becomes a status
// of gRPC. The actions by which a server can be asked for an attempt are there, unless they are left out: then it is a server like
// any other.
package flightsqltest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	adapter "github.com/pointsman/pointsman/pkg/engine/flightsql"
)

// Config says what kind of server to start.
type Config struct {
	// Engine is the URL of the embedded engine.
	Engine string
	// Plain leaves out what only a server which knows pointsman has: the actions, and the headers of an attempt.
	Plain bool
	// User and Password are what a client must log in with by a handshake. With neither set anyone may come.
	User, Password string
	// Options are gRPC's, such as credentials.
	Options []grpc.ServerOption
}

// unfetchedFor is how long a statement is kept whose rows nobody asks for.
const unfetchedFor = 10 * time.Second

// Server is a running server.
type Server struct {
	flightsql.BaseServer
	cfg    Config
	engine engine
	addr   string
	group  sync.WaitGroup

	mu         sync.Mutex
	grpc       *grpc.Server
	statements map[string]*statement // by handle
	tokens     map[string]bool
}

// statement is one that waits for its reader, or runs.
type statement struct {
	handle  string
	attempt string // or "", for a client that names none
	query   query
	began   time.Time
	expires *time.Timer

	mu      sync.Mutex
	running bool
	stop    context.CancelFunc // of a running one
	over    chan struct{}
}

// Start starts a server, and stops it at the end of the test.
func Start(t testing.TB, cfg Config) *Server {
	t.Helper()
	s := &Server{cfg: cfg, engine: newEngine(cfg.Engine), statements: map[string]*statement{}, tokens: map[string]bool{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = l.Addr().String()
	s.serve(l)
	t.Cleanup(func() {
		s.serving().Stop()
		s.group.Wait()
		s.engine.close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, st := range s.statements {
			st.expires.Stop()
		}
	})
	return s
}

func (s *Server) serve(l net.Listener) {
	options := append([]grpc.ServerOption{grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream)}, s.cfg.Options...)
	g := grpc.NewServer(options...)
	flight.RegisterFlightServiceServer(g, &service{FlightServer: flightsql.NewFlightServer(s), server: s})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grpc = g
	s.group.Go(func() { _ = g.Serve(l) })
}

func (s *Server) serving() *grpc.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grpc
}

// Restart is what a server that dies is to its clients: all connections are gone at once, nobody listens during what happens meanwhile,
// and then one listens at the same address that knows nothing of before.
func (s *Server) Restart(t testing.TB, meanwhile func()) {
	t.Helper()
	s.serving().Stop()
	meanwhile()
	s.mu.Lock()
	for _, st := range s.statements {
		st.expires.Stop()
	}
	clear(s.statements)
	s.mu.Unlock()
	l, err := net.Listen("tcp", s.addr)
	require.NoError(t, err)
	s.serve(l)
}

// Addr is where it listens.
func (s *Server) Addr() string { return s.addr }

// add registers a statement that waits for its reader. An attempt has one at a time.
func (s *Server) add(ctx context.Context, sql string) (*statement, error) {
	st := &statement{handle: uuid.NewString(), query: queryOf(ctx, sql, s.cfg.Plain), began: time.Now(), over: make(chan struct{})}
	md, _ := metadata.FromIncomingContext(ctx)
	if ids := md.Get(adapter.HeaderAttempt); len(ids) > 0 && !s.cfg.Plain {
		st.attempt = ids[0]
	}
	st.query.id = st.handle
	if st.attempt != "" {
		st.query.id = st.attempt
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.attempt != "" && s.byAttempt(st.attempt) != nil {
		return nil, duplicate(st.attempt)
	}
	s.statements[st.handle] = st
	st.expires = time.AfterFunc(unfetchedFor, func() { s.drop(st) })
	return st, nil
}

func duplicate(attempt string) error {
	refusal := status.Newf(codes.AlreadyExists, "the attempt %s has a statement here", attempt)
	detailed, err := refusal.WithDetails(&errdetails.ErrorInfo{Domain: adapter.ErrorDomain, Reason: adapter.ReasonDuplicate})
	if err != nil {
		return refusal.Err()
	}
	return detailed.Err()
}

func (s *Server) byAttempt(attempt string) *statement {
	for _, st := range s.statements {
		if st.attempt == attempt {
			return st
		}
	}
	return nil
}

// begin makes a statement one that runs; it runs once.
func (s *Server) begin(ctx context.Context, handle string) (context.Context, *statement, error) {
	s.mu.Lock()
	st := s.statements[handle]
	s.mu.Unlock()
	if st == nil {
		return nil, nil, status.Error(codes.NotFound, "there is no such statement, or not any more")
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.running || !st.expires.Stop() {
		return nil, nil, status.Error(codes.FailedPrecondition, "the statement runs already, or was dropped")
	}
	st.running = true
	ctx, st.stop = context.WithCancel(ctx)
	return ctx, st, nil
}

// end forgets a statement that is over.
func (s *Server) end(st *statement) {
	st.stop()
	s.mu.Lock()
	delete(s.statements, st.handle)
	s.mu.Unlock()
	close(st.over)
}

// drop forgets a statement that never ran, and says whether it did not.
func (s *Server) drop(st *statement) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.running {
		return false
	}
	st.running = true // so that nobody begins it
	st.expires.Stop()
	s.mu.Lock()
	delete(s.statements, st.handle)
	s.mu.Unlock()
	return true
}

// cancel stops a statement and waits until the engine has ended it.
func (s *Server) cancel(ctx context.Context, st *statement) error {
	if s.drop(st) {
		return nil
	}
	st.mu.Lock()
	stop := st.stop
	st.mu.Unlock()
	if stop == nil { // dropped a moment ago
		return nil
	}
	// The engine first, so that it says itself that it was stopped; one that waits for its reader does not listen.
	if err := s.engine.kill(ctx, st.query.id); err != nil {
		return err
	}
	stop()
	select {
	case <-st.over:
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		running, err := s.engine.processes(ctx, st.query.id)
		if err != nil || len(running) == 0 {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}
