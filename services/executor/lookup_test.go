package executor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
)

// TestALostSubmissionOfOurOwnSettlesBeforeItIsGone: the connection breaks just after the query has left, and the engine sees it
// 50 ms later, well within GuardSettle.
func TestALostSubmissionOfOurOwnSettlesBeforeItIsGone(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("LATE", behaviour{rows: 1, late: 50 * time.Millisecond})
	b.start()
	b.decide(b.route("t1", "LATE"))
	o := b.outcome("t1")
	require.Equal(t, event.Succeeded, o.Status)
	require.Equal(t, 2, o.Attempts)
	require.Equal(t, map[string]int{"t1/1": 1, "t1/2": 1}, b.servers[interactive].counts())
	require.True(t, b.servers[interactive].wasKilled("t1/1"), "it is found, and stopped before the next attempt")
	require.False(t, b.servers[interactive].active("t1/1"))
}

// TestACancelOfALostSubmissionStopsWhatComesLate is the same for a user who takes the Task back meanwhile.
func TestACancelOfALostSubmissionStopsWhatComesLate(t *testing.T) {
	b := newBench(t, 1)
	b.servers[interactive].on("LATE", behaviour{late: 80 * time.Millisecond})
	b.start()
	b.decide(b.route("t1", "LATE"))
	b.change("t1/1", "submit_unknown")
	b.decide(cancelOf("t1"))
	require.Equal(t, event.Cancelled, b.outcome("t1").Status)
	require.Eventually(t, func() bool { return b.servers[interactive].count("t1/1") == 1 }, patience, 10*time.Millisecond)
	require.False(t, b.servers[interactive].active("t1/1"))
}
