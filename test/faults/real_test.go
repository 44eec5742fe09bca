//go:build real

package faults_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/services/executor"
	"github.com/pointsman/pointsman/test/real/mariadb"
	"github.com/pointsman/pointsman/test/real/postgres"
	"github.com/pointsman/pointsman/test/real/trino"
)

// fewFaults is how many there are without -faults: one for about every other cell.
const fewFaults = 60

func planned() int {
	if *count > 0 {
		return *count
	}
	return fewFaults
}

// plannedSlow is planned for an engine whose statements take their time.
func plannedSlow() int {
	if *count > 0 {
		return max(100, *count/10)
	}
	return fewFaults
}

// TestFaultMatrixPostgreSQL is the matrix on a real PostgreSQL.
func TestFaultMatrixPostgreSQL(t *testing.T) {
	s := postgres.Start(t, "max_connections=500")
	s.Exec("CREATE TABLE written (n bigint)", "CREATE TABLE hidden (n int)", "CREATE ROLE plain", "CREATE TABLE single (n int PRIMARY KEY)", "INSERT INTO single VALUES (1)")
	matrix(t, &target{
		name: "PostgreSQL", kind: "postgres", addr: s.Addr, sessions: true,
		url:    func(addr string) string { return "postgres://" + addr + "?sslmode=disable" },
		config: executor.EngineConfig{Kind: "postgres", User: postgres.User, Database: "postgres"},
		resources: map[string]executor.Limits{
			"brief": {MaxExecution: 300 * time.Millisecond}, "plain": {Settings: map[string]string{"role": "plain"}},
			"disk": {Settings: map[string]string{"temp_file_limit": "1MB", "work_mem": "64kB"}},
		},
		quick: "SELECT 9007199254740993 AS n, NULL::text AS s", quickAnswer: `[["9007199254740993",null]]`,
		slow: "SELECT 7 FROM pg_sleep(0.8)", slowAnswer: `[[7]]`,
		write:     "INSERT INTO written VALUES (%d)",
		slowWrite: "INSERT INTO written SELECT %d FROM pg_sleep(0.8)",
		large:     "SELECT g, repeat('x', 100) FROM generate_series(1, 40000) g", largeRows: 40_000, first: 1 << 19, more: 1 << 20,
		broken: []broken{
			{sql: "SELEKT 1", class: "semantic"},
			{sql: "SELECT no_such_column FROM written", class: "semantic"},
			{sql: "SELECT 1 / 0", class: "semantic"},
			{sql: "SELECT 'x'::integer", class: "semantic"},
			{sql: "INSERT INTO single VALUES (1)", class: "semantic"}, // a write that was taken for a read
			{sql: "SELECT * FROM hidden", resource: "plain", class: "permission"},
			{sql: "SELECT 1 FROM pg_sleep(1.2)", resource: "brief", class: "timeout"},
			{sql: "SELECT count(*) FROM (SELECT a, count(*) FROM (SELECT g % 100000 AS a, repeat('x', 200) AS b FROM generate_series(1, 100000) g) t GROUP BY a, b ORDER BY b) u", resource: "disk", class: "resources"},
			{sql: "SELECT pg_sleep(20)", class: operatorKill},
			{sql: "SELECT 1 / (35000 - g), repeat('x', 100) FROM generate_series(1, 40000) g", class: "semantic", late: true},
		},
		kill: func() {
			backends, err := pids(s.URL())
			require.NoError(t, err)
			s.End(syscall.SIGKILL)
			for _, pid := range backends { // a server is not started again while one of them writes to its client
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			time.Sleep(100 * time.Millisecond)
			s.Again()
			s.AwaitReady()
		},
	}, planned(), *lanesOf, true)
}

// pids are those of the server's processes but the first.
func pids(url string) (out []int, err error) {
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(context.Background(), "SELECT pid FROM pg_stat_activity WHERE pid IS NOT NULL")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

// TestFaultMatrixMariaDB is the matrix on a real MariaDB.
func TestFaultMatrixMariaDB(t *testing.T) {
	s := mariadb.Start(t, "--max-connections=500", "--innodb-flush-log-at-trx-commit=2") // what was committed outlives the process
	s.Exec("CREATE TABLE work.written (n bigint)")
	matrix(t, &target{
		name: "MariaDB", kind: "mysql", addr: s.Addr, sessions: true,
		url:    func(addr string) string { return "mysql://" + addr },
		config: executor.EngineConfig{Kind: "mysql", User: mariadb.User, Database: "work"},
		resources: map[string]executor.Limits{
			"brief": {MaxExecution: 300 * time.Millisecond},
			"joins": {Settings: map[string]string{"max_join_size": "10", "sql_big_selects": "0"}},
		},
		quick: "SELECT 9007199254740993 AS n, NULL AS s", quickAnswer: `[["9007199254740993",null]]`,
		slow: "SELECT 7 + SLEEP(0.8)", slowAnswer: `[[7]]`,
		write:     "INSERT INTO written VALUES (%d)",
		slowWrite: "INSERT INTO written SELECT %d + SLEEP(0.8)",
		large:     "SELECT seq, REPEAT('x', 100) FROM seq_1_to_40000", largeRows: 40_000, first: 1 << 19, more: 1 << 20,
		broken: []broken{
			{sql: "SELEKT 1", class: "semantic"},
			{sql: "SELECT no_such_column FROM written", class: "semantic"},
			{sql: "SELECT * FROM no_such_table", class: "semantic"},
			{sql: "SELECT 9223372036854775807 + 1", class: "semantic"},
			{sql: "INSERT INTO written VALUES (1)", class: "semantic"}, // a write that was taken for a read
			{sql: "SELECT SLEEP(1.2)", resource: "brief", class: "timeout"},
			{sql: "SELECT COUNT(*) FROM seq_1_to_100 a JOIN seq_1_to_100 b", resource: "joins", class: "resources"},
			{sql: "SELECT SLEEP(20)", class: operatorKill},
			{sql: "SELECT seq, REPEAT('x', 100), CAST(35000 - seq AS UNSIGNED) FROM seq_1_to_40000", class: "semantic", late: true},
		},
		kill: func() {
			s.End(syscall.SIGKILL)
			s.Again()
			s.AwaitReady()
		},
	}, planned(), *lanesOf, true)
}

// TestFaultMatrixTrino is the matrix on a real Trino, whose statements take longer. Its tables are in memory, so it is not killed here.
func TestFaultMatrixTrino(t *testing.T) {
	s := trino.Start(t)
	require.NoError(t, s.Run("pm", "CREATE TABLE memory.default.written (n bigint)"))
	const work = "TABLE(sequence(1, 1500)) AS a(n) CROSS JOIN TABLE(sequence(1, 100000)) AS b(m)"
	matrix(t, &target{
		name: "Trino", kind: "trino", addr: s.Addr, whole: true,
		url:    func(addr string) string { return "http://" + addr },
		config: executor.EngineConfig{Kind: "trino", User: "pm", Database: "memory.default"},
		resources: map[string]executor.Limits{
			"brief": {Settings: map[string]string{"query_max_run_time": "500ms"}},
			"tight": {MaxMemory: 20_000_000},
			"cpu":   {Settings: map[string]string{"query_max_cpu_time": "100ms"}},
		},
		quick: "SELECT bigint '9007199254740993' AS n, CAST(NULL AS varchar) AS s", quickAnswer: `[["9007199254740993",null]]`,
		slow: "SELECT count(*) FROM " + work, slowAnswer: `[["150000000"]]`,
		write:     "INSERT INTO written SELECT %d",
		slowWrite: "INSERT INTO written SELECT %d + 0 * count(*) FROM " + work,
		large:     "SELECT orderkey, comment, shipinstruct FROM tpch.tiny.lineitem", largeRows: 60_175, first: 1 << 18, more: 1 << 19,
		broken: []broken{
			{sql: "SELEKT 1", class: "semantic"},
			{sql: "SELECT nothing FROM tpch.tiny.region", class: "semantic"},
			{sql: "SELECT 1 / (count(*) - 5) FROM tpch.tiny.region", class: "semantic"},
			{sql: "SELECT count(*) FROM TABLE(sequence(1, 2000)) AS a(n) CROSS JOIN TABLE(sequence(1, 100000)) AS b(m)", resource: "brief", class: "timeout"},
			{sql: "SELECT count(*) FROM TABLE(sequence(1, 2000)) AS a(n) CROSS JOIN TABLE(sequence(1, 100000)) AS b(m)", resource: "cpu", class: "resources"},
			{sql: "SELECT count(*) FROM (SELECT DISTINCT rpad(CAST(n AS varchar), 100, 'x') FROM TABLE(sequence(1, 400000)) AS t(n))", resource: "tight", class: "memory_limit"},
			{sql: "SELECT count(*) FROM tpch.sf1.lineitem a CROSS JOIN tpch.sf1.orders b", class: operatorKill},
			{sql: "SELECT 1 / (orderkey - 54976), comment FROM tpch.tiny.lineitem", class: "semantic", late: true},
		},
	}, plannedSlow(), min(*lanesOf, 6), false)
}
