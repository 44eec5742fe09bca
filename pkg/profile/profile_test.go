package profile_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/profile"
)

func TestWilsonKnownValues(t *testing.T) {
	low, high := profile.Wilson(15, 15)
	require.InDelta(t, 0.796, low, 0.001)
	require.InDelta(t, 1.0, high, 1e-9)
	low, high = profile.Wilson(980, 1000)
	require.InDelta(t, 0.9693, low, 0.0005)
	require.InDelta(t, 0.9870, high, 0.0005)
	low, high = profile.Wilson(0, 0)
	require.Equal(t, [2]float64{0, 1}, [2]float64{low, high})
}

func TestWilsonHoldsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1_000_000).Draw(t, "n")
		hits := rapid.Int64Range(0, n).Draw(t, "hits")
		low, high := profile.Wilson(hits, n)
		rate := float64(hits) / float64(n)
		require.True(t, 0 <= low && low <= rate+1e-12 && rate <= high+1e-12 && high <= 1, "%v %v %v", low, rate, high)
	})
}

func TestNoSampleIsNoRate(t *testing.T) {
	_, _, _, ok := profile.Profile{}.HitRate()
	require.False(t, ok)
}

func TestKeysAsText(t *testing.T) {
	for text, want := range map[string]profile.Key{
		"pm1-a|trino|t1|":    {Fingerprint: "pm1-a", Engine: "trino", Cluster: "t1"},
		"pm1-a|trino|t1|r17": {Fingerprint: "pm1-a", Engine: "trino", Cluster: "t1", Bucket: "r17"},
	} {
		have, err := want.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, string(have))
		var back profile.Key
		require.NoError(t, back.UnmarshalText(have))
		require.Equal(t, want, back)
	}
	var old profile.Key
	require.NoError(t, old.UnmarshalText([]byte("pm1-a|trino|t1")), "as written before there were buckets")
	require.Equal(t, profile.Key{Fingerprint: "pm1-a", Engine: "trino", Cluster: "t1"}, old)
	require.Error(t, old.UnmarshalText([]byte("pm1-a|trino")))
	require.Error(t, old.UnmarshalText([]byte("a|b|c|d|e")))
}
