package failure_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/failure"
)

func TestClassifyTrino(t *testing.T) {
	for _, c := range []struct {
		name, code, typ, message string
		reach                    failure.Reach
		want                     failure.Class
	}{
		{"column", "47", "USER_ERROR", "", failure.Answered, failure.Semantic},
		{"denied", "4", "USER_ERROR", "", failure.Answered, failure.Permission},
		{"killed through the API is typed as the user's error and is none", "3", "USER_ERROR", "", failure.Answered, failure.KilledByOperator},
		{"killed by an operator, likewise", "38", "USER_ERROR", "", failure.Answered, failure.KilledByOperator},
		{"made room for another", "131080", "INSUFFICIENT_RESOURCES", "", failure.Answered, failure.Resources},
		{"nobody fetched its pages", "2", "USER_ERROR", "", failure.Answered, failure.SubmitUnknown},
		{"memory of a node", "131079", "INSUFFICIENT_RESOURCES", "", failure.Answered, failure.MemoryLimit},
		{"memory of all nodes", "131073", "INSUFFICIENT_RESOURCES", "", failure.Answered, failure.MemoryLimit},
		{"queue full", "131074", "INSUFFICIENT_RESOURCES", "", failure.Answered, failure.QueueFull},
		{"time", "131075", "INSUFFICIENT_RESOURCES", "", failure.Answered, failure.Timeout},
		{"no workers yet", "65536", "INTERNAL_ERROR", "nodes is empty", failure.Answered, failure.ClusterDown},
		{"any other internal error", "65536", "INTERNAL_ERROR", "null", failure.Answered, failure.Internal},
		{"a worker that went away", "65558", "INTERNAL_ERROR", "", failure.Answered, failure.ClusterDown},
		{"a connector's own, the user's", "16777249", "USER_ERROR", "", failure.Answered, failure.Semantic},
		{"a connector's own, resources", "16777250", "INSUFFICIENT_RESOURCES", "", failure.Answered, failure.Resources},
		{"a connector's own, its source's", "16777216", "EXTERNAL", "", failure.Answered, failure.Internal},
		{"a connector's own, of a type nobody knows", "16777216", "COSMIC", "", failure.Answered, failure.Internal},
		{"the type of a known code means nothing", "47", "EXTERNAL", "", failure.Answered, failure.Semantic},
		{"a proxy without a server, before the start", "http_502", "", "", failure.NotSent, failure.ClusterDown},
		{"a proxy without a server, afterwards", "http_502", "", "", failure.SentUnknown, failure.SubmitUnknown},
		{"too many requests never frees a started write for another run", "http_429", "", "", failure.SentUnknown, failure.SubmitUnknown},
		{"a server that has no access control yet", "http_500", "", "HTTP status 500: io.trino.spi.TrinoException: Trino server is still initializing", failure.NotSent, failure.ClusterDown},
		{"any other fault of the server", "http_500", "", "HTTP status 500: NullPointerException", failure.NotSent, failure.Internal},
		{"a wrong password", "http_401", "", "", failure.NotSent, failure.Permission},
		{"a server that was started anew", "http_404", "", "", failure.Answered, failure.ClusterDown},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := failure.Classify(failure.Report{Engine: "trino", Code: c.code, Type: c.typ, Message: c.message, Reach: c.reach})
			require.Equal(t, string(c.want), f.Class)
			require.NotEmpty(t, f.Hint)
		})
	}
	f := failure.Classify(failure.Report{Engine: "clickhouse", Code: "999999", Type: "USER_ERROR", Reach: failure.Answered})
	require.Equal(t, string(failure.Internal), f.Class, "types of one engine mean nothing for another")
}
