package telemetry_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/telemetry"
)

func TestReadyNamesWhatIsMissing(t *testing.T) {
	h := telemetry.NewHealth("router")
	require.Equal(t, telemetry.Report{Service: "router", Checks: []telemetry.CheckResult{{Name: "start", Reason: "the service is still starting"}}}, h.Ready(t.Context()))
	require.True(t, h.Alive(t.Context()).OK)
	gate := h.Gate("consumer", "no partitions assigned yet")
	broker := errors.New("dialling kafka://u:p@host: refused")
	h.Check("broker", func(context.Context) error { return broker })
	require.Equal(t, telemetry.Report{Service: "router", Checks: []telemetry.CheckResult{
		{Name: "consumer", Reason: "no partitions assigned yet"},
		{Name: "broker", Reason: "dialling kafka://[redacted]@host: refused"},
	}}, h.Ready(t.Context()))

	gate.Open()
	broker = nil
	require.True(t, h.Ready(t.Context()).OK)
	gate.Close("rebalancing")
	require.Equal(t, "rebalancing", h.Ready(t.Context()).Checks[0].Reason)
	gate.Open()
	h.Drain("stopping")
	r := h.Ready(t.Context())
	require.False(t, r.OK)
	require.Equal(t, telemetry.CheckResult{Name: "draining", Reason: "stopping"}, r.Checks[2])
	require.True(t, h.Alive(t.Context()).OK, "unready is not dead")
}

func TestLivenessIsApart(t *testing.T) {
	h := telemetry.NewHealth("x")
	h.Live("loop", func(context.Context) error { return errors.New("stuck for 5m") })
	h.Check("fine", func(context.Context) error { return nil })
	require.False(t, h.Alive(t.Context()).OK)
	require.True(t, h.Ready(t.Context()).OK)
}

func TestHangingCheckNeitherBlocksNorPilesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := telemetry.NewHealth("x")
		release := make(chan struct{})
		var started atomic.Int64
		h.Check("deaf", func(context.Context) error { started.Add(1); <-release; return nil })
		h.Check("fine", func(context.Context) error { return nil })
		began := time.Now()
		r := h.Ready(t.Context())
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, []telemetry.CheckResult{{Name: "deaf", Reason: "no answer within 2s"}, {Name: "fine", OK: true}}, r.Checks)
		r = h.Ready(t.Context())
		require.Equal(t, "the check before this one has not answered yet", r.Checks[0].Reason)
		require.Equal(t, int64(1), started.Load())
		close(release)
		synctest.Wait()
		require.True(t, h.Ready(t.Context()).OK)
	})
}

func TestSlowCheckGetsADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := telemetry.NewHealth("x")
		h.Check("slow", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		require.False(t, h.Ready(t.Context()).OK)
	})
}
