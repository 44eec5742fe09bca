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

// TestFaultMatrixSpark is the matrix on a real Spark, whose table is one of Derby's: Spark's own files can't be written to by several
// statements at once, and its catalog in memory would be gone with the server.
func TestFaultMatrixSpark(t *testing.T) {
	s := spark.Start(t, "spark.master=local[16]",
		"spark.sql.catalog.kept=org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
		"spark.sql.catalog.kept.driver=org.apache.derby.jdbc.EmbeddedDriver",
		"spark.sql.catalog.kept.url=jdbc:derby:"+filepath.Join(t.TempDir(), "kept")+";create=true")
	const schema = "kept.APP"
	run := func(sql string) error {
		direct, err := adapter.Open(adapter.Config{Name: "direct", Addr: s.Addr})
		if err != nil {
			return err
		}
		defer direct.Close()
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
	require.NoError(t, run("CREATE TABLE "+schema+".written (n bigint)"))
	warm := func() { // the first statement compiles much of Spark
		require.True(t, await(2*time.Minute, func() bool { return run("SELECT count(*) FROM "+schema+".written") == nil }))
	}
	warm()
	const (
		naps    = "coalesce(length(java_method('java.lang.Thread', 'sleep', 800L)), 4)"
		endless = "SELECT count(*) FROM range(0, 100000000000000, 1, 4) WHERE id % 7919 = 1"
	)
	matrix(t, &target{
		name: "Spark", kind: "spark", addr: s.Addr, sessions: true, resumes: true, requests: newCalls, restarts: time.Minute,
		url:    func(addr string) string { return "sc://" + addr },
		config: executor.EngineConfig{Kind: "spark", Database: schema},
		resources: map[string]executor.Limits{
			"brief": {MaxExecution: 500 * time.Millisecond}, "wrong": {Settings: map[string]string{"spark.sql.shuffle.partitions": "many"}},
		},
		quick: "SELECT 9007199254740993 AS n, NULL AS s", quickAnswer: `[["9007199254740993",null]]`,
		slow: "SELECT 3 + " + naps + " AS n FROM range(0, 1, 1, 1)", slowAnswer: `[[7]]`,
		write:     "INSERT INTO written SELECT %d",
		slowWrite: "INSERT INTO written SELECT %d - 4 + " + naps + " FROM range(0, 1, 1, 1)",
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
		kill: func() {
			s.Restart()
			warm()
		},
	}, plannedSlow(), min(*lanesOf, 6), true)
}
