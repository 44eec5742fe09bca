package engines_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engines"
)

func TestName(t *testing.T) {
	long := strings.Repeat("x", 80) + "/1"
	for _, kind := range []string{"clickhouse", "flightsql", "mysql", "postgres", "spark", "trino"} {
		require.Equal(t, "01M8PBYBF9TS4N7NRAFV6BYVEM/1", engines.Name(kind, "01M8PBYBF9TS4N7NRAFV6BYVEM/1"), kind)
	}
	require.Equal(t, long, engines.Name("clickhouse", long))
	require.Less(t, len(engines.Name("postgres", long)), 64, "as pg_stat_activity has it")
}
