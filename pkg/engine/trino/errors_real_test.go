//go:build real

package trino_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/trino"
	"github.com/pointsman/pointsman/pkg/failure"
	real "github.com/pointsman/pointsman/test/real/trino"
)

// classified gives the class that the executor would see.
func classified(t *testing.T, err error) (*engine.Error, failure.Class) {
	t.Helper()
	var e *engine.Error
	require.ErrorAs(t, err, &e)
	f := failure.Classify(failure.Report{Engine: e.Engine, Code: e.Code, Name: e.Name, Type: e.Type, Message: e.Error(), Reach: failure.Reach(e.Phase)})
	return e, failure.Class(f.Class)
}

func connect(t *testing.T, server *real.Server) engine.Engine {
	t.Helper()
	return open(t, trino.Config{Name: "c", URL: server.URL(), Database: "tpch.tiny"})
}

// nativeErrors provokes each error that one node can be brought to give, and looks at its name and class.
func nativeErrors(t *testing.T, server *real.Server) {
	e := connect(t, server)
	for _, sql := range []string{
		"CREATE TABLE IF NOT EXISTS memory.default.numbers AS SELECT n FROM TABLE(sequence(1, 100)) AS t(n)",
		"CREATE OR REPLACE VIEW memory.default.stale AS SELECT n FROM memory.default.numbers",
	} {
		require.NoError(t, server.Run("pm", sql))
	}
	for _, c := range []struct {
		name, sql string
		settings  map[string]string
		want      failure.Class
	}{
		{"SYNTAX_ERROR", "SELECT FROM WHERE", nil, failure.Semantic},
		{"FUNCTION_NOT_FOUND", "SELECT no_such_function(1)", nil, failure.Semantic},
		{"INVALID_FUNCTION_ARGUMENT", "SELECT repeat('x', 1000000)", nil, failure.Semantic},
		{"DIVISION_BY_ZERO", "SELECT 1 / (regionkey - regionkey) FROM region", nil, failure.Semantic},
		{"INVALID_CAST_ARGUMENT", "SELECT CAST(name AS bigint) FROM region", nil, failure.Semantic},
		{"NUMERIC_VALUE_OUT_OF_RANGE", "SELECT bigint '9223372036854775807' + regionkey FROM region", nil, failure.Semantic},
		{"NOT_SUPPORTED", "DELETE FROM memory.default.numbers", nil, failure.Semantic},
		{"INVALID_SESSION_PROPERTY", "SELECT 1", map[string]string{"no_such_property": "1"}, failure.Semantic},
		{"INVALID_SESSION_PROPERTY", "SELECT 1", map[string]string{"query_max_memory": "much"}, failure.Semantic},
		{"SUBQUERY_MULTIPLE_ROWS", "SELECT (SELECT name FROM region)", nil, failure.Semantic},
		{"CATALOG_NOT_FOUND", "SELECT * FROM nowhere.s.t", nil, failure.Semantic},
		{"SCHEMA_NOT_FOUND", "SELECT * FROM tpch.nowhere.t", nil, failure.Semantic},
		{"TABLE_NOT_FOUND", "SELECT * FROM tpch.tiny.nowhere", nil, failure.Semantic},
		{"COLUMN_NOT_FOUND", "SELECT nothing FROM region", nil, failure.Semantic},
		{"TABLE_ALREADY_EXISTS", "CREATE TABLE memory.default.numbers (n bigint)", nil, failure.Semantic},
		{"SCHEMA_ALREADY_EXISTS", "CREATE SCHEMA memory.default", nil, failure.Semantic},
		{"TYPE_MISMATCH", "SELECT 1 + 'one'", nil, failure.Semantic},
		{"AMBIGUOUS_NAME", "SELECT name FROM region a, region b", nil, failure.Semantic},
		{"EXPRESSION_NOT_AGGREGATE", "SELECT name, count(*) FROM region", nil, failure.Semantic},
		{"QUERY_TEXT_TOO_LARGE", "SELECT '" + strings.Repeat("x", 300_000) + "'", nil, failure.Semantic},
		{"EXCEEDED_LOCAL_MEMORY_LIMIT", "SELECT count(*) FROM (SELECT DISTINCT comment, partkey FROM tpch.sf1.lineitem)", map[string]string{"query_max_memory_per_node": "20MB"}, failure.MemoryLimit},
		{"EXCEEDED_GLOBAL_MEMORY_LIMIT", "SELECT count(*) FROM (SELECT DISTINCT comment, partkey FROM tpch.sf1.lineitem)", map[string]string{"query_max_memory": "20MB"}, failure.MemoryLimit},
		{"EXCEEDED_TIME_LIMIT", slow, map[string]string{"query_max_run_time": "500ms"}, failure.Timeout},
		{"EXCEEDED_CPU_LIMIT", slow, map[string]string{"query_max_cpu_time": "100ms"}, failure.Resources},
		{"EXCEEDED_SCAN_LIMIT", "SELECT count(a.n) FROM memory.default.numbers a CROSS JOIN TABLE(sequence(1, 100000)) b CROSS JOIN TABLE(sequence(1, 10000)) c", map[string]string{"query_max_scan_physical_bytes": "1B"}, failure.Resources},
		{"QUERY_HAS_TOO_MANY_STAGES", "SELECT count(*) FROM region a JOIN region b ON a.regionkey = b.regionkey", map[string]string{"query_max_stage_count": "1"}, failure.Resources},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := read(ctx, e, engine.Query{ID: c.name + "/1", SQL: c.sql, Settings: c.settings})
			got, class := classified(t, err)
			require.Equal(t, c.name, got.Name, "%v", err)
			require.Equal(t, engine.Answered, got.Phase)
			require.Equal(t, c.want, class)
			require.NotEmpty(t, got.Type)
		})
	}
	t.Run("PERMISSION_DENIED", func(t *testing.T) {
		_, err := read(t.Context(), open(t, trino.Config{Name: "c", URL: server.URL(), User: "stranger"}), engine.Query{SQL: "SELECT * FROM tpch.tiny.region"})
		got, class := classified(t, err)
		require.Equal(t, "PERMISSION_DENIED", got.Name)
		require.Equal(t, failure.Permission, class)
	})
}

