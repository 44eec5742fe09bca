package lifecycle_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/lifecycle"
)

// childEnv makes the test binary the process that the signal tests send signals to.
const childEnv = "LIFECYCLE_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childEnv); mode != "" {
		os.Exit(child(mode))
	}
	goleak.VerifyTestMain(m)
}

func child(mode string) int {
	ctx, release := lifecycle.SignalContext(context.Background())
	defer release()
	fmt.Println("ready")
	<-ctx.Done()
	var caught *lifecycle.SignalError
	if !errors.As(context.Cause(ctx), &caught) {
		return 99
	}
	fmt.Println(caught)
	if mode == "hang" {
		time.Sleep(time.Minute)
	}
	return lifecycle.ExitOK
}

func startChild(t *testing.T, mode string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+mode)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.Equal(t, "ready", lines.Text())
	return cmd, lines
}

func TestFirstSignalEndsTheContext(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP) // or children would ignore it where the tests run under nohup
	defer signal.Stop(caught)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		cmd, lines := startChild(t, "obey")
		require.NoError(t, cmd.Process.Signal(s))
		require.True(t, lines.Scan())
		require.Equal(t, "signal: "+s.String(), lines.Text())
		require.NoError(t, cmd.Wait())
	}
}

func TestHangingUpIsIgnoredUnderNohup(t *testing.T) {
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Ignore(syscall.SIGHUP)
		defer signal.Reset(syscall.SIGHUP)
	}
	cmd, lines := startChild(t, "obey")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.True(t, lines.Scan())
	require.Equal(t, "signal: "+syscall.SIGTERM.String(), lines.Text())
	require.NoError(t, cmd.Wait())
}

func TestSecondSignalExitsHard(t *testing.T) {
	cmd, lines := startChild(t, "hang")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.True(t, lines.Scan(), "the first signal is only a wish")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, 128+int(syscall.SIGTERM), exit.ExitCode())
}

func TestReleaseEndsTheContextWithoutASignal(t *testing.T) {
	ctx, release := lifecycle.SignalContext(t.Context())
	release()
	release()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
}
