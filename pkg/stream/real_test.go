//go:build real

package stream_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/test/real/kafka"
)

// What the embedded broker can't show: the broker's own times, its own settings, and how long things take.
func TestOnRealKafka(t *testing.T) {
	cluster := kafka.Start(t, kafka.Options{})
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Prefix = cluster.Addrs(), "real."
	deps := stream.Deps{Log: slog.New(slog.DiscardHandler)}
	specs, err := topicadmin.Specs()
	require.NoError(t, err)
	deps.MaxBytes = topicadmin.MaxBytes(specs)

	t.Run("topics", func(t *testing.T) {
		_, err := topicadmin.Apply(t.Context(), cfg, deps, specs, topicadmin.Options{MinInSync: 1})
		require.NoError(t, err)
		plan, err := topicadmin.Diff(t.Context(), cfg, deps, specs, topicadmin.Options{MinInSync: 1})
		require.NoError(t, err)
		require.Empty(t, plan, plan.String())
	})
	t.Run("ledger", func(t *testing.T) { realLedger(t, cfg, deps) })
	t.Run("large records", func(t *testing.T) {
		p, err := stream.NewProducer(cfg, deps, "large")
		require.NoError(t, err)
		defer p.Close()
		require.NoError(t, p.Send(t.Context(), msg("requests", "1", incompressible(1_900_000)), msg("attempt-state", "1", incompressible(6_000_000))))
		require.ErrorIs(t, p.Send(t.Context(), msg("requests", "2", incompressible(2_200_000))), stream.ErrTooLarge)
	})
	t.Run("consumer", func(t *testing.T) { realConsumer(t, cfg, deps) })
}

func realLedger(t *testing.T, cfg stream.Config, deps stream.Deps) {
	open := func(owner string) *stream.Ledger {
		l, err := stream.OpenLedger(t.Context(), cfg, deps, stream.DefaultLedgerConfig(3, owner))
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close(context.Background()) })
		return l
	}
	old := open("A")
	var took []time.Duration
	for i := range 200 {
		began := time.Now()
		e, err := old.Claim(t.Context(), rec(fmt.Sprint("t", i), 1, `{}`))
		require.NoError(t, err)
		require.True(t, e.Verdict.Accepted)
		took = append(took, time.Since(began))
		time.Sleep(2 * time.Millisecond)
	}
	slices.Sort(took)
	t.Logf("claim written and read back: p50 %s, p95 %s, p99 %s", took[100], took[190], took[198])

	time.Sleep(2 * time.Second)
	began := time.Now()
	next := open("B")
	t.Logf("take-over of 200 open attempts: %s", time.Since(began))
	<-old.Lost()
	require.Len(t, next.Open(), 200)
	// The broker's clock counts here: of the guard's six seconds, two are over when B comes.
	d := next.Driver("t199/1", "t199")
	d.LookedUp(false, next.BrokerNow())
	require.Equal(t, ledger.ActionWait, d.Action())
	began = time.Now()
	require.NoError(t, next.WaitGuard(t.Context(), d))
	require.Less(t, time.Since(began), 5*time.Second)
	require.Greater(t, time.Since(began), 2*time.Second)
	d.LookedUp(false, next.BrokerNow())
	require.Equal(t, ledger.ActionClaim, d.Action())
	require.NoError(t, next.ClaimFor(t.Context(), d, rec("t199", 1, `{}`)))
	require.True(t, next.MaySubmit(d))
	require.NoError(t, next.EndFor(t.Context(), d, final(rec("t199", 1, `{"a":"<b>"}`))))
	payload, _ := d.Ending()
	want := `{"a":"<b>"}` // to the byte: it is published again by others
	require.Equal(t, want, string(payload))
	require.NoError(t, next.Checkpoint(t.Context()))
	found, ok, err := next.Deep(t.Context(), "t199", time.Now().Add(-time.Minute))
	require.NoError(t, err)
	require.True(t, ok)
	require.NotNil(t, found.Final)
	third := open("C")
	require.Equal(t, int64(3), third.Epoch())
	require.Len(t, third.Open(), 199)
}

