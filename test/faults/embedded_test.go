package faults_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/embedded/supervise"
	"github.com/pointsman/pointsman/services/executor"
)

// TestFaultMatrixClickHouse is the matrix on the embedded engine: a small one, or what -faults says.
func TestFaultMatrixClickHouse(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute")
	}
	n, lanes := 40, 10
	if *count > 0 {
		n, lanes = *count, *lanesOf
	}
	e, _ := embedded(t)
	matrix(t, e, n, lanes, *count > 0)
}

func embedded(t *testing.T) (*target, *chdb.Engine) {
	server := chdbtest.Start(t, chdb.Config{Name: "faults", Settings: map[string]string{"max_threads": "1"}})
	do := func(sql string) (string, error) {
		resp, err := http.Post("http://"+server.Addr()+"/?"+url.Values{"user": {"default"}}.Encode(), "text/plain", strings.NewReader(sql))
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", sql, text)
		}
		return string(text), err
	}
	_, err := do("CREATE TABLE written (n Int64) ENGINE = MergeTree ORDER BY n")
	require.NoError(t, err)
	return &target{
		name: "ClickHouse (embedded)", kind: "clickhouse", addr: server.Addr(),
		url:    func(addr string) string { return "http://" + addr },
		config: executor.EngineConfig{Kind: "clickhouse", User: "default"},
		resources: map[string]executor.Limits{
			"tight": {MaxMemory: 20_000_000}, "brief": {MaxExecution: 300 * time.Millisecond},
			"few": {Settings: map[string]string{"max_rows_to_read": "1000"}}, "narrow": {Settings: map[string]string{"max_result_rows": "10", "result_overflow_mode": "throw"}},
		},
		quick: "SELECT toInt64(9007199254740993) AS n, NULL AS s", quickAnswer: `[["9007199254740993",null]]`,
		slow: "SELECT count(), sum(sleepEachRow(0.1)) FROM numbers(8) SETTINGS max_block_size = 1", slowAnswer: `[["8","0"]]`,
		write:     "INSERT INTO written SELECT %d",
		slowWrite: "INSERT INTO written SELECT max(%d + sleepEachRow(0.1)) FROM numbers(8) SETTINGS max_block_size = 1",
		large:     "SELECT number, randomPrintableASCII(100) FROM numbers(40000) SETTINGS max_block_size = 500", largeRows: 40_000, first: 1 << 20, more: 1 << 20,
		broken: []broken{
			{sql: "SELEC 1", class: "semantic"},
			{sql: "SELECT no_such_column FROM numbers(1)", class: "semantic"},
			{sql: "SELECT * FROM no_such_table", class: "semantic"},
			{sql: "SELECT throwIf(number = 3) FROM numbers(10)", class: "semantic"},
			{sql: "SELECT intDiv(1, number) FROM numbers(2)", class: "semantic"},
			{sql: "SELECT count() FROM (SELECT number FROM numbers(1000000) GROUP BY number)", resource: "tight", class: "memory_limit"},
			{sql: "SELECT count(), sum(sleepEachRow(0.1)) FROM numbers(12) SETTINGS max_block_size = 1", resource: "brief", class: "timeout"},
			{sql: "SELECT sum(number) FROM numbers(100000)", resource: "few", class: "resources"},
			{sql: "SELECT number FROM numbers(100)", resource: "narrow", class: "result_too_large"},
			{sql: "SELECT sum(sleepEachRow(0.1)) FROM numbers(100) SETTINGS max_block_size = 1", class: operatorKill},
			{sql: "SELECT throwIf(number = 35000), randomPrintableASCII(100) FROM numbers(40000) SETTINGS max_block_size = 500", class: "semantic", late: true},
			{sql: "SELECT intDiv(1, 35000 - number), randomPrintableASCII(100) FROM numbers(40000) SETTINGS max_block_size = 500", class: "semantic", late: true},
		},
		kill: func() {
			before := server.Restarts()
			server.Kill()
			await(30*time.Second, func() bool { return server.Restarts() > before && server.State() == supervise.Ready })
		},
	}, server
}
