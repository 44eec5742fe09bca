//go:build real

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	adapter "github.com/pointsman/pointsman/pkg/engine/spark"
	"github.com/pointsman/pointsman/services/executor"
	"github.com/pointsman/pointsman/test/real/spark"
)

// TestFaultMatrixSpark is the matrix on a real Spark. Writes to one folder at a time would undo each other there, so each has its own.
func TestFaultMatrixSpark(t *testing.T) {
	s := spark.Start(t, "spark.master=local[16]")
	direct, err := adapter.Open(adapter.Config{Name: "direct", Addr: s.Addr})
	require.NoError(t, err)
	t.Cleanup(func() { _ = direct.Close() })
	folder := filepath.Join(t.TempDir(), "written")
	run := func(sql string) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		rows, err := direct.Submit(ctx, engine.Query{SQL: sql})
		if err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
		for rows.Next() {
		}
		return errors.Join(rows.Err(), rows.Close())
	}
	table := func(number int) error {
		return run(fmt.Sprintf("CREATE TABLE w_%d (n bigint) USING parquet LOCATION '%s/p=%d'", number, folder, number))
	}
	const nobody = 1_000_000
	require.NoError(t, table(nobody))
	require.NoError(t, run(fmt.Sprintf("INSERT INTO w_%[1]d SELECT %[1]d", nobody))) // warms up, and tells the schema of what is counted
	const (
		naps    = "coalesce(length(java_method('java.lang.Thread', 'sleep', 800L)), 4)"
		endless = "SELECT count(*) FROM range(0, 100000000000000, 1, 4) WHERE id % 7919 = 1"
	)
	matrix(t, &target{
		name: "Spark", kind: "spark", addr: s.Addr, sessions: true, resumes: true, requests: newCalls,
		url:    func(addr string) string { return "sc://" + addr },
		config: executor.EngineConfig{Kind: "spark"},
		resources: map[string]executor.Limits{
			"brief": {MaxExecution: 500 * time.Millisecond}, "wrong": {Settings: map[string]string{"spark.sql.shuffle.partitions": "many"}},
		},
		quick: "SELECT 9007199254740993 AS n, NULL AS s", quickAnswer: `[["9007199254740993",null]]`,
		slow: "SELECT 3 + " + naps + " AS n FROM range(0, 1, 1, 1)", slowAnswer: `[[7]]`,
		write:     "INSERT INTO w_%[1]d SELECT %[1]d",
		slowWrite: "INSERT INTO w_%[1]d SELECT %[1]d - 4 + " + naps + " FROM range(0, 1, 1, 1)",
		written:   "SELECT n, count(*) FROM parquet.`" + folder + "` GROUP BY n",
		ready:     func(number int) { require.NoError(t, table(number)) },
		large:     "SELECT id, rpad('', 100, 'x') FROM range(0, 40000, 1, 8)", largeRows: 40_000, first: 1 << 20, more: 1 << 20,
		broken: []broken{
			{sql: "SELEKT 1", class: "semantic"},
			{sql: "SELECT nothing FROM range(1)", class: "semantic"},
			{sql: "SELECT * FROM no_such_table", class: "semantic"},
			{sql: "SELECT 1 / (id - id) FROM range(3)", class: "semantic"},
			{sql: "SELECT raise_error('no')", class: "semantic"},
			{sql: "SELECT 1", resource: "wrong", class: "semantic"},
			{sql: "SELECT 5 + " + naps + " + " + naps + " FROM range(0, 1, 1, 1)", resource: "brief", class: "timeout"},
			{sql: endless, class: operatorKill},
			{sql: "SELECT 1 / (id - 35000), rpad('', 100, 'x') FROM range(0, 40000, 1, 8)", class: "semantic", late: true},
		},
	}, plannedSlow(), min(*lanesOf, 6), false)
}
