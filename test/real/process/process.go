// Package process runs a real server as a child of a test: on a thread whose end takes the server with it, as another user where
// the server refuses to run as root, and ended by its number and by nothing else.
package process

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// RequiredEnv makes it a failure that a server can't be started, as in CI: a skip would hide that nothing was tested.
const RequiredEnv = "POINTSMAN_REQUIRE_REAL"

// Skip skips the test, with a word.
func Skip(t testing.TB, server, why string) {
	t.Helper()
	if os.Getenv(RequiredEnv) != "" {
		t.Fatalf("real %s: %s, and %s is set", server, why, RequiredEnv)
	}
	t.Skipf("SKIP real %s: %s", server, why)
}

// Binary finds a program in PATH or in the folders where Debian puts servers, or skips the test.
func Binary(t testing.TB, server, name string, folders ...string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, pattern := range append(folders, "/usr/sbin", "/usr/local/sbin") {
		found, _ := filepath.Glob(filepath.Join(pattern, name))
		if len(found) > 0 {
			return found[len(found)-1]
		}
	}
	Skip(t, server, name+" not found (Debian: apt-get install --no-install-recommends "+server+")")
	return ""
}

// As is the user a server runs as: that of the test, or, for root, the one that Debian's package made for it.
type As struct {
	// Env is what the server's environment has besides the test's: NAME=value.
	Env []string

	name       string
	credential *syscall.Credential
	uid, gid   int
}

// User gives the user for a server.
func User(t testing.TB, server, name string) As {
	t.Helper()
	if os.Getuid() != 0 {
		return As{}
	}
	u, err := user.Lookup(name)
	if err != nil {
		Skip(t, server, "it does not run as root, and there is no user "+name)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return As{name: name, credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, uid: uid, gid: gid}
}

// Folder makes a folder for the server's data that its user owns.
func (a As) Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pointsman-real-") //nolint:usetesting // the server's user must get into it: t.TempDir is for its owner
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if a.credential != nil {
		if err := os.Chown(dir, a.uid, a.gid); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Run runs a program to its end.
func (a As) Run(t testing.TB, dir, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(program), err, lastLines(string(out), 20))
	}
}

// Process is a server.
type Process struct {
	t     testing.TB
	as    As
	dir   string
	args  []string
	calls chan func()

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts a server in a folder. The end of the test stops it.
func (a As) Start(t testing.TB, dir, program string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, as: a, dir: dir, args: append([]string{program}, args...), calls: make(chan func())}
	go p.spawner()
	t.Cleanup(p.stop)
	p.Again()
	return p
}

// spawner starts processes from a thread that lives as long as the test: the kernel kills the server when that thread ends.
func (p *Process) spawner() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for call := range p.calls {
		call()
	}
}

// Again starts a server that has ended, as it was started before.
func (p *Process) Again() {
	p.t.Helper()
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.Env = append(os.Environ(), p.as.Env...)
	cmd.SysProcAttr = attributes(p.as.credential)
	started := make(chan error)
	p.calls <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		p.t.Fatalf("starting %s: %v", p.args[0], err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	p.mu.Lock()
	p.cmd, p.ended = cmd, ended
	p.mu.Unlock()
}

// Ready waits until ask succeeds.
func (p *Process) Ready(ask func() error) {
	p.t.Helper()
	deadline := time.Now().Add(3 * time.Minute) // a JVM on a machine with much else to do
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-p.ended:
			p.t.Fatalf("the server ended while it was starting:\n%s", p.Log(30))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the server is not ready: %v\n%s", err, p.Log(30))
		}
	}
}

// Signal sends a signal to the server's own process.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("sending %s: %v", s, err)
	}
}

// End sends a signal and waits until the server has ended.
func (p *Process) End(s syscall.Signal) {
	p.t.Helper()
	p.Signal(s)
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.t.Errorf("the server did not end within 20 s of %s, and is killed", s)
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

func (p *Process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.ended:
	case <-time.After(3 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	close(p.calls)
	if p.t.Failed() {
		p.t.Logf("the server's log:\n%s", p.Log(30))
	}
}

func (p *Process) logFile() string { return filepath.Join(p.dir, "test.log") }

// Log gives the last lines of what the server wrote.
func (p *Process) Log(lines int) string {
	text, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text), lines)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
