package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/telemetry/buildinfo"
)

// AdminHandler serves /healthz, /readyz, /metrics and /version, and /debug/pprof when it is switched on. A service
// that has an HTTP server of its own can mount it there.
func (t *Telemetry) AdminHandler(profiling bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", report(t.Health.Alive))
	mux.HandleFunc("GET /readyz", report(t.Health.Ready))
	mux.Handle("GET /metrics", promhttp.HandlerFor(t.Registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(t.Log.Handler(), slog.LevelWarn), // one broken collector must not hide the others
		Registry: t.Registry, ErrorHandling: promhttp.ContinueOnError,
	}))
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, buildinfo.Read())
	})
	if profiling {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// ServeAdmin opens the admin server and lets the group stop it. Call it first, so that it stops last and probes are
// answered while the service drains. The address is nil when the configuration wants none.
func (t *Telemetry) ServeAdmin(ctx context.Context, group *lifecycle.Group, cfg AdminConfig) (net.Addr, error) {
	if cfg.Address == "" {
		return nil, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("opening the admin server: %w", err)
	}
	server := &http.Server{
		Handler:           t.AdminHandler(cfg.Profiling),
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          slog.NewLogLogger(t.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan struct{})
	group.OnStop("admin server", func(ctx context.Context) error {
		err := server.Shutdown(ctx)
		<-served
		return err
	})
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			group.Fail(fmt.Errorf("serving admin requests: %w", err))
		}
	}()
	t.Log.InfoContext(ctx, "admin server is open", "address", listener.Addr().String())
	return listener.Addr(), nil
}

func report(run func(context.Context) Report) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status := run(r.Context())
		code := http.StatusOK
		if !status.OK {
			code = http.StatusServiceUnavailable
		}
		writeJSON(w, code, status)
	}
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client has gone: nobody to tell
}
