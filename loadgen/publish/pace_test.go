package publish

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/loadgen/workload"
)

func at(times ...time.Duration) []workload.Arrival {
	var out []workload.Arrival
	for _, d := range times {
		out = append(out, workload.Arrival{At: d})
	}
	return out
}

func TestPaceSendsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var sent []time.Duration
		err := pace(t.Context(), slices.Values(at(0, time.Second, time.Second, time.Minute)), func(a workload.Arrival, due time.Time) {
			require.Equal(t, start.Add(a.At), due)
			sent = append(sent, time.Since(start))
		})
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, time.Second, time.Second, time.Minute}, sent)
	})
}

// Open loop: what is slow to send delays the rest as little as possible, and what was missed is sent, late.
func TestPaceCatchesUpAfterAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var sent []time.Duration
		err := pace(t.Context(), slices.Values(at(0, time.Second, 2*time.Second, 10*time.Second)), func(a workload.Arrival, due time.Time) {
			sent = append(sent, time.Since(start))
			if a.At == 0 {
				time.Sleep(5 * time.Second)
			}
		})
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, 5 * time.Second, 5 * time.Second, 10 * time.Second}, sent)
	})
}

func TestPaceStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		sent := 0
		go func() {
			time.Sleep(90 * time.Second)
			cancel(why)
		}()
		err := pace(ctx, slices.Values(at(0, time.Minute, time.Hour)), func(workload.Arrival, time.Time) { sent++ })
		require.ErrorIs(t, err, why)
		require.Equal(t, 2, sent)

		err = pace(ctx, slices.Values(at(0)), func(workload.Arrival, time.Time) { sent++ })
		require.ErrorIs(t, err, why, "not even what is due already")
		require.Equal(t, 2, sent)
	})
}
