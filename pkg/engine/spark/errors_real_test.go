//go:build real

package spark_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/spark"
	"github.com/pointsman/pointsman/pkg/failure"
	real "github.com/pointsman/pointsman/test/real/spark"
)

// nativeErrors provokes error classes and checks what they are taken for.
func nativeErrors(t *testing.T, server *real.Server) {
	e := open(t, spark.Config{Name: "c", Addr: server.Addr})
	for _, c := range []struct {
		sql      string
		settings map[string]string
		database string
		code     string
		state    string
		class    failure.Class
	}{
		{sql: "SELECT * FROM nowhere", code: "TABLE_OR_VIEW_NOT_FOUND", state: "42P01", class: failure.Semantic},
		{sql: "SELECT a FROM range(1)", code: "UNRESOLVED_COLUMN.WITH_SUGGESTION", state: "42703", class: failure.Semantic},
		{sql: "SELECT a", code: "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", state: "42703", class: failure.Semantic},
		{sql: "SELEC 1", code: "PARSE_SYNTAX_ERROR", state: "42601", class: failure.Semantic},
		{sql: "SELECT no_such_function(1)", code: "UNRESOLVED_ROUTINE", state: "42883", class: failure.Semantic},
		{sql: "SELECT 1 / 0", code: "DIVIDE_BY_ZERO", state: "22012", class: failure.Semantic},
		{sql: "SELECT 1 / (id - id) FROM range(3)", code: "DIVIDE_BY_ZERO", state: "22012", class: failure.Semantic},
		{sql: "SELECT CAST('x' AS int)", code: "CAST_INVALID_INPUT", state: "22018", class: failure.Semantic},
		{sql: "SELECT 2147483647 + 1", code: "ARITHMETIC_OVERFLOW", state: "22003", class: failure.Semantic},
		{sql: "SELECT raise_error('no')", code: "USER_RAISED_EXCEPTION", state: "P0001", class: failure.Semantic},
		{sql: "SELECT id FROM range(2) GROUP BY id % 2", code: "MISSING_AGGREGATION", state: "42803", class: failure.Semantic},
		{sql: "SELECT array(1, map(1, 2))", code: "DATATYPE_MISMATCH.DATA_DIFF_TYPES", state: "42K09", class: failure.Semantic},
		{sql: "SELECT (SELECT id FROM range(2))", code: "SCALAR_SUBQUERY_TOO_MANY_ROWS", state: "21000", class: failure.Semantic},
		{sql: "CREATE TABLE e (n int) USING parquet; SELECT 1", code: "PARSE_SYNTAX_ERROR", state: "42601", class: failure.Semantic},
		{sql: "SELECT 1", settings: map[string]string{"spark.driver.memory": "9g"}, code: "CANNOT_MODIFY_CONFIG", state: "46110", class: failure.Semantic},
		{sql: "SELECT 1", settings: map[string]string{"spark.sql.warehouse.dir": "/x"}, code: "CANNOT_MODIFY_STATIC_CONFIG", state: "46110", class: failure.Semantic},
		{sql: "SELECT 1", settings: map[string]string{"spark.sql.shuffle.partitions": "many"}, code: "INVALID_CONF_VALUE.TYPE_MISMATCH", state: "22022", class: failure.Semantic},
		{sql: "SELECT 1", settings: map[string]string{"spark.sql.session.timeZone": "Mars/North"}, code: "INVALID_CONF_VALUE.TIME_ZONE", state: "22022", class: failure.Semantic},
		{sql: "SELECT 1", database: "no_such_schema", code: "SCHEMA_NOT_FOUND", state: "42704", class: failure.Semantic},
		{sql: "SELECT 1", database: "bad`name", code: "INVALID_ATTRIBUTE_NAME_SYNTAX", state: "42601", class: failure.Semantic},
	} {
		t.Run(c.code, func(t *testing.T) {
			_, _, err := all(t.Context(), e, engine.Query{ID: newID(), SQL: c.sql, Settings: c.settings, Database: c.database})
			got := failed(t, err, c.class, engine.Answered)
			require.Equal(t, c.code, got.Code, "%s", got)
			require.Equal(t, c.state, got.Name)
		})
	}
}

// schemas: the schema of a query is its own.
func schemas(t *testing.T, server *real.Server) {
	e := open(t, spark.Config{Name: "c", Addr: server.Addr})
	_, _, err := all(t.Context(), e, engine.Query{ID: newID(), SQL: "CREATE SCHEMA IF NOT EXISTS sales"})
	require.NoError(t, err)
	for database, want := range map[string]string{"": "default", "sales": "sales", "spark_catalog.sales": "sales", "spark_catalog.": "default"} {
		_, row, err := all(t.Context(), e, engine.Query{ID: newID(), SQL: "SELECT current_schema()", Database: database})
		require.NoError(t, err)
		require.Equal(t, want, row[0], "%q", database)
	}
}
