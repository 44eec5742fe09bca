package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
)

const onePool = `
engines:
  one: {kind: clickhouse}
rules:
  - {name: default, route: auto}
`

func load(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Load("p.yaml", []byte(onePool+text))
	require.NoError(t, err)
	return p
}

func TestBudgets(t *testing.T) {
	p := load(t, `
summaries:
  Events: events_summary
  sales.orders: [orders_daily, orders_monthly]
budgets:
  tenants:
    big: {max_bytes: unlimited, max_concurrent: 50}
    small: {window_seconds: 600, max_queries: 5}
  agent_session: {max_queries: 200, max_bytes: 2 TB, max_wall_ms: 600000, max_repeats: 20, max_growing: 6}
  batch_principal: {max_concurrent: 4}
  tenant: {max_bytes: 10 TB, max_concurrent: 10}
`)
	b := p.Budgets
	require.Equal(t, &budget.Limits{MaxQueries: 200, MaxBytes: 2e12, MaxWall: 10 * time.Minute, MaxRepeats: 20, MaxGrowing: 6}, b.AgentSession)
	require.Equal(t, 4, b.BatchMaxConcurrent)
	require.Equal(t, budget.TenantLimits{Window: time.Hour, MaxBytes: 10e12, MaxConcurrent: 10}, b.OfTenant("anybody"))
	require.Equal(t, budget.TenantLimits{Window: time.Hour, MaxConcurrent: 50}, b.OfTenant("big"), "what it names is its own, and may be no limit")
	require.Equal(t, budget.TenantLimits{Window: 10 * time.Minute, MaxQueries: 5, MaxBytes: 10e12, MaxConcurrent: 10}, b.OfTenant("small"),
		"what it leaves out is everybody's, though that stands behind it")
	window, on := b.Quotas()
	require.True(t, on)
	require.Equal(t, time.Hour, window)

	require.Equal(t, []string{"events_summary"}, p.SummariesOf([]string{"lake.prod.EVENTS"}))
	require.Equal(t, []string{"orders_daily", "orders_monthly"}, p.SummariesOf([]string{"Sales.Orders", "sales.orders", "nation"}))
	require.Empty(t, p.SummariesOf([]string{"hr.orders"}), "that one is of another schema")
}

func TestNoBudgets(t *testing.T) {
	p := load(t, "")
	_, on := p.Budgets.Quotas()
	require.False(t, on)
	require.False(t, p.Budgets.OfTenant("a").On())
	require.Nil(t, p.Budgets.OfSession(query.Task{Session: &query.Session{ID: "s", Class: query.Agent}}))
}

func TestSessionsWithABudget(t *testing.T) {
	b := load(t, "budgets: {agent_session: {max_queries: 1}}").Budgets
	require.NotNil(t, b.OfSession(query.Task{Session: &query.Session{ID: "s", Class: query.Agent}}))
	for _, s := range []*query.Session{nil, {Class: query.Agent}, {ID: "s"}, {ID: "s", Class: query.Human}, {ID: "s", Class: query.Batch}} {
		require.Nil(t, b.OfSession(query.Task{Session: s}))
	}
}

func TestFaultsOfBudgets(t *testing.T) {
	for text, want := range map[string]string{
		"budgets: {agent_session: {max_query: 1}}":          "budgets.agent_session.max_query: unknown key of a session budget",
		"budgets: {agent_session: {max_repeats: 0}}":        "budgets.agent_session.max_repeats: 0 is outside the range 1 to 200",
		"budgets: {tenant: {window_seconds: 1}}":            "budgets.tenant.window_seconds: must be at least 10",
		"budgets: {tenants: {a: {max_concurrent: -1}}}":     "budgets.tenants.a.max_concurrent: -1 is outside the range",
		"budgets: {tenants: [a]}":                           "budgets.tenants: must be a mapping of keys to values",
		"budgets: {tenants: {a: {max_bytes: lots}}}":        "budgets.tenants.a.max_bytes: \"lots\" is no size",
		"budgets: {batch_principal: {max_concurrent: 1.5}}": "budgets.batch_principal.max_concurrent",
		"summaries: {events: 7}":                            "summaries.events: must be",
		"summaries: events_summary":                         "summaries: must be a mapping",
	} {
		_, err := policy.Load("p.yaml", []byte(onePool+text))
		require.Error(t, err, text)
		require.Contains(t, err.Error(), want)
	}
}
