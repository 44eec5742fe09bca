package intake

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"golang.org/x/sync/semaphore"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/intake/access"
	"github.com/pointsman/pointsman/services/intake/board"
	"github.com/pointsman/pointsman/services/intake/openapi"
	"github.com/pointsman/pointsman/services/intake/problem"
)

// sender writes events; it is stream.Producer.
type sender interface {
	Send(ctx context.Context, msgs ...stream.Message) error
}

// server answers HTTP.
type server struct {
	cfg     Config
	tel     *telemetry.Telemetry
	gate    *access.Gate
	limiter *access.Limiter
	board   *board.Board
	// caughtUp says whether the topics have been read up to now; before that an unknown id is not known to be unknown.
	caughtUp  func() bool
	producer  sender
	results   *resultFolder
	explainer *http.Client
	metrics   *metrics
	waiting   *semaphore.Weighted
	ids       keyedLock
	now       func() time.Time
	// stopping is closed when the service stops, so that whoever waits gets an answer.
	stopping <-chan struct{}
}

// handler is one route. What it returns as an error is sent as a problem.
type handler func(w http.ResponseWriter, r *http.Request, p access.Principal) error

// route is a row of the table of routes.
type route struct {
	method, path string
	handle       handler
	open         bool // without a token
	traced       bool
}

func (s *server) routes() []route {
	return []route{
		{method: "POST", path: "/v1/queries", handle: s.submit, traced: true},
		{method: "POST", path: "/v1/explain", handle: s.explain, traced: true},
		{method: "GET", path: "/v1/tasks", handle: s.listTasks},
		{method: "GET", path: "/v1/tasks/{id}", handle: s.getTask},
		{method: "DELETE", path: "/v1/tasks/{id}", handle: s.cancelTask, traced: true},
		{method: "GET", path: "/v1/tasks/{id}/events", handle: s.streamEvents},
		{method: "GET", path: "/v1/tasks/{id}/result", handle: s.getResult},
		{method: "GET", path: "/v1/openapi.json", handle: document("application/json", openapi.JSON), open: true},
		{method: "GET", path: "/v1/openapi.yaml", handle: document("application/yaml", openapi.YAML), open: true},
		{method: "GET", path: "/{$}", handle: index, open: true},
	}
}

// Handler is the whole of the intake's HTTP interface.
func (s *server) Handler() http.Handler {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, rt := range s.routes() {
		var h http.Handler = s.serve(rt)
		if rt.traced {
			h = otelhttp.NewHandler(h, rt.method+" "+rt.path,
				otelhttp.WithTracerProvider(s.tel.TracerProvider()), otelhttp.WithPropagators(s.tel.Propagator()))
		}
		mux.Handle(rt.method+" "+rt.path, h)
		allowed[rt.path] = append(allowed[rt.path], rt.method)
		if rt.method == "GET" {
			allowed[rt.path] = append(allowed[rt.path], "HEAD")
		}
	}
	for path, methods := range allowed {
		slices.Sort(methods)
		mux.Handle(path, s.refuse("other", problem.MethodNotAllowed, strings.Join(methods, ", ")))
	}
	mux.Handle("/", s.refuse("other", problem.UnknownPath, ""))
	return mux
}

// serve runs a route: who calls, whether the tenant may, and then the handler.
func (s *server) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		rec := &recorder{ResponseWriter: w}
		rec.Header().Set("X-Content-Type-Options", "nosniff")
		err := func() error {
			if rt.open {
				return rt.handle(rec, r, access.Principal{})
			}
			p, err := s.gate.Who(r)
			if err != nil {
				return err
			}
			return rt.handle(rec, r, p)
		}()
		if err != nil {
			s.fail(r.Context(), rec, rt, err)
		}
		s.metrics.served(rt.method+" "+rt.path, rec.code(), time.Since(began))
	}
}

func (s *server) fail(ctx context.Context, rec *recorder, rt route, err error) {
	p := problem.Of(err)
	s.metrics.problems.WithLabelValues(string(p.Code)).Inc()
	level := slog.LevelDebug
	if p.Status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	attrs := []any{"route", rt.method + " " + rt.path, "status", p.Status, telemetry.KeyReason, string(p.Code)}
	if p.TaskID != "" {
		attrs = append(attrs, telemetry.KeyTask, p.TaskID)
	}
	if p.Cause != nil {
		attrs = append(attrs, telemetry.Err(p.Cause))
	}
	s.tel.Log.Log(ctx, level, "request was refused", attrs...)
	if rec.status == 0 { // else an answer has begun, and all that is left is to end it
		p.Write(rec)
	}
}

// refuse answers what no route takes.
func (s *server) refuse(name string, c problem.Code, allow string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		p := problem.New(c, "")
		p.Allow = allow
		s.metrics.problems.WithLabelValues(string(c)).Inc()
		s.metrics.served(name, p.Status, 0)
		p.Write(w)
	}
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

// keyedLock lets one at a time work on an id. Its zero value is ready.
type keyedLock struct {
	mu    sync.Mutex
	locks map[string]*idLock
}

type idLock struct {
	held  chan struct{} // a token: whoever has put one in holds the lock
	users int
}

// lock waits for an id until the context ends.
func (k *keyedLock) lock(ctx context.Context, id string) (unlock func(), err error) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*idLock{}
	}
	l := k.locks[id]
	if l == nil {
		l = &idLock{held: make(chan struct{}, 1)}
		k.locks[id] = l
	}
	l.users++
	k.mu.Unlock()
	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, id)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

var errGone = errors.New("the client has gone")
