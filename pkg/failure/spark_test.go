package failure_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/failure"
)

func TestClassifySpark(t *testing.T) {
	for _, c := range []struct {
		name, code, typ, message string
		reach                    failure.Reach
		want                     failure.Class
	}{
		{"table", "TABLE_OR_VIEW_NOT_FOUND", "42", "", failure.Answered, failure.Semantic},
		{"a class that is not listed, by its state", "MISSING_AGGREGATION", "42", "", failure.Answered, failure.Semantic},
		{"memory by its state", "NEW_OUT_OF_MEMORY", "82", "", failure.Answered, failure.MemoryLimit},
		{"an internal error", "INTERNAL_ERROR", "XX", "", failure.Answered, failure.Internal},
		{"a state that nobody knows", "NEW", "ZZ", "", failure.Answered, failure.Internal},
		{"interrupted", "OPERATION_CANCELED", "HY", "", failure.Answered, failure.KilledByOperator},
		{"its session closed by somebody", "INVALID_HANDLE.SESSION_CLOSED", "HY", "", failure.Answered, failure.KilledByOperator},
		{"the server was started anew", "INVALID_HANDLE.SESSION_NOT_FOUND", "HY", "", failure.SentUnknown, failure.SubmitUnknown},
		{"the same, before the start", "INVALID_HANDLE.SESSION_CHANGED", "HY", "", failure.NotSent, failure.ClusterDown},
		{"its name is taken", "INVALID_HANDLE.OPERATION_ALREADY_EXISTS", "HY", "", failure.SentUnknown, failure.SubmitUnknown},
		{"our time limit", "pointsman.TIME_LIMIT", "", "", failure.Answered, failure.Timeout},
		{"too large a result", "org.apache.spark.SparkException", "", "Job aborted due to stage failure: Total size of serialized results of 9 tasks (1024.1 MiB) is bigger than spark.driver.maxResultSize (1024.0 MiB)", failure.Answered, failure.ResultTooLarge},
		{"an executor that was lost", "org.apache.spark.SparkException", "", "Job aborted due to stage failure: ExecutorLostFailure (executor 3 exited)", failure.Answered, failure.ClusterDown},
		{"any other failed stage", "org.apache.spark.SparkException", "", "Job aborted", failure.Answered, failure.Internal},
		{"no Spark at all", "grpc.Unimplemented", "", "", failure.Answered, failure.ClusterDown},
		{"a wrong token", "grpc.Unauthenticated", "", "", failure.NotSent, failure.Permission},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := failure.Classify(failure.Report{Engine: "spark", Code: c.code, Type: c.typ, Message: c.message, Reach: c.reach})
			require.Equal(t, string(c.want), f.Class)
			require.NotEmpty(t, f.Hint)
		})
	}
	for _, code := range []string{"TABLE_OR_VIEW", "table_or_view_not_found", "OPERATION_CANCELED ", "UNRESOLVED_COLUMN"} { // case P12
		f := failure.Classify(failure.Report{Engine: "spark", Code: code, Reach: failure.Answered})
		require.Equal(t, string(failure.Internal), f.Class, "%q", code)
	}
}