func realConsumer(t *testing.T, cfg stream.Config, deps stream.Deps) {
	cl, err := stream.NewClient(cfg, deps, "outside", kgo.TransactionalID("outside"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer cl.Close()
	for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
		require.NoError(t, cl.BeginTransaction())
		require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: cfg.Topic(event.TopicDecisions), Value: fmt.Append(nil, i)}).FirstErr())
		require.NoError(t, cl.EndTransaction(t.Context(), end))
	}
	var s seen
	run := func() (stop func() error) {
		c, err := stream.NewConsumer(cfg, deps, stream.DefaultConsumerConfig("real", event.TopicDecisions),
			func(_ context.Context, p *stream.Partition) (stream.Processor, error) {
				return processor{p, func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
					s.add(recs...)
					p.Done(recs...)
					return nil
				}}, nil
			})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		return func() error { cancel(); return <-done }
	}
	lag := func() int64 {
		lags, err := stream.Lags(t.Context(), cfg, cl, "real", event.TopicDecisions)
		require.NoError(t, err)
		n, unknown := stream.TotalLag(lags)
		require.Zero(t, unknown)
		return n
	}
	require.Positive(t, lag())
	stop := run()
	require.Eventually(t, func() bool { return lag() == 0 }, 30*time.Second, 100*time.Millisecond, "markers are no lag")
	require.Equal(t, []string{"0", "2"}, s.take())
	require.NoError(t, stop())

	// gone before it was read
	require.NoError(t, cl.BeginTransaction())
	for i := range 10 {
		require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: cfg.Topic(event.TopicDecisions), Value: fmt.Append(nil, i)}).FirstErr())
	}
	require.NoError(t, cl.EndTransaction(t.Context(), kgo.TryCommit))
	del := kadm.Offsets{}
	del.Add(kadm.Offset{Topic: cfg.Topic(event.TopicDecisions), Partition: 0, At: 12})
	_, err = kadm.NewClient(cl).DeleteRecords(t.Context(), del)
	require.NoError(t, err)
	stop = run()
	time.Sleep(5 * time.Second)
	var loss *stream.LossError
	require.ErrorAs(t, stop(), &loss)
	require.Equal(t, stream.LossError{Topic: event.TopicDecisions, Partition: 0, From: 8, To: 12}, *loss)
}

// The leader of a ledger partition is killed while claims are written. Every claim that was acknowledged stands, none is there twice in
// a way that counts, and the owner stays the owner.
func TestLedgerOverALeaderKill(t *testing.T) {
	cluster := kafka.Start(t, kafka.Options{Brokers: 3})
	cfg := stream.DefaultConfig()
	cfg.Brokers = cluster.Addrs()
	deps := stream.Deps{Log: slog.New(slog.DiscardHandler)}
	specs, err := topicadmin.Specs()
	require.NoError(t, err)
	_, err = topicadmin.Apply(t.Context(), cfg, deps, specs, topicadmin.Options{Replicas: 3, MinInSync: 2})
	require.NoError(t, err)
	l, err := stream.OpenLedger(t.Context(), cfg, deps, stream.DefaultLedgerConfig(0, "A"))
	require.NoError(t, err)
	defer l.Close(context.Background())

	admin, err := kadm.NewOptClient(kgo.SeedBrokers(cluster.Addrs()...))
	require.NoError(t, err)
	defer admin.Close()
	topics, err := admin.ListTopics(t.Context(), event.TopicAttemptState)
	require.NoError(t, err)
	leader := topics[event.TopicAttemptState].Partitions[0].Leader

	accepted := make(chan string, 400)
	done := make(chan struct{})
	var longest time.Duration
	go func() {
		defer close(done)
		for i := range 400 {
			began := time.Now()
			e, err := l.Claim(t.Context(), rec(fmt.Sprint("t", i), 1, `{}`))
			longest = max(longest, time.Since(began))
			if err == nil && e.Verdict.Accepted {
				accepted <- ledger.AttemptKey(fmt.Sprint("t", i), 1)
			}
			time.Sleep(5 * time.Millisecond)
		}
		close(accepted)
	}()
	time.Sleep(300 * time.Millisecond)
	cluster.Kill(cluster.Index(leader))
	<-done
	t.Logf("the longest claim took %s", longest)
	require.NoError(t, l.Err())
	next, err := stream.OpenLedger(t.Context(), cfg, deps, stream.DefaultLedgerConfig(0, "B"))
	require.NoError(t, err)
	defer next.Close(context.Background())
	n := 0
	for key := range accepted {
		a, ok := next.Attempt(key)
		require.True(t, ok && a.Claim != nil && a.Claim.Epoch == 1, key)
		n++
	}
	require.Equal(t, 400, n, "a leader that moves is waited for")
}
