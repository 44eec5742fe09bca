package failure_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/failure"
)

func TestClassifyFlightSQL(t *testing.T) {
	for _, c := range []struct {
		code, message string
		reach         failure.Reach
		want          failure.Class
	}{
		{"1", "", failure.Answered, failure.KilledByOperator},
		{"2", "no such table: t", failure.Answered, failure.Internal},
		{"3", "", failure.Answered, failure.Semantic},
		{"3", "a setting that can't be sent", failure.NotSent, failure.Semantic},
		{"4", "", failure.Answered, failure.Timeout},
		{"4", "the server did not confirm that it stopped", failure.SentUnknown, failure.Timeout},
		{"5", "", failure.Answered, failure.Semantic},
		{"6", "", failure.Answered, failure.Semantic},
		{"7", "", failure.Answered, failure.Permission},
		{"8", "Memory limit exceeded", failure.Answered, failure.MemoryLimit},
		{"8", "Too many simultaneous queries", failure.Answered, failure.QueueFull},
		{"8", "The query queue is full", failure.Answered, failure.QueueFull},
		{"8", "grpc: trying to send message larger than max (9 vs. 8)", failure.Answered, failure.ResultTooLarge},
		{"8", "disk quota", failure.Answered, failure.Resources},
		{"9", "", failure.Answered, failure.Semantic},
		{"10", "", failure.Answered, failure.Internal},
		{"11", "", failure.Answered, failure.Semantic},
		{"12", "", failure.Answered, failure.Semantic},
		{"13", "", failure.Answered, failure.Internal},
		{"14", "", failure.NotSent, failure.ClusterDown},
		{"14", "", failure.SentUnknown, failure.SubmitUnknown},
		{"15", "", failure.Answered, failure.Internal},
		{"16", "", failure.NotSent, failure.Permission},
		{"", "error reading from server: EOF", failure.SentUnknown, failure.SubmitUnknown},
		{"", "connection refused", failure.NotSent, failure.ClusterDown},
	} {
		f := failure.Classify(failure.Report{Engine: "flightsql", Code: c.code, Message: c.message, Reach: c.reach})
		require.Equal(t, string(c.want), f.Class, "%s %s", c.code, c.message)
		require.NotEmpty(t, f.Hint)
	}
	for code := 1; code <= 16; code++ { // gRPC has no others
		f := failure.Classify(failure.Report{Engine: "flightsql", Code: strconv.Itoa(code), Reach: failure.Answered})
		require.NotEmpty(t, f.Name)
	}
}
