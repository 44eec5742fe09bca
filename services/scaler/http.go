package scaler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
)

// handler shows the pools: GET /v1/pools. It is for operators, not for the outside.
func (a *App) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/pools", func(w http.ResponseWriter, _ *http.Request) {
		pools := make([]Status, 0, len(a.pools))
		for _, p := range a.pools {
			pools = append(pools, p.status())
		}
		data, err := event.Marshal(struct {
			Pools []Status `json:"pools"`
		}{pools})
		if err != nil {
			http.Error(w, "the pools could not be written", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(append(data, '\n')) // the client has gone: nobody to tell
	})
	return mux
}

func (a *App) serveHTTP(ctx context.Context) error {
	if a.cfg.HTTP.Address == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", a.cfg.HTTP.Address)
	if err != nil {
		return fmt.Errorf("listening for requests: %w", err)
	}
	a.addr = listener.Addr()
	srv := &http.Server{
		Handler: a.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	served := make(chan struct{})
	a.OnStop("http server", func(ctx context.Context) error {
		err := srv.Shutdown(ctx)
		<-served
		return err
	})
	go func() {
		defer close(served)
		if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.Fail(fmt.Errorf("serving requests: %w", err))
		}
	}()
	return nil
}

// Addr is where the pools are shown, nil when they are not.
func (a *App) Addr() net.Addr { return a.addr }
