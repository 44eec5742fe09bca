package budget_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/signal"
)

var now = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)

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
