package profiler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// consoleTimeout bounds what a question of the console may take.
const consoleTimeout = 20 * time.Second

// handler serves the console: what people ask who have no dashboard.
func (a *App) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/summary", a.answer(func(ctx context.Context, from, now time.Time) (any, error) { return a.reader.Summary(ctx, from, now) }))
	mux.HandleFunc("GET /v1/queues", a.answer(func(ctx context.Context, from, _ time.Time) (any, error) { return a.reader.QueueHours(ctx, from) }))
	return mux
}

func (a *App) answer(ask func(ctx context.Context, from, now time.Time) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		now := time.Now().UTC().Add(time.Second) // the summary's end is exclusive, and of whole seconds
		from, err := since(r.URL.Query().Get("since"), now)
		if err != nil {
			problem(w, http.StatusBadRequest, err.Error())
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), consoleTimeout)
		defer cancel()
		v, err := ask(ctx, from, now)
		if err != nil {
			a.log.WarnContext(ctx, "answering the console", "path", r.URL.Path, "error", err)
			problem(w, http.StatusServiceUnavailable, "the history does not answer; try again later")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(v) // the reader has gone: nobody is left to be told
	}
}

// since reads a moment, or how long ago it was; without one it is a day.
func since(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now.Add(-24 * time.Hour), nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.After(now) {
		return time.Time{}, fmt.Errorf("since: %q is neither a duration such as 90m nor a past moment such as 2026-11-30T09:00:00Z", text)
	}
	return t.UTC(), nil
}

func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail})
}

// serve runs the console until Stop.
func (a *App) serve(ctx context.Context) error {
	if a.cfg.HTTP.Address == "" {
		return nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.cfg.HTTP.Address)
	if err != nil {
		return fmt.Errorf("listening for the console: %w", err)
	}
	a.console = l.Addr()
	server := &http.Server{Handler: a.handler(), ReadHeaderTimeout: 5 * time.Second, BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) }}
	a.OnStop("console", server.Shutdown)
	go func() {
		if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			a.Fail(fmt.Errorf("serving the console: %w", err))
		}
	}()
	return nil
}

// Console is where the console listens, nil when it does not.
func (a *App) Console() net.Addr { return a.console }
