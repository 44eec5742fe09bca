package supervise_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/embedded/supervise"
)

const playMark = "SUPERVISE_TEST_PLAY"

func TestMain(m *testing.M) {
	if part := os.Getenv(playMark); part != "" {
		play(part)
		return
	}
	goleak.VerifyTestMain(m)
}

// play is what the test binary does when it is a child.
func play(part string) {
	ready := os.NewFile(3, "ready")
	sayReady := func() { _, _ = fmt.Fprintf(ready, "%d\n", os.Getpid()) }
	switch part {
	case "serve":
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Println("out", strings.TrimSpace(line))
		fmt.Fprintln(os.Stderr, "err", strings.Repeat("x", 40_000))
		sayReady()
		<-stop
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		sayReady()
		time.Sleep(time.Minute)
	case "dies":
		os.Exit(3)
	case "flaps":
		sayReady()
		os.Exit(4)
	case "silent":
		time.Sleep(time.Minute)
	case "until-eof":
		sayReady()
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "parent":
		s, err := supervise.Start(context.Background(), config("until-eof", slog.New(slog.DiscardHandler)))
		if err != nil {
			os.Exit(1)
		}
		fmt.Println(s.Pid())
		time.Sleep(time.Minute)
	}
}

func config(part string, logger *slog.Logger) supervise.Config {
	return supervise.Config{
		Name: part,
		Command: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), playMark+"="+part)
			return cmd
		},
		Input:      func() []byte { return []byte("\n") },
		MinBackoff: 10 * time.Millisecond,
		MaxBackoff: 40 * time.Millisecond,
		Logger:     logger,
	}
}

// changes collects the changes of a process.
type changes struct {
	mu  sync.Mutex
	all []supervise.Change
}

func (c *changes) add(change supervise.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, change)
}

func (c *changes) states() (states []supervise.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range c.all {
		states = append(states, change.State)
	}
	return states
}

func TestAProcessIsStartedAgainUntilItIsStopped(t *testing.T) {
	var seen changes
	var log lockedBuffer
	cfg := config("serve", slog.New(slog.NewTextHandler(&log, nil)))
	cfg.OnChange = seen.add
	cfg.Input = func() []byte { return []byte("hello\n") }
	var said string
	cfg.OnReady = func(line []byte) error { said = string(line); return nil }
	s, err := supervise.Start(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(s.Pid())+"\n", said)
	require.Equal(t, supervise.Ready, s.State())
	first := s.Pid()
	s.Kill()
	require.Eventually(t, func() bool { return s.Restarts() == 1 && s.State() == supervise.Ready }, 5*time.Second, time.Millisecond)
	require.NotEqual(t, first, s.Pid())
	require.False(t, alive(first))
	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, s.Stop(t.Context()), "once more")
	require.Zero(t, s.Pid())
	require.Equal(t, []supervise.State{supervise.Starting, supervise.Ready, supervise.Waiting, supervise.Starting, supervise.Ready, supervise.Stopped}, seen.states())
	require.ErrorContains(t, seen.all[2].Err, "killed")
	require.Contains(t, log.String(), "out hello")
	require.Contains(t, log.String(), "err xxx")
	require.Less(t, len(log.String()), 60_000, "long lines are cut")
	s.Kill() // nothing runs: nothing happens
}

func TestAFlappingProcessGetsPauses(t *testing.T) {
	var seen changes
	cfg := config("flaps", slog.New(slog.DiscardHandler))
	cfg.OnChange = seen.add
	s, err := supervise.Start(t.Context(), cfg)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.Restarts() >= 3 }, 10*time.Second, time.Millisecond)
	require.NoError(t, s.Stop(t.Context()))
	require.Equal(t, supervise.Stopped, s.State())
	var exit *exec.ExitError
	require.ErrorAs(t, seen.all[2].Err, &exit)
	require.Equal(t, 4, exit.ExitCode())
}

func TestAFirstStartThatFailsIsAnError(t *testing.T) {
	for _, c := range []struct {
		part, want string
		edit       func(*supervise.Config)
	}{
		{"dies", "exit status 3", nil},
		{"silent", "not ready after", func(c *supervise.Config) { c.ReadyTimeout = 50 * time.Millisecond }},
		{"serve", "it was wrong", func(c *supervise.Config) { c.OnReady = func([]byte) error { return errors.New("it was wrong") } }},
		{"no such program", "no such file", func(c *supervise.Config) { c.Command = func() *exec.Cmd { return exec.Command("/nonexistent") } }},
		{"no command", "required", func(c *supervise.Config) { c.Command = nil }},
	} {
		cfg := config(c.part, slog.New(slog.DiscardHandler))
		if c.edit != nil {
			c.edit(&cfg)
		}
		_, err := supervise.Start(t.Context(), cfg)
		require.ErrorContains(t, err, c.want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := supervise.Start(ctx, config("silent", slog.New(slog.DiscardHandler)))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAStubbornProcessIsKilled(t *testing.T) {
	cfg := config("stubborn", slog.New(slog.DiscardHandler))
	cfg.StopTimeout = 100 * time.Millisecond
	s, err := supervise.Start(t.Context(), cfg)
	require.NoError(t, err)
	pid := s.Pid()
	require.NoError(t, s.Stop(t.Context()))
	require.False(t, alive(pid))

	cfg.StopTimeout = time.Minute
	s, err = supervise.Start(t.Context(), cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Stop(ctx), context.DeadlineExceeded)
	require.Zero(t, s.Pid())
}

func TestAKilledParentTakesItsChildAlong(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), playMark+"=parent")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	require.True(t, alive(pid))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return !alive(pid) }, 5*time.Second, time.Millisecond)
}

// alive says that the process exists and is not a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(after, "Z")
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
