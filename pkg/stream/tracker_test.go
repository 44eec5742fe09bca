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
	tr.done(9, 3)
	tr.done(7, 3)
	tr.done(6, 3)
	tr.done(100, 3)
	_, _, ok = tr.toCommit()
	require.False(t, ok, "the first one is not finished")
	require.Equal(t, 2, tr.span(), "what waits behind it does not count")
	tr.done(5, 3)
	at, epoch, ok := tr.toCommit()
	require.True(t, ok)
	require.Equal(t, int64(8), at)
	require.Equal(t, int32(3), epoch)
	require.Equal(t, 1, tr.span())
	require.Equal(t, int64(10), tr.held)
	tr.done(8, 3)
	tr.done(8, 3)
	require.Zero(t, tr.held)
}

func TestTrackerGoesByWhatWasDelivered(t *testing.T) {
	tr := newTracker(-1, 0)
	tr.deliver(0, 0, 10)
	tr.deliver(4, 0, 10) // 1 to 3 were aborted
	tr.done(0, 0)
	tr.done(4, 0)
	at, _, ok := tr.toCommit()
	require.True(t, ok)
	require.Equal(t, int64(5), at)

	tr.deliver(9, 0, 10)
	tr.doneBelow(8)
	at, _, _ = tr.toCommit()
	require.Equal(t, int64(8), at)
	require.Equal(t, 1, tr.span())
}

// A million records that are finished behind one that is not take no memory, and hold nothing up.
func TestTrackerForgetsWhatIsFinished(t *testing.T) {
	tr := newTracker(-1, 0)
	tr.deliver(0, 0, 10)
	for o := int64(1); o < 1_000_000; o++ {
		tr.deliver(o, 0, 10)
		tr.done(o, 0)
	}
	require.Less(t, cap(tr.items), 10_000)
	require.Equal(t, 1, tr.span())
	require.Equal(t, int64(1_000_000), tr.behind())
	_, _, ok := tr.toCommit()
	require.False(t, ok)
	tr.done(0, 0)
	at, _, ok := tr.toCommit()
	require.True(t, ok)
	require.Equal(t, int64(1_000_000), at)
	require.Zero(t, tr.behind())
}

// The log lost its end. What was there before is forgotten, what comes in its place counts, and who still works on one that is gone
// does not finish another.
func TestTrackerRewinds(t *testing.T) {
	tr := newTracker(6, 6)
	for o := int64(6); o < 12; o++ {
		tr.deliver(o, 1, 10)
	}
	tr.done(6, 1)
	tr.done(7, 1)
	tr.done(9, 1)
	tr.rewind(7)
	require.Zero(t, tr.span())
	require.Zero(t, tr.held)
	at, _, ok := tr.toCommit()
	require.True(t, ok)
	require.Equal(t, int64(7), at)
	for o := int64(7); o < 12; o++ {
		require.True(t, tr.deliver(o, 2, 10))
	}
	tr.done(7, 1)
	at, _, _ = tr.toCommit()
	require.Equal(t, int64(7), at)
	tr.done(7, 2)
	at, epoch, _ := tr.toCommit()
	require.Equal(t, int64(8), at)
	require.Equal(t, int32(2), epoch)

	tr = newTracker(100, 100)
	tr.rewind(50)
	at, _, ok = tr.toCommit()
	require.True(t, ok, "or the group would skip what is new when it starts again")
	require.Equal(t, int64(50), at)
	tr.rewind(70)
	require.Equal(t, int64(50), tr.next, "never forward")
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
				tr.done(o, 0)
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
			if tr.span() != len(open) || tr.held != int64(10*len(open)) {
				t.Fatalf("%d are not finished, the span is %d and holds %d", len(open), tr.span(), tr.held)
			}
			if len(open) == 0 && at != next {
				t.Fatalf("all is finished up to %d, and %d would be committed", next, at)
			}
		}
	})
}
