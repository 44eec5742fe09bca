package route_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

const admissionPolicy = `
engines:
  one: {kind: clickhouse}
rules:
  - {name: default, route: auto}
summaries:
  events: events_summary
budgets:
  agent_session: {max_queries: 10, max_bytes: 100 GB, max_repeats: 3, max_growing: 4}
  batch_principal: {max_concurrent: 4}
  tenant: {max_queries: 100, max_concurrent: 8}
`

// asking is an agent that wants to scan a month of events.
func asking(t *testing.T) route.Input {
	p, err := policy.Load("p.yaml", []byte(admissionPolicy))
	require.NoError(t, err)
	at := time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)
	events := shape.Table{Name: "events"}
	return route.Input{
		Task: query.Task{
			ID: "t1", SQL: "SELECT * FROM events WHERE event_date >= '2026-10-01' AND event_date < '2026-10-31'", Tenant: "support", User: "bot",
			Session: &query.Session{ID: "s1", Class: query.Agent}, SubmittedAt: &at,
		},
		Attempt: 1, Policy: p, Now: at.Add(10 * time.Millisecond),
		Shape: shape.Shape{Statement: shape.Select, ReadOnly: true, Tables: []shape.Table{events}, Source: shape.FromTokens, Prunable: []shape.Predicate{
			{Table: events, Column: "event_date", Op: shape.Ge, Value: shape.StringValue("2026-10-01")},
			{Table: events, Column: "event_date", Op: shape.Lt, Value: shape.StringValue("2026-10-31")},
		}},
		Estimates: map[string]signal.Value{route.ScanBytes: signal.Of(300e9, signal.Bytes, "iceberg", at)},
		Session:   &route.SessionAccount{Usage: budget.Usage{Queries: 2, Bytes: 70e9}},
	}
}

func TestRefusalNamesTheSmallestChange(t *testing.T) {
	in := asking(t)
	d := route.Decide(in)
	require.Equal(t, event.Reject, d.Kind)
	require.Equal(t, "session_byte_budget", d.Rejection.Code)
	require.Equal(t, "This session has 30.0 GB of its budget of 100.0 GB left and this query would scan about 300.0 GB. "+
		"Filter event_date to at most 3 of 30 days, or query events_summary instead, which is a summary.", d.Rejection.Message)
	require.Equal(t, "the session has 30.0 GB of its budget of 100.0 GB left, and this query would scan about 300.0 GB", d.Reasons[0].Text)
	require.Contains(t, d.Rejection.Estimate, "scanBytes")
	left, _ := d.Rejection.Left["bytes"].Get()
	require.InDelta(t, 30e9, left, 1)

	in.Shape.Prunable = nil
	require.Contains(t, route.Decide(in).Rejection.Suggestion, "Add a filter that leaves at most 30.0 GB (10 %) of events")

	in.Estimates[route.ScanBytes] = signal.Of(300e9, signal.Bytes, "catalog", in.Now)
	require.Contains(t, route.Decide(in).Rejection.Suggestion, "the estimate counts whole tables, so a filter does not lower it",
		"no advice that would not help")

	in.Session.Usage.Bytes = 100e9
	require.Equal(t, "Query events_summary instead, which is a summary.", route.Decide(in).Rejection.Suggestion)
	in.Policy.Summaries = nil
	require.Equal(t, "Nothing is left that a query could scan. Summarise what you have.", route.Decide(in).Rejection.Suggestion)
}

// A summary that would not fit either is no advice, and of several the smallest comes first.
func TestRefusalNamesSummariesThatFit(t *testing.T) {
	in := asking(t)
	in.Policy.Summaries = map[string][]string{"events": {"by_hour", "by_second", "by_day", "by_mood"}}
	in.SummaryBytes = map[string]signal.Value{
		"by_hour": signal.Of(2e9, signal.Bytes, "catalog", in.Now), "by_second": signal.Of(31e9, signal.Bytes, "catalog", in.Now),
		"by_day": signal.Of(1e8, signal.Bytes, "catalog", in.Now), "by_mood": signal.Missing("catalog"),
	}
	require.Contains(t, route.Decide(in).Rejection.Suggestion, "query by_day (100.0 MB) or by_hour (2.0 GB) or by_mood instead, which is a summary")
	in.Session.Usage.Bytes = 100e9
	require.Equal(t, "Query by_mood instead, which is a summary.", route.Decide(in).Rejection.Suggestion)
}

