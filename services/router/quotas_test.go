package router_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/deploy/policies"
	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/router"
)

// withBudgets is the shipped policy with other budgets.
func (b *bench) withBudgets(yaml string) {
	b.t.Helper()
	head, _, found := strings.Cut(string(policies.Default), "\nbudgets:")
	require.True(b.t, found)
	if b.policy == "" {
		b.policy = filepath.Join(b.t.TempDir(), "policy.yaml")
	}
	require.NoError(b.t, os.WriteFile(b.policy, []byte(head+"\nbudgets:\n"+yaml), 0o600))
}

func (b *bench) end(id, tenant string, bytes int64) {
	b.t.Helper()
	data, err := event.Marshal(event.Outcome{
		TaskID: id, Status: event.Succeeded, Tenant: tenant, Attempts: 1, Stats: event.Stats{ReadBytes: &bytes}, SubmittedAt: time.Now(), FinishedAt: time.Now(),
	})
	require.NoError(b.t, err)
	b.publish(event.TopicOutcomes, id, event.TaskEnded, string(data))
}

// The stated bound: what is let in beyond a quota is at most what the other routers decide while their decisions are on the way here, and
// never more than the quota once for each of them.
func TestTwoRoutersOvershootAQuotaByLittle(t *testing.T) {
	const quota, asked, routers = 20, 400, 2
	b := newBench(t, 4)
	b.withBudgets(fmt.Sprintf("  agent_session: {max_queries: 10}\n  tenant: {max_concurrent: %d}\n", quota))
	one := b.start()
	tel := b.tel
	b.start()
	partitions := func(app *router.App) (list []int32) {
		require.NoError(t, json.Unmarshal(b.get(app, "/v1/budgets")["partitions"], &list))
		return list
	}
	require.Eventually(t, func() bool { return len(partitions(one)) == 2 && len(partitions(b.app)) == 2 }, 20*time.Second, 50*time.Millisecond)
	request := func(tenant string, i int) *kgo.Record {
		return &kgo.Record{
			Topic: event.TopicRequests, Key: fmt.Append(nil, tenant, i), Value: fmt.Appendf(nil, `{"id":"%s%d","sql":"SELECT %d","tenant":%q}`, tenant, i, i, tenant),
		}
	}
	let := map[string]int{}
	count := func(n int) {
		clear(let)
		for _, d := range byID(b.decisions(n)) {
			if d.Kind == event.Route {
				let[d.Task.Tenant]++
				continue
			}
			require.Equal(t, budget.TenantConcurrent, d.Rejection.Code)
			require.NotNil(t, d.Rejection.RetryAfterSeconds)
			require.Contains(t, d.Rejection.Message, "queries running")
		}
	}
	for i := range 2 * quota {
		require.NoError(t, b.client.ProduceSync(t.Context(), request("slow", i)).FirstErr())
		count(i + 1) // the next comes when this one has its answer
	}
	require.GreaterOrEqual(t, let["slow"], quota)
	require.LessOrEqual(t, let["slow"], quota+3, "who asks one after the other is let in hardly more often")

	flood := make([]*kgo.Record, asked)
	for i := range flood {
		flood[i] = request("flood", i)
	}
	require.NoError(t, b.client.ProduceSync(t.Context(), flood...).FirstErr())
	count(2*quota + asked)
	require.GreaterOrEqual(t, let["flood"], quota)
	require.LessOrEqual(t, let["flood"], quota*routers)
	time.Sleep(500 * time.Millisecond) // until both have read what the other has decided
	seen := max(overshoot(t, tel), overshoot(t, b.tel))
	t.Logf("quota %d, %d routers: %d too many one after the other, %d too many in a flood; the routers saw %g too many on average", quota, routers,
		let["slow"]-quota, let["flood"]-quota, seen)
	if let["flood"] > quota {
		require.Positive(t, seen, "the overshoot is exported")
	}
	for i := range asked {
		b.end(fmt.Sprint("flood", i), "flood", 10)
	}
	require.Eventually(t, func() bool {
		return strings.Contains(string(b.get(b.app, "/v1/budgets?tenant=flood")["tenants"]), `"running":0`)
	}, 10*time.Second, 50*time.Millisecond, "every slot is free again")
}

