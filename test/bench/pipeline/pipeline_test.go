package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
)

func TestMain(m *testing.M) {
	chdb.MaybeRunChild()
	os.Exit(m.Run())
}

// TestItMeasures runs three of the parts with so little to do that the figures mean nothing: it keeps the benchmark from rotting.
func TestItMeasures(t *testing.T) {
	chdbtest.Library(t)
	var out, progress bytes.Buffer
	err := run(t.Context(), []string{
		"-only", "router,latency,profiler", "-rounds", "1", "-tasks", "9000", "-rate", "50", "-window", "1s", "-windows", "1", "-events", "500",
	}, &out, &progress)
	require.NoError(t, err, progress.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var r report
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &r))
	require.Positive(t, r.Router.Ratio)
	require.Equal(t, 50, r.Latency.Ours.N)
	require.Equal(t, 50, r.Latency.Plain.N)
	require.Positive(t, r.Latency.RatioP50)
	require.Positive(t, r.Profiler.Ratio)
	require.EqualValues(t, 500, r.Profiler.RowsByTable["outcomes"])
	require.Contains(t, out.String(), "router, tasks/s")
}

func TestFlagsThatMakeNoSense(t *testing.T) {
	for _, args := range [][]string{{"-only", "routes"}, {"-tasks", "0"}, {"-window", "0s"}, {"-nonsense"}} {
		var out bytes.Buffer
		require.Error(t, run(t.Context(), args, &out, &out), args)
	}
}

func TestMedianAndQuantile(t *testing.T) {
	require.InDelta(t, 2.0, median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 0)
	require.InDelta(t, 0.5, ratio([]float64{1, 1, 9}, []float64{2, 2, 2}), 0)
	list := make([]time.Duration, 100)
	for i := range list {
		list[i] = time.Duration(i+1) * time.Millisecond
	}
	require.InDelta(t, 51, quantile(list, 0.5), 0)
	require.InDelta(t, 100, quantile(list, 0.99), 0)
	require.InDelta(t, 100, quantile(list, 1), 0)
	require.Zero(t, quantile(nil, 0.5))
}

func TestPaceLeavesTheStartOut(t *testing.T) {
	counts := []int64{0, 0, 10, 40, 110}
	at := 0
	p, err := follow(t.Context(), time.Millisecond, 110, func(context.Context) (int64, error) {
		at++
		return counts[at-1], nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 10, p.first)
	require.EqualValues(t, 110, p.last)
	r, err := p.rate()
	require.NoError(t, err)
	require.InDelta(t, 100/p.lastAt.Sub(p.firstAt).Seconds(), r.perSecond, 1e-6)
	_, err = pace{first: 5, last: 5}.rate()
	require.Error(t, err, "what was over at the first look was not measured")
}

func TestGivesUpInWords(t *testing.T) {
	o := &outside{dir: t.TempDir()}
	var cleaned bool
	o.Cleanup(func() { cleaned = true })
	require.EqualError(t, o.do(func() { o.Skipf("no %s here", "Java") }), "no Java here")
	require.EqualError(t, o.do(func() { o.Fatalf("broken") }), "broken")
	require.NoError(t, o.do(func() { require.DirExists(t, o.TempDir()) }))
	require.NoError(t, o.end())
	require.True(t, cleaned)
	require.Panics(t, func() { _ = o.do(func() { panic("something else") }) })
}

func TestFamilyFindsItself(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("memory can be measured on Linux only")
	}
	found, err := family(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, found["pointsman"], 1.0)
}
