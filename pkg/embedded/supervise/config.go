package supervise

import (
	"errors"
	"log/slog"
	"os/exec"
	"time"
)

// State is what a supervised process is doing. The zero value is unknown.
type State string

// The states, in the order in which a process passes through them.
const (
	// Starting: a process has been started, or is about to be, and is not ready yet.
	Starting State = "starting"
	// Ready: the process has said that it is ready.
	Ready State = "ready"
	// Waiting: the process has ended by itself; the next one starts after a pause.
	Waiting State = "waiting"
	// Stopped: Stop was called and no process runs any more.
	Stopped State = "stopped"
)

// States lists all states.
func States() []State { return []State{Starting, Ready, Waiting, Stopped} }

// Change is a change of state.
type Change struct {
	State    State
	Pid      int // of the process it is about; 0 when there is none
	Restarts int // how often a process has been started after the first
	Err      error
}

// Config says what to keep alive and how.
type Config struct {
	// Name is used in logs and errors.
	Name string
	// Command makes the command of one process. It must not set Stdin, Stdout, Stderr or SysProcAttr.
	Command func() *exec.Cmd
	// Input is sent to the process's standard input, which then stays open for as long as the
	// parent lives.
	Input func() []byte
	// ReadyTimeout bounds the wait for readiness; a process that exceeds it is killed. Default 60 s.
	ReadyTimeout time.Duration
	// OnReady takes the line that the process wrote to descriptor 3 to say that it is ready, or why it can't be. Its error ends the
	// process and stands for the whole start, so it must name the process.
	OnReady func(line []byte) error
	// StopTimeout is how long Stop waits between SIGTERM and SIGKILL. Default 10 s.
	StopTimeout time.Duration
	// MinBackoff and MaxBackoff bound the pause before a restart. Defaults 200 ms and 10 s.
	MinBackoff, MaxBackoff time.Duration
	// Stable is how long a process must have been ready for the pause to start small again. Default 30 s.
	Stable time.Duration
	// OnChange is told every change of state, in order, from one goroutine. It must not block.
	OnChange func(Change)
	// Logger takes what the process writes to its standard output and error.
	Logger *slog.Logger
}

func (c *Config) setDefaults() error {
	if c.Command == nil || c.Logger == nil {
		return errors.New("supervise: Command and Logger are required")
	}
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&c.ReadyTimeout, time.Minute)
	set(&c.StopTimeout, 10*time.Second)
	set(&c.MinBackoff, 200*time.Millisecond)
	set(&c.MaxBackoff, 10*time.Second)
	set(&c.Stable, 30*time.Second)
	if c.OnChange == nil {
		c.OnChange = func(Change) {}
	}
	if c.OnReady == nil {
		c.OnReady = func([]byte) error { return nil }
	}
	if c.Input == nil {
		c.Input = func() []byte { return nil }
	}
	c.Logger = c.Logger.With(slog.String("process", c.Name))
	return nil
}

// ErrStopped says that the process was stopped before it was ready.
var ErrStopped = errors.New("the process was stopped")
