package follow_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/services/scaler/follow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type seen struct {
	mu     sync.Mutex
	values []string
}

func (s *seen) take(rec *kgo.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values = append(s.values, string(rec.Value))
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.values...)
}

func run(t *testing.T, b *streamtest.Broker, s *seen, stages ...[]follow.Source) *follow.Follower {
	t.Helper()
	f := follow.New(b.Config, b.Deps, "follow", s.take, stages...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return f
}

func write(t *testing.T, cl *kgo.Client, topic string, partition int32, values ...string) {
	t.Helper()
	for _, v := range values {
		require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: partition, Value: []byte(v)}).FirstErr())
	}
}

func TestStagesComeInOrder(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "ends", 2, nil)
	b.Topic(t, "begins", 2, nil)
	cl := b.Client(t)
	write(t, cl, "begins", 0, "b0", "b1")
	write(t, cl, "begins", 1, "b2")
	write(t, cl, "ends", 0, "e0")
	write(t, cl, "ends", 1, "e1")
	s := &seen{}
	f := run(t, b, s, []follow.Source{{Topic: "ends"}}, []follow.Source{{Topic: "begins"}})
	require.Eventually(t, f.Complete, 5*time.Second, time.Millisecond)
	got := s.all()
	require.Len(t, got, 5)
	require.ElementsMatch(t, []string{"e0", "e1"}, got[:2])
	require.NoError(t, f.Health(t.Context()))

	write(t, cl, "ends", 0, "e2")
	write(t, cl, "begins", 1, "b3")
	require.NoError(t, f.Verify(t.Context()))
	require.ElementsMatch(t, []string{"e2", "b3"}, s.all()[5:], "verified means handed over")
}

// K12: an outside producer's markers hold the last offsets, and yet the end is reached.
func TestMarkersAtTheEnd(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "x", 1, nil)
	tx := b.Client(t, kgo.TransactionalID("outside"))
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryAbort} {
		require.NoError(t, tx.BeginTransaction())
		write(t, tx, "x", 0, "v")
		require.NoError(t, tx.EndTransaction(t.Context(), end))
	}
	s := &seen{}
	f := run(t, b, s, []follow.Source{{Topic: "x"}})
	require.Eventually(t, f.Complete, 5*time.Second, time.Millisecond)
	require.NoError(t, f.Verify(t.Context()))
	require.Equal(t, []string{"v"}, s.all())
}

// K13: history has expired and there is no commit anywhere: what is left is what counts.
func TestExpiredHistory(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "x", 1, nil)
	cl := b.Client(t)
	write(t, cl, "x", 0, "0", "1", "2")
	require.NoError(t, b.DeleteRecords("x", 0, 3))
	s := &seen{}
	f := run(t, b, s, []follow.Source{{Topic: "x"}})
	require.Eventually(t, f.Complete, 5*time.Second, time.Millisecond)
	require.Empty(t, s.all())
	write(t, cl, "x", 0, "3")
	require.NoError(t, f.Verify(t.Context()))
	require.Equal(t, []string{"3"}, s.all())
}

func TestLookBack(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "x", 1, nil)
	cl := b.Client(t)
	old := &kgo.Record{Topic: "x", Value: []byte("old"), Timestamp: time.Now().Add(-time.Hour)}
	require.NoError(t, cl.ProduceSync(t.Context(), old).FirstErr())
	write(t, cl, "x", 0, "new")
	s := &seen{}
	f := run(t, b, s, []follow.Source{{Topic: "x", LookBack: time.Minute}})
	require.Eventually(t, f.Complete, 5*time.Second, time.Millisecond)
	require.Equal(t, []string{"new"}, s.all())
}

func TestWaitsForTopicsAndProvesNothingBlind(t *testing.T) {
	b := streamtest.Start(t)
	s := &seen{}
	f := run(t, b, s, []follow.Source{{Topic: "x"}})
	require.ErrorIs(t, f.Verify(t.Context()), follow.ErrBehind)
	require.Error(t, f.Health(t.Context()))
	b.Topic(t, "x", 1, nil)
	require.Eventually(t, f.Complete, 10*time.Second, time.Millisecond)

	b.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, f.Verify(ctx), follow.ErrBehind, "a broker that is away proves nothing")
}

func TestATopicThatIsMadeAnewIsReadAnew(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "x", 1, nil)
	s := &seen{}
	f := run(t, b, s, []follow.Source{{Topic: "x"}})
	require.Eventually(t, f.Complete, 5*time.Second, time.Millisecond)
	cl := b.Client(t)
	write(t, cl, "x", 0, "old")
	require.NoError(t, f.Verify(t.Context()))
	b.DeleteTopic("x")
	b.Topic(t, "x", 1, nil)
	write(t, b.Client(t), "x", 0, "new")
	require.Eventually(t, func() bool { all := s.all(); return len(all) > 1 && all[len(all)-1] == "new" }, 15*time.Second, 5*time.Millisecond)
}
