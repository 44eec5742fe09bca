package budget_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
)

const window = time.Hour

func routed(id string, at time.Time, bytes int64) budget.Routed {
	return budget.Routed{TaskID: id, Tenant: "a", Principal: "a/etl", At: at, Deadline: at.Add(10 * time.Minute), Bytes: &bytes}
}

func TestTenantsCountEachTaskOnce(t *testing.T) {
	b := budget.NewTenants()
	require.True(t, b.Routed(routed("1", now, 100), window))
	require.False(t, b.Routed(routed("1", now, 100), window))
	b.Routed(routed("2", now, 50), window)
	a := b.Account("a", "a/etl", "3", window, now)
	require.EqualValues(t, 2, a.Running)
	require.EqualValues(t, 2, a.PrincipalRunning)
	require.False(t, a.Admitted)
	require.EqualValues(t, 150, a.Total().Bytes)
	require.True(t, b.Account("a", "", "1", window, now).Admitted)

	e := budget.End{TaskID: "1", Bytes: new(int64(40)), ExecMs: new(int64(7))}
	b.Ended(e)
	b.Ended(e)
	require.False(t, b.Routed(routed("1", now, 100), window), "a decision that is read again")
	b.Ended(budget.End{TaskID: "2", Void: true})
	a = b.Account("a", "a/etl", "1", window, now)
	require.Zero(t, a.Running)
	require.True(t, a.Admitted)
	require.Equal(t, budget.Slice{Queries: 1, Bytes: 40, ExecMs: 7}, a.Total())

	require.EqualValues(t, 1, b.Account("a", "", "", window, now.Add(window-time.Minute)).Total().Queries)
	require.Zero(t, b.Account("a", "", "", window, now.Add(window+window/12)).Total().Queries, "it has left the window")
}

func TestTenantsOutcomeBeforeItsDecision(t *testing.T) {
	b := budget.NewTenants()
	b.Ended(budget.End{TaskID: "1", Bytes: new(int64(40))})
	require.True(t, b.Routed(routed("1", now, 100), window))
	a := b.Account("a", "a/etl", "", window, now)
	require.Zero(t, a.Running)
	require.Equal(t, budget.Slice{Queries: 1, Bytes: 40}, a.Total())
	require.False(t, b.Routed(routed("1", now, 100), window))
}

// A slot whose Task never ends is free when the Task can't run any longer.
func TestTenantsLoseNoSlot(t *testing.T) {
	b := budget.NewTenants()
	b.Routed(routed("1", now, 1), window)
	b.Forget(window, now.Add(10*time.Minute))
	require.EqualValues(t, 1, b.Account("a", "a/etl", "", window, now).PrincipalRunning)
	b.Forget(window, now.Add(12*time.Minute))
	require.Zero(t, b.Account("a", "a/etl", "", window, now).PrincipalRunning)
	b.Ended(budget.End{TaskID: "1", Bytes: new(int64(1))})
	require.Zero(t, b.Account("a", "a/etl", "", window, now).Running, "its late end frees nothing twice")
}

// However the two topics interleave and whatever comes twice, all routers count the same.
func TestTenantsDoNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "tasks")
		var events []func(*budget.Tenants)
		for i := range n {
			id := fmt.Sprint(i)
			r := routed(id, now.Add(time.Duration(rapid.IntRange(0, 7200).Draw(rt, "at"))*time.Second), rapid.Int64Range(0, 100).Draw(rt, "bytes"))
			events = append(events, func(b *budget.Tenants) { b.Routed(r, window) })
			if rapid.Bool().Draw(rt, "ends") {
				e := budget.End{TaskID: id, Bytes: new(rapid.Int64Range(0, 100).Draw(rt, "read")), Void: rapid.Bool().Draw(rt, "void")}
				events = append(events, func(b *budget.Tenants) { b.Ended(e) })
			}
		}
		one, other := budget.NewTenants(), budget.NewTenants()
		for _, e := range events {
			e(one)
		}
		for _, e := range rapid.Permutation(append(events, events[:n/2]...)).Draw(rt, "order") {
			e(other)
		}
		at := now.Add(2 * time.Hour)
		require.Equal(t, one.Account("a", "a/etl", "", window, at), other.Account("a", "a/etl", "", window, at))
	})
}

