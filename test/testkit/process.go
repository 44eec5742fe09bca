package testkit

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/test/ports"
)

// binaries are built once in the life of a test binary.
var binaries struct {
	once sync.Once
	dir  string
	err  error
}

// Services are the five, in the order in which they are started.
var Services = []string{"profiler", "scaler", "executor", "router", "intake"}

// binary builds all five on first use and gives the path of one.
func binary(t testing.TB, service string) string {
	t.Helper()
	binaries.once.Do(func() {
		// They outlive the test that was first to need them; Main removes them.
		if binaries.dir, binaries.err = os.MkdirTemp("", "pointsman-bin-"); binaries.err != nil { //nolint:usetesting // see above
			return
		}
		args := []string{"build", "-o", binaries.dir + string(filepath.Separator)}
		for _, s := range Services {
			args = append(args, "github.com/pointsman/pointsman/services/"+s+"/cmd/pointsman-"+s)
		}
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			binaries.err = fmt.Errorf("building the services: %w: %s", err, out)
		}
	})
	require.NoError(t, binaries.err)
	return filepath.Join(binaries.dir, "pointsman-"+service)
}

func removeBinaries() {
	if binaries.dir != "" {
		_ = os.RemoveAll(binaries.dir)
	}
}

// Process is one service in a process of its own. It is signalled by the id that it was started under, never by name.
type Process struct {
	Service string
	// Name tells the instances of a service apart; it is their Kafka client id, and so the ce_source of what they write.
	Name string
	// HTTP is where intake and the router's explain listen, Admin the address of /readyz and /metrics.
	HTTP, Admin string

	t      testing.TB
	config string
	log    string
	env    []string
	spawn  chan func()

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts the process, and again after it has ended.
func (p *Process) Start() {
	p.t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(p.t, err)
	defer log.Close()
	cmd := exec.Command(binary(p.t, p.Service), "-config", p.config)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	tieToParent(cmd.SysProcAttr)
	started := make(chan error)
	p.spawn <- func() { started <- cmd.Start() }
	require.NoError(p.t, <-started, "starting %s", p.Name)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended is asked by ExitCode
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.ended = cmd, ended
}

// Ready waits until it says that it is.
func (p *Process) Ready(within time.Duration) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	last := "no answer"
	for ctx.Err() == nil {
		select {
		case <-p.ended:
			require.FailNow(p.t, p.Name+" ended while it was starting", p.Tail(30))
		default:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Admin+"/readyz", nil)
		require.NoError(p.t, err)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			last = resp.Status
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	require.FailNow(p.t, fmt.Sprintf("%s is not ready after %s (%s)", p.Name, within, last), p.Tail(30))
}

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.NoError(p.t, p.cmd.Process.Signal(s), "sending %s to %s", s, p.Name)
}

// Kill ends it as a power cut would, and waits until it is gone.
func (p *Process) Kill() {
	p.t.Helper()
	p.Signal(syscall.SIGKILL)
	<-p.ended
}

// Pause stops it where it stands, with its connections open; Resume lets it go on.
func (p *Process) Pause() { p.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() { p.Signal(syscall.SIGCONT) }

// PID is the id that it was started under.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Running says whether it has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// ExitCode is how it ended.
func (p *Process) ExitCode() int {
	<-p.ended
	return p.cmd.ProcessState.ExitCode()
}

// Stop asks it to end, and gives its exit code. One that does not end in time is killed and fails the test.
func (p *Process) Stop(within time.Duration) int {
	p.t.Helper()
	if p.Running() {
		p.Signal(syscall.SIGCONT)
		p.Signal(syscall.SIGTERM)
	}
	select {
	case <-p.ended:
	case <-time.After(within):
		p.Kill()
		require.FailNow(p.t, fmt.Sprintf("%s did not end within %s of SIGTERM", p.Name, within), p.Tail(30))
	}
	return p.ExitCode()
}

// Tail are the last lines of its log.
func (p *Process) Tail(lines int) string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return tail(string(text), lines)
}

func tail(text string, lines int) string {
	list := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(list[max(0, len(list)-lines):], "\n")
}

// spawner starts processes from a thread that lives as long as they do: the kernel ends them when the thread that started them
// ends, and so with the test's process, however that ends.
func spawner(calls <-chan func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for call := range calls {
		call()
	}
}

// freePort finds an address that a process may have, also when it is started again.
func freePort(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", ports.Free(t))
}
