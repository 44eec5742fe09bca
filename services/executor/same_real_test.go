//go:build real

package executor_test

import (
	"testing"
	"time"

	"github.com/pointsman/pointsman/services/executor"
	"github.com/pointsman/pointsman/test/real/mariadb"
	"github.com/pointsman/pointsman/test/real/postgres"
	"github.com/pointsman/pointsman/test/real/spark"
	"github.com/pointsman/pointsman/test/real/trino"
)

// TestSameFromEveryEngine: what a reader gets does not tell which engine it came from.
func TestSameFromEveryEngine(t *testing.T) {
	const text = "'a \"quoted\", line\nbreak é😀'"
	for _, c := range []struct {
		name   string
		config func(t *testing.T) executor.EngineConfig
		sql    string
	}{
		{"postgres", func(t *testing.T) executor.EngineConfig {
			s := postgres.Start(t)
			return executor.EngineConfig{Kind: "postgres", URL: "postgres://" + s.Addr + "?sslmode=disable", User: postgres.User, Database: "postgres"}
		}, "SELECT 9007199254740993::bigint AS n, 7::int AS i, NULL::text AS z, '' AS e, " + text + " AS s, 1.5::numeric(18,4) AS p, -0.01::numeric(9,2) AS q, " +
			"date '2026-11-30' AS d, timestamptz '2026-11-30 14:45:00.123456+05:30' AS t, 0.1::float8 AS f"},
		{"mariadb", func(t *testing.T) executor.EngineConfig {
			s := mariadb.Start(t)
			s.Exec("CREATE DATABASE lake", "CREATE TABLE lake.moments (t TIMESTAMP(6))", "INSERT INTO lake.moments VALUES (FROM_UNIXTIME(1796030100.123456))")
			return executor.EngineConfig{Kind: "mysql", URL: "mysql://" + s.Addr, User: mariadb.User, Database: "lake"}
		}, "SELECT CAST(9007199254740993 AS SIGNED) AS n, 7 AS i, NULL AS z, '' AS e, " + text + " AS s, CAST(1.5 AS DECIMAL(18,4)) AS p, CAST(-0.01 AS DECIMAL(9,2)) AS q, " +
			"DATE '2026-11-30' AS d, t, CAST(0.1 AS DOUBLE) AS f FROM moments"},
		{"trino", func(t *testing.T) executor.EngineConfig {
			return executor.EngineConfig{Kind: "trino", URL: trino.Start(t).URL(), User: "pointsman"}
		}, "SELECT BIGINT '9007199254740993' AS n, 7 AS i, CAST(NULL AS varchar) AS z, '' AS e, " + text + " AS s, CAST(1.5 AS decimal(18,4)) AS p, CAST(-0.01 AS decimal(9,2)) AS q, " +
			"DATE '2026-11-30' AS d, TIMESTAMP '2026-11-30 14:45:00.123456 +05:30' AS t, DOUBLE '0.1' AS f"},
		{"spark", func(t *testing.T) executor.EngineConfig {
			return executor.EngineConfig{Kind: "spark", URL: "sc://" + spark.Start(t).Addr, User: "pointsman"}
		}, "SELECT 9007199254740993L AS n, 7 AS i, CAST(NULL AS string) AS z, '' AS e, " + text + " AS s, CAST(1.5 AS decimal(18,4)) AS p, CAST(-0.01 AS decimal(9,2)) AS q, " +
			"DATE'2026-11-30' AS d, TIMESTAMP'2026-11-30 14:45:00.123456+05:30' AS t, 0.1D AS f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := c.config(t)
			b := newBench(t, 1)
			b.servers = nil
			b.config = func(x *executor.Config) {
				cfg.Name, cfg.Slots = interactive, 4
				x.Engines = []executor.EngineConfig{cfg}
				x.Attempts.LookUpTimeout = 10 * time.Second
				allFiles(x)
			}
			b.start()
			sameFromEveryEngine(t, b, c.sql)
		})
	}
}
