package failure_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
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

func TestEveryClassHasAHintAndAdvice(t *testing.T) {
	for _, c := range failure.Classes() {
		require.True(t, c.Known())
		require.NotEmpty(t, failure.Hint(c), c)
		a := failure.Advise(failure.Situation{Class: c, ReadOnly: true, Reach: failure.Answered})
		require.NotEmpty(t, a.Remedy, c)
		require.NotEmpty(t, a.Why, c)
	}
	require.False(t, failure.Class("").Known())
}

func TestAdvise(t *testing.T) {
	for _, c := range []struct {
		name string
		s    failure.Situation
		want event.Remedy
	}{
		{"wrong SQL", failure.Situation{Class: failure.Semantic, ReadOnly: true, Reach: failure.Answered}, event.RemedyFail},
		{"read over its memory", failure.Situation{Class: failure.MemoryLimit, ReadOnly: true, Reach: failure.Answered}, event.RemedyFailover},
		{"write over its memory may have stored a part", failure.Situation{Class: failure.MemoryLimit, Reach: failure.Answered}, event.RemedyFail},
		{"node lost under a read", failure.Situation{Class: failure.ClusterDown, ReadOnly: true, Reach: failure.Answered}, event.RemedyReroute},
		{"refused connection, read", failure.Situation{Class: failure.ClusterDown, ReadOnly: true, Reach: failure.NotSent}, event.RemedyReroute},
		{"refused connection, write", failure.Situation{Class: failure.ClusterDown, Reach: failure.NotSent}, event.RemedyReroute},
		{"read of unknown fate", failure.Situation{Class: failure.SubmitUnknown, ReadOnly: true, Reach: failure.SentUnknown}, event.RemedyRetry},
		{"write of unknown fate", failure.Situation{Class: failure.SubmitUnknown, Reach: failure.SentUnknown}, event.RemedyFail},
		{"write that timed out", failure.Situation{Class: failure.Timeout, Reach: failure.Answered}, event.RemedyFail},
		{"write refused at the door", failure.Situation{Class: failure.QueueFull, Reach: failure.Answered}, event.RemedyFailover},
		{"cancelled by its user", failure.Situation{Class: failure.CancelledByUser, ReadOnly: true, Reach: failure.Answered}, event.RemedyFail},
		{"killed by an operator", failure.Situation{Class: failure.KilledByOperator, ReadOnly: true, Reach: failure.Answered}, event.RemedyFail},
		{"a class of a newer version", failure.Situation{Class: "quantum", ReadOnly: true, Reach: failure.Answered}, event.RemedyFailover},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, failure.Advise(c.s).Remedy)
		})
	}
}

func drawSituation(t *rapid.T) failure.Situation {
	return failure.Situation{
		Class:    rapid.SampledFrom(failure.Classes()).Draw(t, "class"),
		ReadOnly: rapid.Bool().Draw(t, "readOnly"),
		Reach:    rapid.SampledFrom([]failure.Reach{failure.NotSent, failure.SentUnknown, failure.Answered}).Draw(t, "reach"),
	}
}

func TestAWriteThatMayHaveRunNeverRunsAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t)
		s.ReadOnly = false
		if s.Reach == failure.NotSent || s.Class == failure.QueueFull {
			t.Skip("it can't have run")
		}
		require.Equal(t, event.RemedyFail, failure.Advise(s).Remedy)
	})
}

func TestChooseStaysWithinWhatIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := failure.Advise(drawSituation(t))
		left := failure.Left{
			Attempts:  rapid.IntRange(0, 3).Draw(t, "attempts"),
			Retries:   rapid.IntRange(0, 2).Draw(t, "retries"),
			Fallbacks: rapid.IntRange(0, 2).Draw(t, "fallbacks"),
		}
		remedy, why := failure.Choose(a, left)
		require.NotEmpty(t, why)
		switch {
		case a.Remedy == event.RemedyFail, left.Attempts == 0:
			require.Equal(t, event.RemedyFail, remedy)
		case remedy == event.RemedyRetry:
			require.Positive(t, left.Retries)
		case remedy == event.RemedyFailover:
			require.Positive(t, left.Fallbacks)
		default:
			require.Equal(t, event.RemedyReroute, remedy)
		}
	})
}
