package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"unicode"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/libchdb"
)

// Config says how a server behaves.
type Config struct {
	// ConnectArgs are the engine's arguments of every connection.
	ConnectArgs []string
	// SpoolDir is where rows and results wait that are too large for memory.
	SpoolDir string
	// User and Password are what clients must give; with neither set, anyone may come.
	User, Password string
	// MaxConcurrent is how many queries may run at once; 0 is any number.
	MaxConcurrent int
	// DisplayName, Timezone and Version are what the server says of itself.
	DisplayName, Timezone, Version string
	Logger                         *slog.Logger
}

// Server answers HTTP requests with the engine of this process.
type Server struct {
	lib      *libchdb.Library
	cfg      Config
	running  *registry
	sessions *sessions
}

// New makes a server on an engine that is already running, which means that some connection to it
// stays open for as long as the server lives.
func New(lib *libchdb.Library, cfg Config) *Server {
	return &Server{lib: lib, cfg: cfg, running: newRegistry(cfg.MaxConcurrent), sessions: newSessions()}
}

// Handler is the HTTP interface.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", s.alive)
	mux.HandleFunc("GET /replicas_status", s.alive)
	mux.HandleFunc("/{$}", s.query)
	return mux
}

// CancelAll ends every running query and waits for them, or for the context.
func (s *Server) CancelAll(ctx context.Context) error {
	s.running.cancelAll()
	return s.running.wait(ctx)
}

// Close drops the sessions. No query may run any more.
func (s *Server) Close() { s.sessions.close() }

func (s *Server) alive(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	_, _ = w.Write([]byte("Ok.\n"))
}

func (s *Server) query(w http.ResponseWriter, r *http.Request) {
	req, err := s.newRequest(r)
	s.greet(w, req)
	if err == nil {
		err = s.serve(w, r, req)
	}
	if err != nil {
		s.fail(w, req, err)
	}
}

// greet sets the headers every answer has.
func (s *Server) greet(w http.ResponseWriter, req *request) {
	h := w.Header()
	h.Set("X-ClickHouse-Server-Display-Name", s.cfg.DisplayName)
	h.Set("X-ClickHouse-Query-Id", strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, req.queryID))
	h.Set("X-ClickHouse-Timezone", s.cfg.Timezone)
}

// fail answers with an error. It is only for answers of which nothing has been sent.
func (s *Server) fail(w http.ResponseWriter, req *request, err error) {
	e := asException(err)
	h := w.Header()
	for _, name := range []string{"Content-Encoding", "Content-Length", "X-ClickHouse-Format", "X-ClickHouse-Exception-Tag"} {
		h.Del(name)
	}
	if e.Code == codeAuthentication {
		h.Set("WWW-Authenticate", `Basic realm="ClickHouse server HTTP API"`)
	}
	h.Set("Content-Type", "text/plain; charset=UTF-8")
	h.Set("X-ClickHouse-Exception-Code", itoa(e.Code))
	status := httpStatus(e.Code)
	w.WriteHeader(status)
	_, _ = w.Write([]byte(s.errorText(e)))
	s.cfg.Logger.Debug("query failed", "query_id", req.queryID, "code", e.Code, "status", status)
}

func (s *Server) errorText(e *libchdb.Exception) string {
	return e.Error() + " (version " + s.cfg.Version + ")\n"
}
