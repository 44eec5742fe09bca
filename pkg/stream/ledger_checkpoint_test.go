package stream_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
)

func TestLedgerCheckpoint(t *testing.T) {
	b := streamtest.Start(t)
	ledgerTopic(t, b)
	lc := stream.DefaultLedgerConfig(1, "A")
	lc.Slack = 0
	l, err := stream.OpenLedger(t.Context(), b.Config, b.Deps, lc)
	require.NoError(t, err)
	for i := range 20 {
		r := final(rec(fmt.Sprint("old", i), 1, `{}`))
		r.Deadline = time.Now().Add(-time.Second)
		_, err := l.End(t.Context(), r)
		require.NoError(t, err)
	}
	_, err = l.Claim(t.Context(), rec("open", 1, `{}`))
	require.NoError(t, err)
	require.NoError(t, l.Checkpoint(t.Context()))
	l.View(func(f *ledger.Fold) { require.Equal(t, 1, f.Len()) })
	require.Equal(t, int64(21), b.Offset(t, "attempt-state-ledger", event.TopicAttemptState, 1))
	require.NoError(t, l.Close(t.Context()))

	next := open(t, b, "B")
	require.Equal(t, int64(2), next.Epoch(), "the epoch comes with the checkpoint")
	next.View(func(f *ledger.Fold) { require.Equal(t, 1, f.Len(), "only what is still needed was read") })
	require.Len(t, next.Open(), 1)

	// the Task that everybody has forgotten is still found, and not ended in another way
	_, ok := next.Task("old7")
	require.False(t, ok)
	found, ok, err := next.Deep(t.Context(), "old7", time.Now().Add(-time.Minute))
	require.NoError(t, err)
	require.True(t, ok)
	require.NotNil(t, found.Final)
	require.True(t, found.Final.Trimmed)
	payload, err := next.Payload(t.Context(), *found.Final)
	require.NoError(t, err)
	require.Equal(t, `{}`, string(payload))
	_, ok, err = next.Deep(t.Context(), "never", time.Now().Add(-time.Minute))
	require.NoError(t, err)
	require.False(t, ok)
}

// A scan that starts in the middle of the log knows who held the partition there: a void end is not taken for the end of a Task.
func TestLedgerDeepFromTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		ledgerTopic(t, b)
		a := open(t, b, "A")
		time.Sleep(10 * time.Minute)
		held := time.Now()
		c := open(t, b, "C")
		// A has not noticed; its record lies behind C's lease
		stale := final(rec("t", 1, `"void"`))
		stale.Kind, stale.Epoch, stale.Owner, stale.Seq = ledger.KindEnd, a.Epoch(), "A", 99
		value, err := stale.Encode()
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		since := time.Now()
		cl := b.Client(t)
		require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: event.TopicAttemptState, Partition: 1, Value: value}).FirstErr())
		cl.Close()
		r := final(rec("u", 1, `"good"`))
		r.Deadline = time.Now().Add(time.Second)
		_, err = c.End(t.Context(), r)
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		d := open(t, b, "D")
		require.NoError(t, d.Checkpoint(t.Context()))

		for _, from := range []time.Time{since, held, held.Add(-time.Hour)} {
			_, ok, err := d.Deep(t.Context(), "t", from)
			require.NoError(t, err)
			require.False(t, ok, "void from %s", from)
			u, ok, err := d.Deep(t.Context(), "u", from)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, "C", u.Final.Owner)
		}
		for _, l := range []*stream.Ledger{a, c, d} {
			require.NoError(t, l.Close(t.Context()))
		}
	})
}

// Retention has taken the start of the log and the checkpoint is gone: the epoch goes on from what is left.
func TestLedgerWithoutItsStart(t *testing.T) {
	b := streamtest.Start(t)
	ledgerTopic(t, b)
	for _, owner := range []string{"A", "B", "C"} {
		l := open(t, b, owner)
		_, err := l.Claim(t.Context(), rec("t-"+owner, 1, `{}`))
		require.NoError(t, err)
	}
	require.NoError(t, b.DeleteRecords(event.TopicAttemptState, 1, 5)) // all but C's claim
	l := open(t, b, "D")
	require.Equal(t, int64(4), l.Epoch())
	require.Len(t, l.Open(), 1)
}
