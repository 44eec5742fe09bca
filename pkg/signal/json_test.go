package signal_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/signal"
)

func TestComputedNumbersAreShort(t *testing.T) {
	type pair struct {
		Known  signal.Value `json:"known"`
		Zero   signal.Value `json:"zero"`
		Absent signal.Value `json:"absent"`
		Left   signal.Value `json:"left,omitzero"`
	}
	in := pair{Known: signal.Of(1.5, "", "", time.Time{}), Zero: signal.Of(0, "", "", time.Time{})}
	data, err := json.Marshal(in)
	require.NoError(t, err)
	require.JSONEq(t, `{"known":1.5,"zero":0,"absent":{"state":"absent"}}`, string(data))
	var back pair
	require.NoError(t, json.Unmarshal(data, &back))
	require.Empty(t, cmp.Diff(in, back, cmp.AllowUnexported(signal.Value{})))
	var long signal.Value
	require.NoError(t, json.Unmarshal([]byte(`{"state":"known","value":0}`), &long))
	require.Equal(t, in.Zero, long, "what older writers wrote in full")
	require.NoError(t, json.Unmarshal([]byte(`null`), &long))
	require.Equal(t, signal.Value{}, long)
	for _, bad := range []string{`"fast"`, `[1]`, `true`} {
		require.Error(t, json.Unmarshal([]byte(bad), &long), bad)
	}
}

// TestJSONIsThatOfTheLibrary holds the hand-written form against the one that encoding/json would write.
func TestJSONIsThatOfTheLibrary(t *testing.T) {
	type plain struct {
		State  signal.State `json:"state"`
		Value  *float64     `json:"value,omitempty"`
		Unit   signal.Unit  `json:"unit,omitempty"`
		Source string       `json:"source,omitempty"`
		At     *time.Time   `json:"at,omitempty"`
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 1e-9, 1e21, -1e-7, 123456789.25})).Draw(t, "n")
		when := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).UTC()
		v := signal.Of(n, signal.Unit(rapid.String().Draw(t, "unit")), "s"+rapid.String().Draw(t, "source"), when)
		if rapid.Bool().Draw(t, "stale") {
			v = v.Aged(when.Add(time.Hour), time.Second)
		}
		want := plain{State: v.State(), Unit: v.Unit, Source: v.Source, At: &when}
		if got, ok := v.Last(); ok {
			want.Value = &got
		}
		expected, err := json.Marshal(want)
		require.NoError(t, err)
		got, err := json.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, string(expected), string(got))
		require.False(t, math.IsNaN(n))
	})
}

func BenchmarkMarshal(b *testing.B) {
	v := signal.Of(4124.426, signal.Millis, "engine", at)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(v); err != nil {
			b.Fatal(err)
		}
	}
}
