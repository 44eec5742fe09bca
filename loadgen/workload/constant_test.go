package workload

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConstantRate(t *testing.T) {
	seq, err := ConstantRate(Options{Seed: 3, Prefix: "bench"}, 200, 12_000)
	require.NoError(t, err)
	arrivals := slices.Collect(seq)
	require.Len(t, arrivals, 12_000)
	check(t, arrivals, 24*time.Hour)
	require.Equal(t, 5*time.Millisecond, arrivals[1].At)
	require.Equal(t, 50*time.Second, arrivals[10_000].At)
	require.Equal(t, "bench-3-r00000000", arrivals[0].Task.ID)
	require.Equal(t, arrivals[0].Task.SQL, arrivals[5272].Task.SQL, "the trace begins again")

	again := slices.Collect(seq)
	require.Equal(t, arrivals[77], again[77])
	other, err := ConstantRate(Options{Seed: 4}, 200, 100)
	require.NoError(t, err)
	require.NotEqual(t, arrivals[0].Task.SQL, slices.Collect(other)[0].Task.SQL)
}

func TestConstantRateRefuses(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		_, err := ConstantRate(Options{}, rate, 1)
		require.Error(t, err)
	}
	_, err := ConstantRate(Options{}, 1, 0)
	require.Error(t, err)
	_, err = ConstantRate(Options{Prefix: "a b"}, 1, 1)
	require.Error(t, err)
}

func TestConstantRateStopsWhenAsked(t *testing.T) {
	seq, err := ConstantRate(Options{}, 1, math.MaxInt)
	require.NoError(t, err)
	n := 0
	for range seq {
		if n++; n == 3 {
			break
		}
	}
	require.Equal(t, 3, n)
}
