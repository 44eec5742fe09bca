package budget_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

var (
	now = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)
	key = budget.SessionKey{Tenant: "support", Session: "s1"}
)

func TestReserveAndSettle(t *testing.T) {
	b := budget.NewBook()
	b.Reserve(key, "a", new(int64(100)), now)
	b.Reserve(key, "a", new(int64(100)), now)
	b.Reserve(key, "b", nil, now)
	require.Equal(t, budget.Usage{Queries: 2, Bytes: 100, UnknownBytes: 1}, b.Usage(key))

	o := event.Outcome{TaskID: "a", FinishedAt: now, Stats: event.Stats{ReadBytes: new(int64(40)), ExecMs: new(int64(7))}}
	b.Settle(o)
	b.Settle(o)
	require.Equal(t, budget.Usage{Queries: 2, Bytes: 40, WallMs: 7, UnknownBytes: 1}, b.Usage(key))

	b.Settle(event.Outcome{TaskID: "b", FinishedAt: now, Stats: event.Stats{ReadBytes: new(int64(5))}})
	require.Equal(t, budget.Usage{Queries: 2, Bytes: 45, WallMs: 7}, b.Usage(key))
	b.Settle(event.Outcome{TaskID: "stranger"})

	b.Forget(now.Add(time.Nanosecond))
	require.Zero(t, b.Usage(key))
	require.False(t, b.Admitted("a"))
}

func TestOutcomeReadBeforeItsDecisionIsCharged(t *testing.T) {
	b := budget.NewBook()
	b.Settle(event.Outcome{TaskID: "a", SessionID: "s1", FinishedAt: now, Stats: event.Stats{ReadBytes: new(int64(40)), ExecMs: new(int64(7))}})
	require.Zero(t, b.Usage(key))
	b.Reserve(key, "a", new(int64(100)), now)
	require.Equal(t, budget.Usage{Queries: 1, Bytes: 40, WallMs: 7}, b.Usage(key))
}

func TestRejectThenAdmitCostsNothing(t *testing.T) {
	b := budget.NewBook()
	b.Refuse(key, "a", now)
	require.False(t, b.Admitted("a"), "a repeat is looked at anew")
	b.Reserve(key, "a", new(int64(100)), now)
	require.Zero(t, b.Usage(key), "the first decision in the log was the rejection, so it never ran")
	b.Reserve(key, "b", new(int64(100)), now)
	b.Refuse(key, "b", now)
	require.EqualValues(t, 1, b.Usage(key).Queries, "and the other way round it did")
}

func TestOrderOfRepeatsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once, again := budget.NewBook(), budget.NewBook()
		n := rapid.IntRange(1, 8).Draw(t, "tasks")
		for i := range n {
			id := strconv.Itoa(i)
			est, real := rapid.Int64Range(0, 1e12).Draw(t, "est"), rapid.Int64Range(0, 1e12).Draw(t, "real")
			o := event.Outcome{TaskID: id, FinishedAt: now, Stats: event.Stats{ReadBytes: &real}}
			once.Reserve(key, id, &est, now)
			once.Settle(o)
			for range rapid.IntRange(1, 3).Draw(t, "repeats") {
				again.Reserve(key, id, &est, now)
				again.Settle(o)
			}
		}
		require.Equal(t, once.Usage(key), again.Usage(key))
	})
}

func TestCheck(t *testing.T) {
	l := budget.Limits{MaxQueries: 20, MaxBytes: 2e12, MaxWall: 10 * time.Minute}
	known := func(n float64) signal.Value { return signal.Of(n, signal.Bytes, "catalog", now) }
	for _, c := range []struct {
		name  string
		usage budget.Usage
		bytes signal.Value
		code  string
		says  string
	}{
		{"fresh session", budget.Usage{}, known(12e9), "", ""},
		{"unknown bytes are no reason", budget.Usage{}, signal.Missing("catalog"), "", ""},
		{"queries used up", budget.Usage{Queries: 20}, known(1), budget.QueriesExhausted, "all 20 queries"},
		{"time used up", budget.Usage{WallMs: 600_000}, known(1), budget.WallExhausted, "10m0s"},
		{"too many bytes", budget.Usage{Bytes: 1e12}, known(1.5e12), budget.BytesExhausted, "scan about 1.5 TB"},
		{"bytes used up", budget.Usage{Bytes: 2e12}, signal.Missing("catalog"), budget.BytesExhausted, "0 B of its budget of 2.0 TB left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := budget.Check(l, budget.Account{Usage: c.usage}, budget.Ask{Bytes: c.bytes, Tables: []string{"sales.events"}}, now)
			if c.code == "" {
				require.Nil(t, r)
				return
			}
			require.NotNil(t, r)
			require.Equal(t, c.code, r.Code)
			require.Contains(t, r.Message, c.says)
			require.NotEmpty(t, r.Suggestion)
			require.Contains(t, r.Left, "queries")
		})
	}
	require.Nil(t, budget.Check(budget.Limits{}, budget.Account{Usage: budget.Usage{Queries: 1e6, Bytes: 1e15}}, budget.Ask{Bytes: known(1e15)}, now), "no limits, no rejection")
}
