package chdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/pointsman/pointsman/pkg/embedded/supervise"
)

// ErrInUse is wrapped by Start's error if somebody else listens on the engine's address.
var ErrInUse = errors.New("the address is in use")

type inUseError struct{ name, addr string }

func (e *inUseError) Error() string {
	return fmt.Sprintf("the %s engine can't listen on %s: %v; stop the other process or pass --free-ports", e.name, e.addr, ErrInUse)
}

func (e *inUseError) Unwrap() error { return ErrInUse }

// Engine is a running engine, in a process of its own.
type Engine struct {
	cfg  Config
	proc *supervise.Supervisor

	mu   sync.Mutex
	addr string // where it really listens, known from its first readiness on
}

// Start starts an engine and returns when it answers. The context bounds the start only.
func Start(ctx context.Context, cfg Config) (*Engine, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("starting engine %s: the embedded engine needs Linux, use a clickhouse-server of your own", cfg.Name)
	}
	if cfg.LibPath == "" {
		path, err := Ensure(ctx, nil)
		if err != nil {
			return nil, fmt.Errorf("starting engine %s: %w", cfg.Name, err)
		}
		cfg.LibPath = path
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting engine %s: %w", cfg.Name, err)
	}
	if !mayRunChildren {
		return nil, fmt.Errorf("starting engine %s: the program does not call chdb.MaybeRunChild first thing in main", cfg.Name)
	}
	e := &Engine{cfg: cfg, addr: cfg.Addr}
	e.proc, err = supervise.Start(ctx, supervise.Config{
		Name:         cfg.Name,
		Command:      func() *exec.Cmd { return childCommand(self, cfg) },
		Input:        e.childInput,
		OnReady:      e.ready,
		ReadyTimeout: cfg.StartTimeout + cfg.StartDelay,
		StopTimeout:  cfg.StopGrace + killGrace + closeGrace,
		OnChange:     cfg.OnChange,
		Logger:       cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (e *Engine) childInput() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	// Only basic types: it can't fail.
	line, _ := json.Marshal(childConfig{
		Name: e.cfg.Name, Addr: e.addr, DataDir: e.cfg.DataDir, LibPath: e.cfg.LibPath,
		User: e.cfg.User, Password: e.cfg.Password, Settings: e.cfg.Settings, Caps: e.cfg.Caps,
		MaxConcurrent: e.cfg.MaxConcurrent, StartDelay: e.cfg.StartDelay, StopGrace: e.cfg.StopGrace,
	})
	return append(line, '\n')
}

func (e *Engine) ready(line []byte) error {
	var said readiness
	if err := json.Unmarshal(line, &said); err != nil {
		return fmt.Errorf("starting engine %s: reading %q: %w", e.cfg.Name, line, err)
	}
	switch {
	case said.InUse:
		return &inUseError{name: e.cfg.Name, addr: said.Addr}
	case said.Error != "":
		return fmt.Errorf("the %s engine can't start: %s", e.cfg.Name, said.Error)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.addr = said.Addr
	return nil
}

// Addr is the host and port where the engine answers. It stays the same over restarts.
func (e *Engine) Addr() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.addr
}

// URL is the address for HTTP, without credentials.
func (e *Engine) URL() string { return "http://" + e.Addr() }

// Options are the options with which clickhouse-go reaches the engine.
func (e *Engine) Options() *clickhouse.Options {
	return &clickhouse.Options{
		Protocol: clickhouse.HTTP,
		Addr:     []string{e.Addr()},
		Auth:     clickhouse.Auth{Database: "default", Username: e.cfg.User, Password: e.cfg.Password},
	}
}

// Name is the name from the configuration.
func (e *Engine) Name() string { return e.cfg.Name }

// Pid is the engine's process, 0 while none runs.
func (e *Engine) Pid() int { return e.proc.Pid() }

// State is what the engine's process is doing.
func (e *Engine) State() supervise.State { return e.proc.State() }

// Restarts counts how often the engine has been started again.
func (e *Engine) Restarts() int { return e.proc.Restarts() }

// Kill crashes the engine's process with SIGKILL; it is then started again. It is for fault tests and demos.
func (e *Engine) Kill() { e.proc.Kill() }

// Stop ends the engine: running queries get StopGrace, then they are killed.
func (e *Engine) Stop(ctx context.Context) error { return e.proc.Stop(ctx) }
