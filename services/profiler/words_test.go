package profiler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
)

func TestHealthIsToldByWhatItMeans(t *testing.T) {
	refused := fmt.Errorf("observing: %w", syscall.ECONNREFUSED)
	sick := errors.New("disk is read-only")
	type check struct {
		replicas *float64 // the scaler says so before
		err      error
		want     string
	}
	for name, checks := range map[string][]check{
		"starts asleep": {
			{nil, refused, "INFO the cluster does not answer yet"},
			{nil, refused, ""},
			{new(0.0), refused, ""},
			{new(2.0), refused, ""},
			{nil, nil, "INFO the cluster is healthy"},
			{nil, nil, ""},
			{new(0.0), refused, "INFO the cluster sleeps"},
			{nil, refused, ""},
			{new(2.0), refused, ""},
			{nil, nil, "INFO the cluster is healthy"},
		},
		"dies": {
			{new(2.0), nil, "INFO the cluster is healthy"},
			{nil, refused, "WARN the cluster is not healthy"},
			{nil, refused, ""},
			{new(0.0), refused, "INFO the cluster sleeps"},
		},
		"nobody scales it": {{nil, nil, "INFO the cluster is healthy"}, {nil, refused, "WARN the cluster is not healthy"}, {nil, refused, ""}},
		"sick":             {{new(0.0), sick, "WARN the cluster is not healthy"}, {nil, sick, ""}, {nil, nil, "INFO the cluster is healthy"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			a := &App{log: slog.New(slog.NewTextHandler(&log, nil)), metrics: newMetrics(prometheus.NewRegistry()), pools: newPools()}
			w := &watched{cfg: EngineConfig{Name: "batch"}}
			at := time.Now()
			for i, c := range checks {
				at = at.Add(time.Second)
				if c.replicas != nil {
					a.pools.facts.Merge(signal.Observation{Cluster: "batch", Source: "scaler", At: at, Values: map[signal.Name]signal.Value{
						signal.Replicas: signal.Of(*c.replicas, signal.Count, "scaler", at),
					}})
				}
				log.Reset()
				a.tell(context.Background(), w, c.err)
				if c.want == "" {
					require.Empty(t, log.String(), "check %d", i)
					continue
				}
				level, text, _ := strings.Cut(c.want, " ")
				require.Contains(t, log.String(), "level="+level+` msg="`+text+`"`, "check %d", i)
			}
		})
	}
}

func TestComplaintsAreCountedAndRare(t *testing.T) {
	c, at := newComplaints(), time.Now()
	for i, want := range []struct {
		topic string
		after time.Duration
		times int
		due   bool
	}{
		{"a", 0, 1, true},
		{"a", time.Second, 0, false},
		{"b", time.Second, 1, true},
		{"a", 2 * time.Second, 0, false},
		{"a", 10 * time.Second, 3, true},
		{"a", 11 * time.Second, 0, false},
	} {
		times, due := c.add(want.topic, at.Add(want.after))
		require.Equal(t, want.due, due, "%d", i)
		require.Equal(t, want.times, times, "%d", i)
	}
}

func TestTheGistOfAnErrorHasNoAddressAndNoStatement(t *testing.T) {
	for want, err := range map[string]error{
		"dial tcp: connection refused": fmt.Errorf("inserting: %w", &url.Error{Op: "Post", URL: "http://u:p@h/?query=INSERT", Err: errors.New("dial tcp: connection refused")}),
		"Table is gone":                fmt.Errorf("inserting: %w", &clickhouse.Exception{Code: 60, Message: "Table is gone\nINSERT INTO x"}),
		"plain":                        errors.New("plain"),
	} {
		require.Equal(t, want, gistOfError(err))
	}
	require.Less(t, len(gistOfError(errors.New(strings.Repeat("é", 500)))), 210)
}

func TestASpanThatCantBeIsToldWithoutARange(t *testing.T) {
	for want, s := range map[string]float64{"slaSeconds: -5 must be above 0": -5, "slaSeconds: NaN must be above 0": math.NaN(), "slaSeconds: 1e+11 is too large": 1e11} {
		require.EqualError(t, validate(query.Task{SQL: "SELECT 1", Tenant: "a", SLASeconds: &s}), want)
	}
	require.NoError(t, validate(query.Task{SQL: "SELECT 1", Tenant: "a", SLASeconds: new(1e6)}))
}
