package chdb

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/libchdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/server"
)

// childMark in the environment tells a process that it is an engine.
const childMark = "POINTSMAN_CHDB_ENGINE"

const (
	killGrace  = 5 * time.Second // for queries to end once they are killed
	closeGrace = 5 * time.Second // for the engine to close its tables
)

// childConfig is what a child is told on its standard input; credentials are in nobody's process list.
type childConfig struct {
	Name, Addr, DataDir, LibPath string
	User, Password               string
	Settings, Caps               map[string]string
	MaxConcurrent                int
	StartDelay, StopGrace        time.Duration
}

// readiness is the line with which a child says how its start went.
type readiness struct {
	Addr  string `json:"addr,omitempty"`
	Error string `json:"error,omitempty"`
	InUse bool   `json:"inUse,omitempty"` // somebody else listens on Addr
}

// mayRunChildren says that MaybeRunChild was called, without which a child would run the parent's main.
var mayRunChildren bool

// MaybeRunChild must be the first thing that main does, and TestMain in tests that start engines. In
// a process that was started as an engine it serves and never returns; in any other it returns at once.
func MaybeRunChild() {
	if os.Getenv(childMark) == "" {
		mayRunChildren = true
		return
	}
	_ = os.Unsetenv(childMark)
	ready := &readyPipe{to: os.NewFile(3, "ready")}
	if err := runChild(ready); err != nil {
		if ready.said {
			fmt.Fprintln(os.Stderr, err) // nobody reads the pipe any more
		} else {
			_ = ready.say(unready(err))
		}
		os.Exit(1) //nolint:forbidigo // in a child this is main
	}
	os.Exit(0) //nolint:forbidigo // in a child this is main
}

// readyPipe is where a child says, once, how its start went.
type readyPipe struct {
	to   io.Writer
	said bool
}

func (p *readyPipe) say(r readiness) error {
	p.said = true
	line, _ := json.Marshal(r)
	_, err := p.to.Write(append(line, '\n'))
	return err
}

// unready is what a child says whose start failed.
func unready(err error) readiness {
	r := readiness{Error: err.Error()}
	if op := (*net.OpError)(nil); errors.As(err, &op) && errors.Is(err, syscall.EADDRINUSE) && op.Addr != nil {
		r.Addr, r.InUse = op.Addr.String(), true
	}
	return r
}

func childCommand(self string, cfg Config) *exec.Cmd {
	// Not by its name, behind which another build may stand by now.
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{self, "engine:" + cfg.Name}
	// The engine reads configuration files from the home folder unless it is shown another one.
	cmd.Env = append(os.Environ(), childMark+"=1", "TZ=UTC", "HOME="+cfg.DataDir)
	return cmd
}

func runChild(ready *readyPipe) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	// The engine's own threads write into pipes that the server closes when a client has gone. On a
	// thread that is not Go's, the signal would end the process.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the engine's configuration: %w", err)
	}
	var cfg childConfig
	if err := json.Unmarshal(line, &cfg); err != nil {
		return fmt.Errorf("reading the engine's configuration: %w", err)
	}
	go func() {
		// The parent never writes again: the end of this pipe is the end of the parent.
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	select {
	case <-time.After(cfg.StartDelay):
	case <-ctx.Done():
		return nil
	}
	return serveEngine(ctx, cfg, ready, logger)
}

func serveEngine(ctx context.Context, cfg childConfig, ready *readyPipe, logger *slog.Logger) error {
	spool := filepath.Join(cfg.DataDir, "spool")
	if err := os.MkdirAll(spool, 0o700); err != nil {
		return fmt.Errorf("making the engine's folders: %w", err)
	}
	lib, err := libchdb.Open(cfg.LibPath)
	if err != nil {
		return err
	}
	main, err := writeEngineConfig(cfg.DataDir, cfg)
	if err != nil {
		return err
	}
	args := []string{"--path=" + filepath.Join(cfg.DataDir, "store"), "--config-file=" + main}
	// This connection keeps the engine up while others come and go.
	keeper, err := lib.Connect(args)
	if err != nil {
		return err
	}
	if err := server.Prepare(keeper); err != nil {
		return err
	}
	about, err := keeper.Query("SELECT version(), timezone()", "TabSeparated", nil)
	if err != nil {
		return fmt.Errorf("asking the engine for its version: %w", err)
	}
	version, timezone, _ := strings.Cut(strings.TrimSpace(string(about.Data)), "\t")
	listener, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	srv := server.New(lib, server.Config{
		ConnectArgs: args, SpoolDir: spool, User: cfg.User, Password: cfg.Password, MaxConcurrent: cfg.MaxConcurrent,
		DisplayName: cfg.Name, Timezone: timezone, Version: version, Logger: logger,
	})
	web := &http.Server{Handler: srv.Handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn)}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	if err := ready.say(readiness{Addr: listener.Addr().String()}); err != nil {
		return fmt.Errorf("saying that the engine is ready: %w", err)
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	shutdown(web, srv, keeper, cfg.StopGrace, logger)
	return nil
}

// shutdown stops accepting, lets running queries go on for the grace, kills what is left, and closes
// the engine.
func shutdown(web *http.Server, srv *server.Server, keeper *libchdb.Conn, grace time.Duration, logger *slog.Logger) {
	within := func(d time.Duration, do func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		return do(ctx)
	}
	if within(grace, web.Shutdown) != nil {
		if err := within(killGrace, srv.CancelAll); err != nil {
			// Closing the engine under a running query would wait for it; the data is safe without.
			logger.Warn("queries did not end when killed, leaving without closing the engine")
			return
		}
		// The clients of the killed queries are still to be told.
		_ = within(time.Second, web.Shutdown)
	}
	_ = web.Close()
	srv.Close()
	keeper.Close()
}
