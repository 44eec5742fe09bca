package failure_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/failure"
)

func TestClassifyClickHouse(t *testing.T) {
	for _, c := range []struct {
		name    string
		code    string
		message string
		reach   failure.Reach
		want    failure.Class
	}{
		{"unknown table", "60", "", failure.Answered, failure.Semantic},
		{"unknown column", "47", "", failure.Answered, failure.Semantic},
		{"syntax", "62", "", failure.Answered, failure.Semantic},
		{"unknown function", "46", "", failure.Answered, failure.Semantic},
		{"illegal type", "43", "", failure.Answered, failure.Semantic},
		{"memory", "241", "", failure.Answered, failure.MemoryLimit},
		{"time", "159", "", failure.Answered, failure.Timeout},
		{"killed", "394", "", failure.Answered, failure.KilledByOperator},
		{"too many queries", "202", "", failure.Answered, failure.QueueFull},
		{"disk full", "243", "", failure.Answered, failure.Resources},
		{"access denied", "497", "", failure.Answered, failure.Permission},
		{"authentication", "516", "", failure.Answered, failure.Permission},
		{"same id", "216", "", failure.Answered, failure.SubmitUnknown},
		{"too many parts", "252", "Too many parts (300) in all data parts", failure.Answered, failure.Resources},
		{"too many partitions of one insert", "252", "Too many partitions for single INSERT block (more than 100)", failure.Answered, failure.Semantic},
		{"network, refused", "210", "", failure.NotSent, failure.ClusterDown},
		{"network, on the way", "209", "", failure.SentUnknown, failure.SubmitUnknown},
		{"network, behind the engine", "279", "", failure.Answered, failure.ClusterDown},
		{"no code, refused", "", "connect: connection refused", failure.NotSent, failure.ClusterDown},
		{"no code, reset", "", "connection reset by peer", failure.SentUnknown, failure.SubmitUnknown},
		{"no code, answered", "", "HTTP 500", failure.Answered, failure.Internal},
		{"a code nobody knows", "30024", "", failure.Answered, failure.Internal},
		{"a known code keeps its class whatever the reach", "62", "", failure.SentUnknown, failure.Semantic},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := failure.Classify(failure.Report{Engine: "clickhouse", Code: c.code, Message: c.message, Reach: c.reach})
			require.Equal(t, string(c.want), f.Class)
			require.Equal(t, c.code, f.Code)
			require.Equal(t, c.message, f.Message)
			require.NotEmpty(t, f.Hint)
		})
	}
}

// TestCodesMatchExactly is case P12: a list of retryable codes that was searched for a substring took 300 for 13005.
func TestCodesMatchExactly(t *testing.T) {
	for _, code := range []string{"6", "24", "2410", "1", " 241", "0241", "16"} {
		f := failure.Classify(failure.Report{Engine: "clickhouse", Code: code, Reach: failure.Answered})
		require.NotEqual(t, string(failure.MemoryLimit), f.Class, code)
	}
	f := failure.Classify(failure.Report{Engine: "trino", Code: "241", Reach: failure.Answered})
	require.Equal(t, string(failure.Internal), f.Class, "codes of one engine mean nothing for another")
}

func TestNameComesFromTheEngineOrTheTable(t *testing.T) {
	require.Equal(t, "UNKNOWN_TABLE", failure.Classify(failure.Report{Engine: "clickhouse", Code: "60"}).Name)
	require.Equal(t, "NEW_NAME", failure.Classify(failure.Report{Engine: "clickhouse", Code: "60", Name: "NEW_NAME"}).Name)
}

func TestReachesAreTheEnginePortsPhases(t *testing.T) {
	require.Equal(t, string(engine.NotSent), string(failure.NotSent))
	require.Equal(t, string(engine.SentUnknown), string(failure.SentUnknown))
	require.Equal(t, string(engine.Answered), string(failure.Answered))
}

// Whoever has a write of unknown fate is told where each engine shows it.
func TestLookForNamesATraceOfEveryKind(t *testing.T) {
	for _, kind := range []string{"clickhouse", "postgres", "mysql", "trino", "spark", "flightsql"} {
		hint := failure.LookFor(kind, "warehouse", "t1/2", "n~1")
		require.Contains(t, hint, "attempt id t1/2 on warehouse (", kind)
		require.Contains(t, hint, "n~1", kind)
		require.NotContains(t, hint, "%!", kind)
	}
	require.Equal(t, "Look for the attempt id t1/2, and at what the statement writes to, before you run it again.", failure.LookFor("new", "", "t1/2", "t1/2"))
}

func TestPartialWrites(t *testing.T) {
	require.True(t, failure.Partial("clickhouse", failure.MemoryLimit))
	require.True(t, failure.Partial("trino", failure.KilledByOperator))
	require.False(t, failure.Partial("postgres", failure.Timeout), "a transaction is rolled back")
	require.False(t, failure.Partial("mysql", failure.Timeout))
	require.False(t, failure.Partial("clickhouse", failure.Semantic), "it has not begun")
}

func TestTooLongIsNotCalledASyntaxError(t *testing.T) {
	of := func(message string) string {
		return failure.Classify(failure.Report{Engine: "clickhouse", Code: "62", Message: message, Reach: failure.Answered}).Hint
	}
	require.Contains(t, of("Max query size exceeded (can be increased with the `max_query_size` setting): Syntax error: failed at position 15"), "longer than the engine takes")
	require.Contains(t, of("Syntax error: Multi-statements are not allowed"), "one statement at a time")
	require.Contains(t, of("Syntax error: failed at position 1 (SELEC)"), "names the position")
}

// An engine that refuses the executor itself is the platform team's to mend, and not the user's to ask for rights.
func TestTheExecutorsOwnCredential(t *testing.T) {
	for engine, codes := range map[string][]string{
		"clickhouse": {"193", "194", "516"}, "postgres": {"28000", "28P01"}, "mysql": {"1045", "1698"}, "mariadb": {"1045", "1698"}, "tidb": {"1045"}, "flightsql": {"16"}, "trino": {"http_401"},
	} {
		for _, code := range codes {
			f := failure.Classify(failure.Report{Engine: engine, Code: code, Reach: failure.Answered})
			require.Equal(t, string(failure.Permission), f.Class, "%s %s", engine, code)
			require.NotEqual(t, failure.Hint(failure.Permission), f.Hint, "%s %s", engine, code)
		}
	}
}

func TestStoppedForTime(t *testing.T) {
	var got []failure.Class
	for _, c := range failure.Classes() {
		if c.StoppedForTime() {
			got = append(got, c)
		}
	}
	require.Equal(t, []failure.Class{failure.Timeout, failure.SLAOverrun, failure.EstimateOverrun}, got)
}
