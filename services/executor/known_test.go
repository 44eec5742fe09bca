package executor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
)

// TestWhatTheNextOwnerRunsIsNotAdopted is the moment in which a process that wakes has read of its next owner, and of what that runs, and
// has not yet stopped what it does.
func TestWhatTheNextOwnerRunsIsNotAdopted(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, event.TopicAttemptState, 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
	l, err := stream.OpenLedger(t.Context(), b.Config, b.Deps, stream.DefaultLedgerConfig(0, "sleeper"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close(context.Background())) })
	deadline := time.Now().Add(time.Minute)
	mine := ledger.Record{Key: "t1/1", TaskID: "t1", Attempt: 1, Deadline: deadline}
	entry, err := l.Claim(t.Context(), mine)
	require.NoError(t, err)
	require.True(t, entry.Verdict.Accepted)

	task := func(id string) *task {
		d := event.RouteDecision{TaskID: id, Kind: event.Route, Deadline: deadline}
		return &task{id: id, first: d, rec: &kgo.Record{Timestamp: time.Now()}, ledger: l}
	}
	known, err := task("t1").known(t.Context())
	require.NoError(t, err)
	require.Len(t, known.Attempts, 1)

	l.View(func(f *ledger.Fold) {
		lease := ledger.Record{Kind: ledger.KindLease, Key: "lease/0", Epoch: l.Epoch() + 1, Owner: "next"}
		require.True(t, f.Apply(f.Next(), time.Now(), lease).Accepted)
		claim := ledger.Record{Kind: ledger.KindClaim, Key: "t2/1", Epoch: l.Epoch() + 1, Owner: "next", TaskID: "t2", Attempt: 1, Deadline: deadline}
		require.True(t, f.Apply(f.Next(), time.Now(), claim).Accepted)
	})
	for _, id := range []string{"t1", "t2", "t3"} {
		_, err := task(id).known(t.Context())
		require.ErrorIs(t, err, errLetGo, id)
	}
}