func TestAdmission(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*route.Input)
		code   string
	}{
		"fits": {func(in *route.Input) {
			in.Session.Usage.Bytes = 0
			in.Estimates[route.ScanBytes] = signal.Of(1, signal.Bytes, "iceberg", in.Now)
		}, ""},
		"unknown bytes":         {func(in *route.Input) { in.Estimates[route.ScanBytes] = signal.Missing("iceberg") }, ""},
		"the account elsewhere": {func(in *route.Input) { in.Session = nil }, ""},
		"a human":               {func(in *route.Input) { in.Task.Session.Class = query.Human }, ""},
		"admitted before":       {func(in *route.Input) { in.Session.Admitted = true }, ""},
		"a later attempt":       {func(in *route.Input) { in.Attempt = 2 }, ""},
		"a loop":                {func(in *route.Input) { in.Session.Repeats = 3 }, "session_loop_repeats"},
		"a loop that grows":     {func(in *route.Input) { in.Session.Growing = 5 }, "session_loop_grows"},
		"queries used up":       {func(in *route.Input) { in.Session.Usage = budget.Usage{Queries: 10} }, "session_query_budget"},
		"tenant first": {func(in *route.Input) {
			in.Session.Repeats, in.Tenant = 3, &route.TenantAccount{Running: 8}
		}, "tenant_quota_concurrency"},
		"tenant's queries": {func(in *route.Input) {
			in.Tenant = &route.TenantAccount{Slices: []budget.Slice{{Leaves: in.Now.Add(time.Minute), Queries: 100}}}
		}, "tenant_quota_queries"},
		"counted before": {func(in *route.Input) {
			in.Session.Admitted, in.Tenant = true, &route.TenantAccount{Running: 8, Admitted: true}
		}, ""},
		"admitted by its session, so not refused by its tenant": {func(in *route.Input) {
			in.Session.Admitted, in.Tenant = true, &route.TenantAccount{Running: 8}
		}, ""},
		"a batch principal": {func(in *route.Input) {
			in.Task.Session.Class, in.Tenant = query.Batch, &route.TenantAccount{Running: 5, PrincipalRunning: 4}
		}, "concurrency_quota"},
		"not a batch principal": {func(in *route.Input) {
			in.Task.Session.Class, in.Tenant = query.Human, &route.TenantAccount{Running: 5, PrincipalRunning: 4}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := asking(t)
			c.change(&in)
			d := route.Decide(in)
			require.Equal(t, in.Session == nil, slices.Contains(d.Unknown, "what the session has used (another router keeps its account)"))
			if c.code == "" {
				require.Equal(t, event.Route, d.Kind, "%v", d.Rejection)
				return
			}
			require.Equal(t, event.Reject, d.Kind)
			require.Equal(t, c.code, d.Rejection.Code)
			require.Equal(t, c.code, d.Reasons[0].Code)
			require.NotContains(t, d.Reasons[0].Text, "{", "every argument of the template is there")
			require.NotEmpty(t, d.Rejection.Suggestion)
			require.Empty(t, d.Candidates, "no engine was looked at")
		})
	}
}

// A Task that was refused before gets the same answer, whatever has become of its budget since.
func TestRefusedOnceRefusedAgain(t *testing.T) {
	in := asking(t)
	first := route.Decide(in).Rejection
	in.Session = &route.SessionAccount{Refused: first}
	again := route.Decide(in)
	require.Equal(t, event.Reject, again.Kind)
	require.Equal(t, first, again.Rejection)
}
