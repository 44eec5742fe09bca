package command

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/replay"
)

// A replay that somebody has stopped has found nothing out. To whoever waits for its exit code it must not look like one that found all
// well.
func TestAnInterruptedReplayIsNoSuccess(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	s := &streams{out: io.Discard, err: io.Discard}
	where := placeFlags{Brokers: []string{"127.0.0.1:1"}}
	_, err := recordFlags{placeFlags: where}.replay(ctx, s, &replay.Options{})
	explain := explainCmd{Task: "a", placeFlags: where}
	for _, err := range []error{err, explain.recorded(ctx, s)} {
		require.Error(t, err)
		require.False(t, isSignal(err), err)
		require.Equal(t, lifecycle.ExitRuntime, lifecycle.ExitCode(err))
	}
}
