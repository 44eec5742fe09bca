package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/policy"
)

func TestQueuesBeginWithWhatTheirEngineSays(t *testing.T) {
	p, err := policy.Load("p.yaml", []byte(`
engines:
  trino-a:
    queues:
      - {queue: tenant_a, resource: small, tenants: [tenant_a], slots: 5}
      - {queue: offline, resource: large, classes: batch, max_memory_per_query: 8 GB, cost_per_second: 4}
    kind: trino
    slots: 20
    max_memory_per_query: 2 GB
    lacks: [recursive]
    udfs: []
  reporting: {kind: postgres, replica: true, max_lag_ms: 5000, commit_ts: unix_ms}
rules: [{name: default, route: auto}]
`))
	require.NoError(t, err)
	trino, _ := p.Pool("trino-a")
	require.Len(t, trino.Targets(), 2)
	small, large := trino.Lanes[0], trino.Lanes[1]
	require.Equal(t, []any{"trino-a", "trino", "tenant_a", "small", 5, int64(2e9), 1.0, "trino-a/tenant_a"},
		[]any{small.Name, small.Kind, small.Queue, small.Resource, small.Slots, small.MaxMemoryPerQuery, small.CostPerSecond, small.SignalKey})
	require.Equal(t, []any{"offline", "large", 20, int64(8e9), 4.0, []string{"batch"}},
		[]any{large.Queue, large.Resource, large.Slots, large.MaxMemoryPerQuery, large.CostPerSecond, large.LaneClasses})
	require.Equal(t, []policy.Feature{policy.Recursion}, small.Lacks)
	require.True(t, small.UDFs != nil && len(small.UDFs) == 0, "an empty list is not a missing one")

	reporting, _ := p.Pool("reporting")
	require.Nil(t, reporting.UDFs)
	require.Len(t, reporting.Targets(), 1)
	require.Empty(t, reporting.Targets()[0].SignalKey)
	at, ok := reporting.CommitTS.Time(1_700_000_000_123)
	require.True(t, ok)
	require.Equal(t, time.UnixMilli(1_700_000_000_123), at)
	_, ok = policy.CommitUnit("").Time(1)
	require.False(t, ok)
}

func TestFaultsOfEnginesAndExploration(t *testing.T) {
	for text, want := range map[string]string{
		"a: {kind: x, queues: []}":                                       "names no queue",
		"a: {kind: x, queues: [{resource: r}]}":                          "`queue` is missing",
		"a: {kind: x, queues: [{queue: q}, {queue: q}]}":                 "stands here twice",
		"a: {kind: x, queues: [{queue: q, classes: robot}]}":             `"robot" is none of human, batch, agent`,
		"a: {kind: x, queues: [{queue: q, wake_ms: 3}]}":                 "unknown key of a queue",
		"a: {kind: x, lacks: [joins]}":                                   `"joins" is none of window, recursive, regex, json`,
		"a: {kind: x, max_lag_ms: 5}":                                    "say `replica: true`",
		"a: {kind: x, replica: true, commit_ts: minutes}":                `"minutes" is none of unix_s`,
		"a: {kind: x}}\nexploration: {share: 0.6}\nx: {":                 "outside the range 0 to 0.5",
		"a: {kind: x}}\nexploration: {share: 0.3, new_share: 0.3}\nx: {": "add up to 0.6",
		"a: {kind: x}}\nexploration: {rate: 0.3}\nx: {":                  "unknown key of the exploration",
		"a: {kind: x}}\ndefaults: {no_candidate: hope}\nx: {":            `"hope" is none of reject, wait`,
	} {
		_, err := policy.Load("p.yaml", []byte("engines: {"+text+"}\nrules: [{name: default, route: auto}]\n"))
		require.ErrorContains(t, err, want, text)
	}
}

func TestExplorationIsOffUnlessAskedFor(t *testing.T) {
	require.False(t, seedPolicy(t).Exploration.On())
	p, err := policy.Load("p.yaml", []byte("engines: {a: {kind: x}}\nrules: [{name: default, route: auto}]\nexploration: {share: 0.02, new_share: 0.05, new_below_runs: 5}\n"))
	require.NoError(t, err)
	require.Equal(t, policy.Exploration{Share: 0.02, NewShare: 0.05, NewBelowRuns: 5, MaxExtraShare: 0.02}, p.Exploration)
	require.True(t, p.Exploration.On())
	require.Equal(t, policy.RejectTask, p.Defaults.NoCandidate)
}