func TestCheckTenant(t *testing.T) {
	l := budget.TenantLimits{Window: time.Hour, MaxQueries: 10, MaxBytes: 1000, MaxConcurrent: 3}
	slices := []budget.Slice{{Leaves: now.Add(10 * time.Minute), Queries: 2, Bytes: 300}, {Leaves: now.Add(40 * time.Minute), Queries: 7, Bytes: 500}}
	bytes := func(n float64) signal.Value { return signal.Of(n, signal.Bytes, "test", now) }
	for name, c := range map[string]struct {
		account budget.TenantAccount
		bytes   signal.Value
		code    string
		retry   int64
		says    string
	}{
		"room":                       {budget.TenantAccount{Slices: slices}, bytes(200), "", 0, ""},
		"one query too many":         {budget.TenantAccount{Slices: append(slices[:2:2], budget.Slice{Leaves: now.Add(time.Hour), Queries: 1})}, bytes(1), budget.TenantQueries, 600, "10m0s"},
		"fits when the first leaves": {budget.TenantAccount{Slices: slices}, bytes(400), budget.TenantBytes, 600, "200 B left of the 1.0 kB"},
		"fits when both have left":   {budget.TenantAccount{Slices: slices}, bytes(900), budget.TenantBytes, 2400, "at most 200 B (22 %)"},
		"never fits":                 {budget.TenantAccount{Slices: slices}, bytes(5000), budget.TenantBytes, 0, "at most 200 B (4 %)"},
		"not known, and room":        {budget.TenantAccount{Slices: slices}, signal.Missing("test"), "", 0, ""},
		"too many at once":           {budget.TenantAccount{Running: 3}, bytes(1), budget.TenantConcurrent, 5, "has 3 queries running"},
		"too many of a principal":    {budget.TenantAccount{Running: 2, PrincipalRunning: 2}, bytes(1), budget.Concurrent, 5, "This principal has 2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := budget.CheckTenant(l, 2, c.account, budget.Ask{Bytes: c.bytes, Tables: []string{"events"}}, now)
			if c.code == "" {
				require.Nil(t, r)
				return
			}
			require.NotNil(t, r)
			require.Equal(t, c.code, r.Code)
			require.Contains(t, r.Message, c.says)
			require.NotEmpty(t, r.Suggestion)
			require.NotEmpty(t, r.Left)
			if c.retry == 0 {
				require.Nil(t, r.RetryAfterSeconds, "waiting would not help")
				return
			}
			require.Equal(t, c.retry, *r.RetryAfterSeconds)
		})
	}
	require.Nil(t, budget.CheckTenant(budget.TenantLimits{Window: time.Hour}, 0, budget.TenantAccount{Running: 1e6, Slices: slices}, budget.Ask{}, now))
}

func TestPrincipal(t *testing.T) {
	class := func(c query.SessionClass, tags ...string) query.Task {
		return query.Task{Tenant: "a", User: "u", Session: &query.Session{ID: "s", Class: c}, Tags: tags}
	}
	require.Equal(t, "a/u", budget.Principal(class(query.Batch)))
	require.Equal(t, "a/u", budget.Principal(class(query.Agent, "batch")), "an agentic pipeline that expects to wait")
	require.Equal(t, "a/u", budget.Principal(query.Task{Tenant: "a", User: "u", Tags: []string{"batch"}}))
	require.Empty(t, budget.Principal(class(query.Agent)))
	require.Empty(t, budget.Principal(class(query.Human, "batch")))
}
