package flightsqltest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	adapter "github.com/pointsman/pointsman/pkg/engine/flightsql"
)

// service adds to Flight SQL what is not in it: logins, and the actions by which an attempt is asked for.
type service struct {
	flight.FlightServer
	server *Server
}

var actions = []string{adapter.ActionFind, adapter.ActionKill, adapter.ActionLoad}

// ListActions lists Flight SQL's actions, and those of the adapter's protocol.
func (s *service) ListActions(e *flight.Empty, stream flight.FlightService_ListActionsServer) error {
	if !s.server.cfg.Plain {
		for _, a := range actions {
			if err := stream.Send(&flight.ActionType{Type: a}); err != nil {
				return err
			}
		}
	}
	return s.FlightServer.ListActions(e, stream)
}

// DoAction answers the actions of the adapter's protocol, and hands on all others.
func (s *service) DoAction(a *flight.Action, stream flight.FlightService_DoActionServer) error {
	if s.server.cfg.Plain {
		return s.FlightServer.DoAction(a, stream)
	}
	var (
		answer any
		err    error
	)
	switch a.GetType() {
	case adapter.ActionFind:
		answer, err = s.server.find(stream.Context(), string(a.GetBody()))
	case adapter.ActionKill:
		answer, err = s.server.killAttempt(stream.Context(), string(a.GetBody()))
	case adapter.ActionLoad:
		answer, err = s.server.load(stream.Context())
	default:
		return s.FlightServer.DoAction(a, stream)
	}
	if err != nil {
		return asStatus(stream.Context(), err)
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return stream.Send(&flight.Result{Body: body})
}

func (s *Server) find(ctx context.Context, attempt string) (adapter.Statement, error) {
	s.mu.Lock()
	st := s.byAttempt(attempt)
	s.mu.Unlock()
	if st == nil {
		return adapter.Statement{}, nil
	}
	found := adapter.Statement{Running: true}
	running, err := s.engine.processes(ctx, st.query.id)
	if err != nil {
		return found, err
	}
	if len(running) == 0 {
		st.mu.Lock()
		found.Waiting = !st.running
		st.mu.Unlock()
		return found, nil
	}
	p := running[0]
	ms := int64(p.Elapsed * float64(time.Second/time.Millisecond))
	found.ElapsedMs, found.ReadRows, found.ReadBytes, found.PeakMemoryBytes = &ms, &p.Rows, &p.Bytes, &p.Memory
	return found, nil
}

func (s *Server) killAttempt(ctx context.Context, attempt string) (adapter.Killed, error) {
	s.mu.Lock()
	st := s.byAttempt(attempt)
	s.mu.Unlock()
	if st == nil {
		return adapter.Killed{}, nil
	}
	return adapter.Killed{Found: true}, s.cancel(ctx, st)
}

func (s *Server) load(ctx context.Context) (adapter.Load, error) {
	n, err := s.engine.running(ctx)
	return adapter.Load{Running: &n}, err
}

// Handshake gives a token for a user and a password.
func (s *service) Handshake(stream flight.FlightService_HandshakeServer) error {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(s.server.cfg.User+":"+s.server.cfg.Password))
	md, _ := metadata.FromIncomingContext(stream.Context())
	if given := md.Get("authorization"); len(given) != 1 || given[0] != want {
		return status.Error(codes.Unauthenticated, "user or password are wrong")
	}
	token := "Bearer " + uuid.NewString()
	s.server.mu.Lock()
	s.server.tokens[token] = true
	s.server.mu.Unlock()
	if err := stream.SetHeader(metadata.Pairs("authorization", token)); err != nil {
		return err
	}
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// ForgetTokens logs everybody out.
func (s *Server) ForgetTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

func (s *Server) admit(ctx context.Context, method string) error {
	if s.cfg.User == "" || strings.HasSuffix(method, "/Handshake") {
		return nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if given := md.Get("authorization"); len(given) != 1 || !s.tokens[given[0]] {
		return status.Error(codes.Unauthenticated, "the token is not known here")
	}
	return nil
}

func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := s.admit(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (s *Server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := s.admit(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	return next(srv, stream)
}
