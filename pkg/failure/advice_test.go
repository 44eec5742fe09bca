package failure_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
)

func TestEveryClassHasAHintAndAdvice(t *testing.T) {
	for _, c := range failure.Classes() {
		require.True(t, c.Known())
		require.NotEmpty(t, failure.Hint(c), c)
		require.NotEmpty(t, failure.Advise(failure.Situation{Class: c, ReadOnly: true, Reach: failure.Answered}).Why, c)
	}
	require.False(t, failure.Class("").Known())
}

// TestAdvise has every class with every kind of statement.
func TestAdvise(t *testing.T) {
	const none = ""
	table := map[failure.Class]struct{ read, unsentWrite, sentWrite string }{
		failure.Semantic:         {none, none, none},
		failure.Permission:       {none, none, none},
		failure.EngineStart:      {"failover reroute", "reroute", none},
		failure.SubmitUnknown:    {"retry failover reroute", "retry reroute", none},
		failure.Resources:        {"failover reroute", "reroute", none},
		failure.MemoryLimit:      {"enlarge failover reroute", "enlarge reroute", none},
		failure.QueueFull:        {"failover retry reroute", "retry reroute", "retry reroute"},
		failure.ClusterDown:      {"failover reroute", "reroute", none},
		failure.Timeout:          {"failover reroute", "reroute", none},
		failure.SLAOverrun:       {"reroute", "reroute", none},
		failure.EstimateOverrun:  {"reroute", "reroute", none},
		failure.CancelledByUser:  {none, none, none},
		failure.KilledByOperator: {none, none, none},
		failure.ResultTooLarge:   {none, none, none},
		failure.Internal:         {"failover reroute", "reroute", none},
		"a class of a newer one": {"failover reroute", "reroute", none},
	}
	require.Len(t, table, len(failure.Classes())+1)
	for c, want := range table {
		for _, reach := range []failure.Reach{failure.NotSent, failure.SentUnknown, failure.Answered} {
			for _, readOnly := range []bool{true, false} {
				list := want.sentWrite
				switch {
				case readOnly:
					list = want.read
				case reach == failure.NotSent:
					list = want.unsentWrite
				}
				s := failure.Situation{Class: c, ReadOnly: readOnly, Reach: reach}
				require.Equal(t, list, words(failure.Advise(s).Remedies), "%+v", s)
				s.Delivered = true
				require.Empty(t, failure.Advise(s).Remedies, "what was delivered is never replayed: %+v", s)
			}
		}
	}
}

func words(list []event.Remedy) string {
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = string(r)
	}
	return strings.Join(out, " ")
}

func TestChoose(t *testing.T) {
	all := failure.Left{Attempts: 1, Retries: 1, RetryBudget: true, Larger: true, Fallbacks: 1}
	read := func(c failure.Class) failure.Advice {
		return failure.Advise(failure.Situation{Class: c, ReadOnly: true, Reach: failure.Answered})
	}
	for _, c := range []struct {
		name  string
		class failure.Class
		edit  func(*failure.Left)
		want  event.Remedy
		why   string
	}{
		{"wrong SQL", failure.Semantic, nil, event.RemedyFail, "the same text"},
		{"a read of unknown fate", failure.SubmitUnknown, nil, event.RemedyRetry, "known to be gone"},
		{"without retries", failure.SubmitUnknown, func(l *failure.Left) { l.Retries = 0 }, event.RemedyFailover, "retries here are used up"},
		{"without a budget", failure.SubmitUnknown, func(l *failure.Left) { l.RetryBudget = false }, event.RemedyFailover, "budget of retries"},
		{"with neither", failure.SubmitUnknown, func(l *failure.Left) { l.RetryBudget, l.Fallbacks = false, 0 }, event.RemedyReroute, "no fallback"},
		{"over its memory", failure.MemoryLimit, nil, event.RemedyEnlarge, "more memory"},
		{"over the largest memory", failure.MemoryLimit, func(l *failure.Left) { l.Larger = false }, event.RemedyFailover, "no larger"},
		{"over all memory", failure.MemoryLimit, func(l *failure.Left) { l.Larger, l.Fallbacks = false, 0 }, event.RemedyReroute, "no fallback"},
		{"a full queue", failure.QueueFull, nil, event.RemedyFailover, "refused"},
		{"the only queue is full", failure.QueueFull, func(l *failure.Left) { l.Fallbacks = 0 }, event.RemedyRetry, "no fallback"},
		{"a cluster that is down", failure.ClusterDown, nil, event.RemedyFailover, "can't be reached"},
		{"an estimate that was wrong", failure.EstimateOverrun, nil, event.RemedyReroute, "estimate was wrong"},
		{"the last attempt", failure.ClusterDown, func(l *failure.Left) { l.Attempts = 0 }, event.RemedyFail, "used up its attempts"},
	} {
		left := all
		if c.edit != nil {
			c.edit(&left)
		}
		remedy, why := failure.Choose(read(c.class), left)
		require.Equal(t, c.want, remedy, c.name)
		require.Contains(t, why, c.why, c.name)
	}
	remedy, why := failure.Choose(failure.Advice{Remedies: []event.Remedy{event.RemedyRetry}}, failure.Left{Attempts: 1})
	require.Equal(t, event.RemedyFail, remedy)
	require.NotEmpty(t, why)
}

func drawSituation(t *rapid.T) failure.Situation {
	return failure.Situation{
		Class:     rapid.SampledFrom(failure.Classes()).Draw(t, "class"),
		ReadOnly:  rapid.Bool().Draw(t, "readOnly"),
		Reach:     rapid.SampledFrom([]failure.Reach{failure.NotSent, failure.SentUnknown, failure.Answered}).Draw(t, "reach"),
		Delivered: rapid.Bool().Draw(t, "delivered"),
	}
}

func TestAWriteThatMayHaveRunNeverRunsAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t)
		s.ReadOnly = false
		if s.Reach == failure.NotSent || s.Class == failure.QueueFull {
			t.Skip("it can't have run")
		}
		require.Empty(t, failure.Advise(s).Remedies)
	})
}

func TestChooseStaysWithinWhatIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := failure.Advise(drawSituation(t))
		left := failure.Left{
			Attempts:    rapid.IntRange(0, 3).Draw(t, "attempts"),
			Retries:     rapid.IntRange(0, 2).Draw(t, "retries"),
			RetryBudget: rapid.Bool().Draw(t, "budget"),
			Larger:      rapid.Bool().Draw(t, "larger"),
			Fallbacks:   rapid.IntRange(0, 2).Draw(t, "fallbacks"),
		}
		remedy, why := failure.Choose(a, left)
		require.NotEmpty(t, why)
		switch {
		case len(a.Remedies) == 0, left.Attempts == 0:
			require.Equal(t, event.RemedyFail, remedy)
		case remedy == event.RemedyRetry:
			require.Positive(t, left.Retries)
			require.True(t, left.RetryBudget)
		case remedy == event.RemedyEnlarge:
			require.True(t, left.Larger)
		case remedy == event.RemedyFailover:
			require.Positive(t, left.Fallbacks)
		default:
			require.Equal(t, event.RemedyReroute, remedy)
		}
	})
}