// killed is what others do to a query: whatever type the server gives the error, nobody runs the query again behind the back of
// whoever stopped it.
func killed(t *testing.T, server *real.Server) {
	for _, c := range []struct {
		name, method, path, body string
		want                     failure.Class
		state                    engine.RunState
	}{
		{"USER_CANCELED", http.MethodDelete, "", "", failure.KilledByOperator, engine.RunCancelled},
		{"ADMINISTRATIVELY_KILLED", http.MethodPut, "/killed", "not on a Monday", failure.KilledByOperator, engine.RunFailed},
		{"ADMINISTRATIVELY_PREEMPTED", http.MethodPut, "/preempted", "room for the board", failure.Resources, engine.RunFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := connect(t, server)
			id := c.name + "/1"
			ended := make(chan error, 1)
			go func() {
				_, err := read(t.Context(), e, engine.Query{ID: id, SQL: slow})
				ended <- err
			}()
			await(t, e, id, engine.RunActive)
			_, err := server.Do(t.Context(), c.method, "/v1/query/"+serverID(t, server, id)+c.path, "pm", c.body)
			require.NoError(t, err)
			err = <-ended
			got, class := classified(t, err)
			require.Equal(t, c.name, got.Name)
			require.Equal(t, c.want, class)
			require.ErrorContains(t, err, c.body)

			run, err := connect(t, server).Find(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, c.state, run.State)
			require.Equal(t, c.name, run.Failure.Name, "another process learns from the history what became of it")
			_, class = classified(t, run.Failure)
			require.Equal(t, c.want, class)
		})
	}
}

func await(t *testing.T, e engine.Engine, id string, want engine.RunState) engine.Run {
	t.Helper()
	var last engine.Run
	require.Eventually(t, func() bool {
		run, err := e.Find(t.Context(), id)
		last = run
		return err == nil && run.State == want
	}, 20*time.Second, 20*time.Millisecond, "waiting for %s to be %s", id, want)
	return last
}

// serverID finds the server's own id of an attempt, without the adapter.
func serverID(t *testing.T, server *real.Server, id string) string {
	t.Helper()
	text, err := server.Do(t.Context(), http.MethodGet, "/v1/query", "pm", "")
	require.NoError(t, err)
	for entry := range strings.SplitSeq(text, `"session":{"queryId":"`) {
		if strings.Contains(entry, `"traceToken":"`+id+`"`) {
			query, _, _ := strings.Cut(entry, `"`)
			return query
		}
	}
	t.Fatal(errors.New("no query has the trace token " + id))
	return ""
}
