package router_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
	"github.com/pointsman/pointsman/services/router"
)

// rulesText is a policy of n rules and a default.
func rulesText(n int, to string) string {
	var b strings.Builder
	b.WriteString("engines:\n  interactive: {kind: clickhouse, slots: 4}\n  batch: {kind: clickhouse, slots: 2, spills: true}\nrules:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: r%d, when: {client_tag: tag%d, estimated_bytes_gte: %d GB}, route: batch}\n", i, i, i+1)
	}
	fmt.Fprintf(&b, "  - {name: default, route: %s}\n", to)
	return b.String()
}

// replace writes a file the way editors and Kubernetes do: beside it, then in its place.
func replace(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

func TestReloadLosesNoRequest(t *testing.T) {
	b := newBench(t, 3)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	first, second := rulesText(500, "interactive"), rulesText(500, "batch")
	replace(t, file, first)
	metrics := b.startOn(file)

	const requests = 600
	stop := make(chan struct{})
	reloads := make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				reloads <- n
				return
			case <-time.After(20 * time.Millisecond):
			}
			// A good one, a bad one, and the first again.
			replace(t, file, []string{second, "rules: [", first}[n%3])
			n++
		}
	}()
	for i := range requests {
		b.publish(event.TopicRequests, fmt.Sprintf("q%d", i), "", fmt.Sprintf(`{"id":"q%d","sql":"SELECT %d","tenant":"t"}`, i, i))
	}
	got := byID(b.decisions(requests))
	close(stop)
	require.Positive(t, <-reloads)
	require.Len(t, got, requests)
	places := map[string]string{policy.Hash([]byte(first)): "interactive", policy.Hash([]byte(second)): "batch"}
	seen := map[string]int{}
	for i := range requests {
		d, ok := got[fmt.Sprintf("q%d/1", i)]
		require.True(t, ok, "request %d has no decision", i)
		require.Equal(t, event.Route, d.Kind)
		require.Equal(t, places[d.PolicyHash], d.Cluster, "a decision is wholly of one policy")
		seen[d.PolicyHash]++
	}
	require.Len(t, seen, 2, "both policies have decided")

	replace(t, file, second)
	require.Eventually(t, func() bool { return strings.Contains(metrics(), `pointsman_router_policy_refused 0`) }, 5*time.Second, 10*time.Millisecond)
	require.Contains(t, metrics(), `pointsman_router_policy_reloads_total{result="taken"}`)
	require.Contains(t, metrics(), `pointsman_router_policy_reloads_total{result="refused"}`)
	replace(t, file, "engines: 7")
	require.Eventually(t, func() bool { return strings.Contains(metrics(), `pointsman_router_policy_refused 1`) }, 5*time.Second, 10*time.Millisecond)
}

// startOn starts a router with a policy file that it looks at all the time. It returns the router's counters and gauges, one a
// line as Prometheus writes them.
func (b *bench) startOn(file string) func() string {
	b.t.Helper()
	cfg := router.Default()
	cfg.Kafka = b.broker.Config
	cfg.Telemetry.Admin.Address, cfg.HTTP.Address = "127.0.0.1:0", "127.0.0.1:0"
	cfg.History.Addr = []string{"127.0.0.1:1"}
	cfg.Profiles.LookupDeadline, cfg.Group.SessionTimeout = 20*time.Millisecond, 2*time.Second
	cfg.Policy.File, cfg.Policy.Reload = file, 5*time.Millisecond
	tel, _ := telemetrytest.New(b.t, "router")
	app, err := router.New(b.t.Context(), cfg, tel)
	require.NoError(b.t, err)
	require.NoError(b.t, app.Start(b.t.Context()))
	b.t.Cleanup(func() { _ = app.Stop(context.Background()) })
	return func() string {
		families, err := tel.Registry.Gather()
		require.NoError(b.t, err)
		var out strings.Builder
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := f.GetName()
				for _, l := range m.GetLabel() {
					name += fmt.Sprintf("{%s=%q}", l.GetName(), l.GetValue())
				}
				fmt.Fprintf(&out, "%s %g\n", name, m.GetCounter().GetValue()+m.GetGauge().GetValue())
			}
		}
		return out.String()
	}
}