// overshoot is the most that a router has seen a quota exceeded by, on average over the decisions by which it was.
func overshoot(t *testing.T, tel *telemetry.Telemetry) (most float64) {
	families, err := tel.Registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != "pointsman_router_quota_overshoot" {
			continue
		}
		for _, m := range f.GetMetric() {
			most = max(most, m.GetHistogram().GetSampleSum()/float64(m.GetHistogram().GetSampleCount()))
		}
	}
	return most
}

// Quotas hold across a restart, and a policy that begins to count counts what was before.
func TestQuotasAreRebuilt(t *testing.T) {
	b := newBench(t, 2)
	b.withBudgets("  tenant: {max_queries: 100}\n")
	app := b.start()
	ask := func(id, tags string) event.RouteDecision {
		b.publish(event.TopicRequests, id, "", fmt.Sprintf(`{"id":%q,"sql":"SELECT 1","tenant":"a","user":"etl","tags":[%s]}`, id, tags))
		var d event.RouteDecision
		require.Eventually(t, func() bool {
			all := b.decisions(1)
			for _, one := range all {
				if one.TaskID == id {
					d = one
					return true
				}
			}
			return false
		}, 10*time.Second, 20*time.Millisecond)
		return d
	}
	for i := range 3 {
		require.Equal(t, event.Route, ask(fmt.Sprint("q", i), "").Kind)
	}
	require.NoError(t, app.Stop(t.Context()))

	b.withBudgets("  tenant: {max_queries: 4}\n  batch_principal: {max_concurrent: 1}\n")
	b.start()
	require.Equal(t, event.Route, ask("q3", `"batch"`).Kind)
	d := ask("q4", "")
	require.Equal(t, budget.TenantQueries, d.Rejection.Code, "three before the restart, and one after it")
	require.NotNil(t, d.Rejection.RetryAfterSeconds)
	require.Greater(t, *d.Rejection.RetryAfterSeconds, int64(3000), "an hour's window has just begun")

	b.withBudgets("  tenant: {max_queries: 50}\n  batch_principal: {max_concurrent: 1}\n")
	time.Sleep(2500 * time.Millisecond) // the file is looked at every two seconds
	d = ask("q5", `"batch"`)
	require.Equal(t, budget.Concurrent, d.Rejection.Code, "q3 still runs")
	b.end("q3", "a", 1)
	require.Eventually(t, func() bool {
		return !strings.Contains(string(b.get(b.app, "/v1/budgets?tenant=a")["tenants"]), `"a/etl"`)
	}, 10*time.Second, 50*time.Millisecond)
	require.Equal(t, event.Route, ask("q6", `"batch"`).Kind)
}

// A loop is told that it is one, in words that a model can follow.
func TestLoopsAreStopped(t *testing.T) {
	b := newBench(t, 1)
	b.withBudgets("  agent_session: {max_repeats: 3}\n")
	b.start()
	for i := range 6 {
		b.publish(event.TopicRequests, "s1", "", fmt.Sprintf(
			`{"id":"q%d","sql":"SELECT  count(*)\n FROM t WHERE x = 7","tenant":"a","session":{"id":"s1","class":"agent"}}`, i))
	}
	b.publish(event.TopicRequests, "s1", "", `{"id":"other","sql":"SELECT count(*) FROM t WHERE x = 8","tenant":"a","session":{"id":"s1","class":"agent"}}`)
	all := byID(b.decisions(7))
	for i := range 6 {
		d := all[fmt.Sprintf("q%d/1", i)]
		if i < 3 {
			require.Equal(t, event.Route, d.Kind)
			continue
		}
		require.Equal(t, budget.LoopRepeats, d.Rejection.Code)
		require.Contains(t, d.Rejection.Message, "3 times already")
		require.Contains(t, d.Rejection.Suggestion, "Use the answer you have")
	}
	require.Equal(t, event.Route, all["other/1"].Kind, "the same fingerprint with another literal is another query")
}
