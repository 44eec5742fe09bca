//go:build real

package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/services/executor/check"
	"github.com/pointsman/pointsman/test/real/mariadb"
	"github.com/pointsman/pointsman/test/real/postgres"
	"github.com/pointsman/pointsman/test/real/spark"
	"github.com/pointsman/pointsman/test/real/trino"
)

// Every check works on a real server of each kind, or says why it was not tried.
func TestRealServers(t *testing.T) {
	for _, c := range []struct {
		kind    string
		config  func(t *testing.T) engines.Config
		skipped []string
	}{
		{"mysql", func(t *testing.T) engines.Config {
			return engines.Config{URL: "mysql://" + mariadb.Start(t).Addr, User: mariadb.User, Database: "mysql"}
		}, []string{"memory limit"}},
		{"postgres", func(t *testing.T) engines.Config {
			return engines.Config{URL: "postgres://" + postgres.Start(t).Addr + "?sslmode=disable", User: postgres.User, Database: "postgres"}
		}, []string{"memory limit"}},
		{"spark", func(t *testing.T) engines.Config { return engines.Config{URL: "sc://" + spark.Start(t).Addr} }, []string{"memory limit"}},
		{"trino", func(t *testing.T) engines.Config { return engines.Config{URL: trino.Start(t).URL(), User: "check"} }, []string{"memory limit"}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			cfg := c.config(t)
			cfg.Name, cfg.Kind, cfg.Queries = "x", c.kind, 2
			e, err := engines.Open(cfg)
			require.NoError(t, err)
			t.Cleanup(func() { _ = e.Close() })
			require.NoError(t, e.Canary(t.Context())) // a server that was just started is slow at first
			opts := options()
			opts.Kind, opts.Database = c.kind, cfg.Database
			var skipped []string
			for _, f := range check.Run(t.Context(), e, opts) {
				require.NotEqual(t, check.Failed, f.Status, "%s: %s", f.Check, f.Detail)
				if f.Status == check.Skipped {
					skipped = append(skipped, f.Check)
				}
				t.Logf("%-12s %-7s %5d ms  %s", f.Check, f.Status, f.Ms, f.Detail)
			}
			require.Equal(t, c.skipped, skipped)
		})
	}
}