const latchPolicy = `
engines:
  interactive: {kind: clickhouse, slots: 4}
  batch: {kind: clickhouse, slots: 2, spills: true}
latches:
  saturated: {watch: interactive_queue_wait_ms, enter_gte: 2000, enter_hold_seconds: 3, leave_lt: 500, leave_hold_seconds: 10}
rules:
  - {name: spill, when: {saturated: true, client_tag: interactive}, route: batch, reason: "interactive queue saturated"}
  - {name: default, route: interactive}
`

// TestLatchIsFoldedFromTheTopic: a router that starts later has the state of one that was there all the time, also for a
// latch whose last signal alone would not show it.
func TestLatchIsFoldedFromTheTopic(t *testing.T) {
	b := newBench(t, 1)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	replace(t, file, latchPolicy)
	start := time.Now().UTC().Add(-20 * time.Second)
	observe := func(second int, wait float64) {
		at := start.Add(time.Duration(second) * time.Second)
		value := func(v float64) signal.Value { return signal.Of(v, signal.Count, "test", at) }
		data, err := json.Marshal(signal.Observation{Cluster: "interactive", Source: "test", At: at, Values: map[signal.Name]signal.Value{
			signal.Ready: value(1), signal.Healthy: value(1), signal.EstWaitMs: value(wait),
		}})
		require.NoError(t, err)
		b.publish(event.TopicSignals, "interactive/test", event.ClusterObserved, string(data))
	}
	observe(3600, 0) // a clock that is an hour ahead: it must not hide what comes behind it
	for s := range 8 {
		observe(s, 2500)
	}
	for s := 8; s < 20; s++ {
		observe(s, 1000) // between the edges: it stays as it is
	}
	metrics := b.startOn(file)
	ask := func(id string) event.RouteDecision {
		b.publish(event.TopicRequests, id, "", fmt.Sprintf(`{"id":%q,"sql":"SELECT 1","tenant":"t","tags":["interactive"],"slaSeconds":30}`, id))
		var d event.RouteDecision
		require.Eventually(t, func() bool {
			var ok bool
			d, ok = byID(b.decisions(1))[id+"/1"]
			return ok
		}, 10*time.Second, 20*time.Millisecond)
		return d
	}
	require.Equal(t, "spill", ask("a").Rule)
	require.Contains(t, metrics(), `pointsman_router_latch{latch="saturated"} 1`)

	// A policy that comes later has the state that it would have had from the start.
	replace(t, file, strings.Replace(latchPolicy, "enter_gte: 2000", "enter_gte: 2400", 1))
	require.Eventually(t, func() bool { return strings.Contains(metrics(), `policy_reloads_total{result="taken"} 1`) }, 5*time.Second, 10*time.Millisecond)
	require.Equal(t, "spill", ask("b").Rule)
	replace(t, file, strings.Replace(latchPolicy, "enter_gte: 2000", "enter_gte: 2600", 1))
	require.Eventually(t, func() bool { return strings.Contains(metrics(), `policy_reloads_total{result="taken"} 2`) }, 5*time.Second, 10*time.Millisecond)
	require.Equal(t, "default", ask("c").Rule, "it never went on")
	require.Contains(t, metrics(), `pointsman_router_latch{latch="saturated"} -1`)
}

// TestSignalsAreKeptForTheLatches: a router that starts can fold a latch from all that it may depend on.
func TestSignalsAreKeptForTheLatches(t *testing.T) {
	specs, err := topicadmin.Specs()
	require.NoError(t, err)
	i := slices.IndexFunc(specs, func(s topicadmin.Spec) bool { return s.Name == event.TopicSignals })
	require.GreaterOrEqual(t, i, 0)
	require.GreaterOrEqual(t, specs[i].CompactionLag, policy.LongestKeep+5*time.Minute)
	require.Equal(t, fmt.Sprint(specs[i].CompactionLag.Milliseconds()), specs[i].Configs()["min.compaction.lag.ms"])
}
