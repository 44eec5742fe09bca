package stream

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTrackerCommitsOnlyThePrefix(t *testing.T) {
	tr := newTracker(5, 5)
	_, _, ok := tr.toCommit()
	require.False(t, ok)
	for o := int64(5); o < 10; o++ {
		require.True(t, tr.deliver(o, 3, 10))
	}
	require.False(t, tr.deliver(7, 3, 10), "delivered before")
	tr.done(9)
	tr.done(7)
	tr.done(6)
	tr.done(100)
	_, _, ok = tr.toCommit()
	require.False(t, ok, "the first one is not finished")
	require.Equal(t, 5, tr.span())
	tr.done(5)
	at, epoch, ok := tr.toCommit()
	require.True(t, ok)
	require.Equal(t, int64(8), at)
	require.Equal(t, int32(3), epoch)
	require.Equal(t, 2, tr.span())
	require.Equal(t, int64(10), tr.held)
	tr.done(8)
	tr.done(8)
	require.Zero(t, tr.held)
}

func TestTrackerGoesByWhatWasDelivered(t *testing.T) {
	tr := newTracker(-1, 0)
	tr.deliver(0, 0, 10)
	tr.deliver(4, 0, 10) // 1 to 3 were aborted
	tr.done(0)
	tr.done(4)
	at, _, ok := tr.toCommit()
	require.True(t, ok)
	require.Equal(t, int64(5), at)

	tr.deliver(9, 0, 10)
	tr.doneBelow(8)
	at, _, _ = tr.toCommit()
	require.Equal(t, int64(8), at)
	require.Equal(t, 1, tr.span())
}

// Whatever the order, the commit is below every unfinished record, and never goes back.
func TestTrackerProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTracker(-1, 0)
		open := map[int64]bool{}
		next, last := int64(0), int64(0)
		for range rapid.IntRange(1, 3000).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "deliver") {
				next += int64(rapid.IntRange(0, 2).Draw(t, "gap"))
				tr.deliver(next, 0, 10)
				open[next] = true
				next++
			} else if len(tr.items) > 0 {
				o := tr.items[rapid.IntRange(0, len(tr.items)-1).Draw(t, "i")].offset
				tr.done(o)
				delete(open, o)
			}
			at, _, ok := tr.toCommit()
			if at < last {
				t.Fatalf("went back from %d to %d", last, at)
			}
			last = at
			for o := range open {
				if ok && o < at {
					t.Fatalf("%d is not finished, %d would be committed", o, at)
				}
			}
			if len(open) == 0 && next > 0 && tr.span() != 0 {
				t.Fatalf("all is finished and the span is %d", tr.span())
			}
		}
	})
}
