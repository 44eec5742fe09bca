package signal_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/signal"
)

var at = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)

func TestAbsentStaleAndZeroAreThreeThings(t *testing.T) {
	zero := signal.Of(0, signal.Count, "engine", at)
	n, ok := zero.Get()
	require.True(t, ok)
	require.Zero(t, n)

	_, ok = signal.Missing("engine").Get()
	require.False(t, ok)

	stale := zero.Aged(at.Add(time.Minute), 10*time.Second)
	_, ok = stale.Get()
	require.False(t, ok)
	_, ok = stale.Last()
	require.True(t, ok)
	require.Equal(t, signal.Stale, stale.State())
	require.Equal(t, 7.0, stale.Or(7))
	require.Equal(t, signal.Known, zero.Aged(at.Add(-10*time.Second), 10*time.Second).State(), "clocks differ a little")
	require.Equal(t, signal.Stale, zero.Aged(at.Add(-11*time.Second), 10*time.Second).State(), "nobody can tell how old it is")

	require.Equal(t, signal.Absent, signal.Of(math.NaN(), signal.Millis, "trino", at).State(), "engines print NaN for unknown")
}

func TestAmountsAreNotNegative(t *testing.T) {
	for n, want := range map[float64]signal.State{0: signal.Known, 7: signal.Known, -1: signal.Absent, -0.001: signal.Absent, 1e300: signal.Absent} {
		require.Equal(t, want, signal.Of(n, signal.Millis, "engine", at).Amount().State(), n)
	}
	require.Equal(t, signal.Stale, signal.Of(3, signal.Millis, "engine", at).Aged(at.Add(time.Hour), time.Second).Amount().State())
}

func TestJSONRoundTrip(t *testing.T) {
	for _, v := range []signal.Value{
		{},
		signal.Missing("engine"), signal.Of(0, signal.Count, "engine", at), signal.Of(1.5, signal.Millis, "history", at),
		signal.Of(3, signal.Count, "engine", at).Aged(at.Add(time.Hour), time.Second),
	} {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		var back signal.Value
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, v.State(), back.State())
		again, err := json.Marshal(back)
		require.NoError(t, err)
		require.Equal(t, string(data), string(again))
	}
	data, err := json.Marshal(signal.Of(0, signal.Count, "engine", at))
	require.NoError(t, err)
	require.Contains(t, string(data), `"value":0`)

	var future signal.Value
	require.NoError(t, json.Unmarshal([]byte(`{"state":"extrapolated","value":3}`), &future))
	require.Equal(t, signal.Stale, future.State(), "a trust this version does not know is not full trust")
}

func TestSnapshotMerge(t *testing.T) {
	s := signal.Snapshot{}
	obs := func(source string, when time.Time, v signal.Value) signal.Observation {
		return signal.Observation{Cluster: "c", Source: source, At: when, Values: map[signal.Name]signal.Value{signal.Queued: v}}
	}
	s.Merge(obs("a", at, signal.Of(3, signal.Count, "a", at)))
	s.Merge(obs("b", at.Add(time.Second), signal.Missing("b")))
	v, ok := s.Get("c", signal.Queued, at, time.Minute).Get()
	require.True(t, ok, "another source's ignorance hides nothing")
	require.Equal(t, 3.0, v)

	s.Merge(obs("a", at.Add(-time.Second), signal.Of(9, signal.Count, "a", at.Add(-time.Second))))
	v, _ = s.Get("c", signal.Queued, at, time.Minute).Get()
	require.Equal(t, 3.0, v, "an older observation that arrives late changes nothing")

	s.Merge(obs("a", at.Add(2*time.Second), signal.Missing("a")))
	require.Equal(t, signal.Absent, s.Get("c", signal.Queued, at, time.Minute).State(), "a source may take its own fact back")
	require.Equal(t, signal.Absent, s.Get("nowhere", signal.Queued, at, time.Minute).State())
}

func TestStringIsForPeople(t *testing.T) {
	for want, v := range map[string]signal.Value{
		"unknown": {}, "5 GB": signal.Of(5e9, signal.Bytes, "x", at), "999 B": signal.Of(999, signal.Bytes, "x", at),
		"1.23 kB": signal.Of(1234, signal.Bytes, "x", at), "4.12 s": signal.Of(4124.4, signal.Millis, "x", at),
		"0 ms": signal.Of(0, signal.Millis, "x", at), "yes": signal.OfFlag(true, "x", at), "no": signal.OfFlag(false, "x", at),
		"3 (stale)": signal.Of(3, signal.Count, "x", at).Aged(at.Add(time.Hour), time.Second),
	} {
		require.Equal(t, want, v.String())
	}
}
