package failure_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/failure"
)

func TestClassifyPostgresAndTheMySQLFamily(t *testing.T) {
	for _, c := range []struct {
		engine, code, message string
		reach                 failure.Reach
		want                  failure.Class
	}{
		{"postgres", "42P01", "", failure.Answered, failure.Semantic},
		{"postgres", "57014", "canceling statement due to user request", failure.Answered, failure.KilledByOperator},
		{"postgres", "57014", "canceling statement due to statement timeout", failure.Answered, failure.Timeout},
		{"postgres", "57014", "Anfrage wird abgebrochen (statement timeout)", failure.Answered, failure.Timeout},
		{"postgres", "57P01", "terminating connection due to administrator command", failure.Answered, failure.KilledByOperator},
		{"postgres", "57P01", "terminating connection due to administrator command (the server is shutting down)", failure.Answered, failure.ClusterDown},
		{"postgres", "57P03", "the database system is starting up", failure.NotSent, failure.ClusterDown},
		{"postgres", "57P02", "", failure.SentUnknown, failure.SubmitUnknown},
		{"postgres", "08P01", "bind message supplies 0 parameters, but prepared statement \"\" requires 1", failure.Answered, failure.Semantic},
		{"postgres", "08P01", "invalid frontend message type", failure.SentUnknown, failure.SubmitUnknown},
		{"postgres", "08006", "", failure.SentUnknown, failure.SubmitUnknown},
		{"postgres", "40003", "", failure.Answered, failure.SubmitUnknown},
		{"postgres", "53200", "", failure.Answered, failure.MemoryLimit},
		{"postgres", "42501", "", failure.Answered, failure.Permission},
		{"postgres", "HV00N", "", failure.Answered, failure.ClusterDown},
		{"postgres", "XX000", "", failure.Answered, failure.Internal},
		{"postgres", "ZZ999", "", failure.Answered, failure.Internal},

		{"mysql", "1054", "", failure.Answered, failure.Semantic},
		{"mysql", "3024", "", failure.Answered, failure.Timeout},
		{"mysql", "1317", "Query execution was interrupted", failure.Answered, failure.KilledByOperator},
		{"mysql", "1317", "Query execution was interrupted (the server is shutting down)", failure.Answered, failure.ClusterDown},
		{"mysql", "1040", "", failure.NotSent, failure.QueueFull},
		{"mysql", "4009", "", failure.Answered, failure.Internal}, // a number of MariaDB's
		{"mariadb", "4009", "", failure.Answered, failure.Semantic},
		{"mariadb", "3024", "", failure.Answered, failure.Internal}, // a number of MySQL's
		{"mariadb", "1969", "", failure.Answered, failure.Timeout},
		{"mariadb", "1290", "running with the --read-only option", failure.Answered, failure.Semantic},
		{"mariadb", "1290", "running with the --max-session-mem-used=8192 option", failure.Answered, failure.MemoryLimit},
		{"tidb", "8175", "", failure.Answered, failure.MemoryLimit},
		{"tidb", "1105", "Your query has been cancelled due to exceeding the allowed memory limit for a single SQL query.", failure.Answered, failure.MemoryLimit},
		{"tidb", "9005", "", failure.Answered, failure.ClusterDown},
		{"tidb", "1105", "Out Of Memory Quota![conn=1]", failure.Answered, failure.MemoryLimit},
		{"mysql", "1053", "Server shutdown in progress", failure.Answered, failure.ClusterDown},
		{"starrocks", "1053", "Illegal column/field reference 'a' of semi-/anti-join", failure.Answered, failure.Semantic},
		{"starrocks", "1064", "Getting analyzing error. Detail message: Unknown table 'x'.", failure.Answered, failure.Semantic},
		{"starrocks", "1064", "Memory of process exceed limit.  Used: 21770833296, Limit: 23921172725. Mem usage has exceed the limit of BE", failure.Answered, failure.MemoryLimit},
		{"starrocks", "1064", "Failed to allocate resource to query: pending timeout", failure.Answered, failure.QueueFull},
		{"starrocks", "5024", "", failure.Answered, failure.Timeout},
		{"doris", "1105", "errCode = 2, detailMessage = query waiting queue is full, queue capacity=1, waiting num=1", failure.Answered, failure.QueueFull},
		{"doris", "1105", "errCode = 2, detailMessage = query queue timeout, timeout: 100 ms", failure.Answered, failure.QueueFull},
		{"doris", "1105", "errCode = 2, detailMessage = query timeout", failure.Answered, failure.Timeout},
		{"doris", "1105", "errCode = 2, detailMessage = (h)[CANCELLED][MEM_LIMIT_EXCEEDED]", failure.Answered, failure.MemoryLimit},
		{"doris", "1105", "errCode = 2, detailMessage = something new", failure.Answered, failure.Internal},
		{"doris", "1224", "", failure.Answered, failure.Permission},
		{"mysql", "1224", "", failure.Answered, failure.Semantic},
	} {
		f := failure.Classify(failure.Report{Engine: c.engine, Code: c.code, Message: c.message, Reach: c.reach})
		require.Equal(t, string(c.want), f.Class, "%s %s %q", c.engine, c.code, c.message)
		require.NotEmpty(t, f.Hint)
	}
}

// TestTheirCodesMatchExactly is case P12 for these engines.
func TestTheirCodesMatchExactly(t *testing.T) {
	for engine, codes := range map[string][]string{
		"postgres": {"57", "5701", "57014 ", "057014", "42p01"}, "mysql": {"13", "131", "13170", " 1317", "01317"}, "tidb": {"817", "81750"},
	} {
		for _, code := range codes {
			f := failure.Classify(failure.Report{Engine: engine, Code: code, Reach: failure.Answered})
			require.Equal(t, string(failure.Internal), f.Class, "%s %q", engine, code)
		}
	}
}
