package stream_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
)

func TestTailReadsToTheEndAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "signals", 3, map[string]string{"cleanup.policy": "compact"})
		cl := b.Client(t)
		put := func(p int32, key string, value []byte) {
			require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "signals", Partition: p, Key: []byte(key), Value: value}).FirstErr())
		}
		for i := range 20 {
			put(0, "a", fmt.Append(nil, i))
		}
		put(1, "b", []byte("x"))
		b.Compact()
		tx := b.Client(t, kgo.TransactionalID("outside")) // the last thing in the log is a marker
		require.NoError(t, tx.BeginTransaction())
		require.NoError(t, tx.ProduceSync(t.Context(), &kgo.Record{Topic: "signals", Partition: 1, Key: []byte("c"), Value: []byte("gone")}).FirstErr())
		require.NoError(t, tx.EndTransaction(t.Context(), kgo.TryAbort))
		tx.Close()

		state := map[string]string{}
		tail := stream.NewTail(b.Config, b.Deps, stream.TailConfig{Topics: []string{"signals"}, Name: "test"})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- tail.Run(ctx, func(recs []*kgo.Record) {
				for _, r := range recs {
					if state[string(r.Key)] = string(r.Value); r.Value == nil {
						delete(state, string(r.Key))
					}
				}
			})
		}()
		<-tail.Ready()
		require.Equal(t, map[string]string{"a": "19", "b": "x"}, state)
		put(2, "d", []byte("y"))
		put(1, "b", nil)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, map[string]string{"a": "19", "d": "y"}, state)
		cancel()
		require.NoError(t, <-done)
		cl.Close()
	})
}

func TestTailFromTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 2, nil)
		produce(t, b, "t", 0, 0, 3)
		var s seen
		tail := stream.NewTail(b.Config, b.Deps, stream.TailConfig{Topics: []string{"t"}, Name: "test", FromEnd: true})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- tail.Run(ctx, func(recs []*kgo.Record) { s.add(recs...) }) }()
		<-tail.Ready()
		produce(t, b, "t", 1, 3, 2)
		time.Sleep(5 * time.Second)
		require.Equal(t, values(3, 2), s.take())
		cancel()
		require.NoError(t, <-done)
	})
}

func TestTailNeedsItsTopic(t *testing.T) {
	b := streamtest.Start(t)
	err := stream.NewTail(b.Config, b.Deps, stream.TailConfig{Topics: []string{"missing"}, Name: "test"}).Run(t.Context(), func([]*kgo.Record) {})
	require.ErrorContains(t, err, "missing")
}

// K11: a time after the last record means that there is nothing to replay; the newest record is never skipped.
func TestPlan(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "t", 3, nil)
	cl := b.Client(t)
	base := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i := range 10 {
		require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{
			Topic: "t", Partition: int32(i % 2), Value: fmt.Append(nil, i),
			Timestamp: base.Add(time.Duration(i) * time.Minute),
		}).FirstErr())
	}
	plan := func(from, to time.Time) []stream.Range {
		r, err := stream.Plan(t.Context(), b.Config, b.Deps, []string{"t"}, from, to)
		require.NoError(t, err)
		return r
	}
	read := func(ranges []stream.Range) (n int) {
		require.NoError(t, stream.ReadRanges(t.Context(), b.Config, b.Deps, ranges, func(*kgo.Record) error { n++; return nil }))
		return n
	}
	require.Empty(t, plan(time.Now().Add(time.Hour), time.Time{}))
	require.Zero(t, read(nil))
	require.Equal(t, []stream.Range{{Topic: "t", Partition: 1, From: 4, To: 5}}, plan(base.Add(9*time.Minute), time.Time{}))
	require.Equal(t, []stream.Range{{Topic: "t", Partition: 0, From: 2, To: 4}, {Topic: "t", Partition: 1, From: 1, To: 3}}, plan(base.Add(3*time.Minute), base.Add(7*time.Minute)))
	require.Equal(t, 10, read(plan(time.Time{}, time.Time{})))
	require.Equal(t, 4, read(plan(base.Add(3*time.Minute), base.Add(7*time.Minute))))

	before := plan(time.Time{}, time.Time{})
	produce(t, b, "t", 0, 10, 5)
	require.Equal(t, 10, read(before), "the plan is fixed")
	require.Nil(t, b.GroupInfo("g"), "nothing is committed anywhere")

	require.NoError(t, b.DeleteRecords("t", 0, 3))
	err := stream.ReadRanges(t.Context(), b.Config, b.Deps, before, func(*kgo.Record) error { return nil })
	require.Error(t, err, "a gap is not read over in silence")
}

// K13: without a commit the lag counts what is there, not what once was; what is not known is not a number.
func TestLag(t *testing.T) {
	b := streamtest.Start(t)
	b.Config.Prefix = "dev."
	b.Topic(t, "t", 2, nil)
	produce(t, b, "t", 0, 0, 10)
	produce(t, b, "t", 1, 0, 4)
	cl := b.Client(t)
	lags, err := stream.Lags(t.Context(), b.Config, cl, "g", "t")
	require.NoError(t, err)
	total, unknown := stream.TotalLag(lags)
	require.Equal(t, int64(14), total)
	require.Zero(t, unknown)
	require.False(t, lags[0].HasCommit)

	require.NoError(t, b.DeleteRecords("dev.t", 0, 10))
	lags, err = stream.Lags(t.Context(), b.Config, cl, "g", "t")
	require.NoError(t, err)
	require.Equal(t, int64(0), lags[0].Records)
	require.Equal(t, int64(4), lags[1].Records)

	c := joinGroup(t, b, "g")
	require.Eventually(t, func() bool {
		lags, err := stream.Lags(t.Context(), b.Config, cl, "g", "t")
		require.NoError(t, err)
		total, _ := stream.TotalLag(lags)
		return total == 0 && lags[1].HasCommit && lags[1].Committed == 4
	}, 10*time.Second, 10*time.Millisecond)
	c.leave(t)

	lags, err = stream.Lags(t.Context(), b.Config, cl, "g", "t", "missing")
	require.NoError(t, err)
	_, unknown = stream.TotalLag(lags)
	require.Equal(t, 1, unknown)
}

func joinGroup(t *testing.T, b *streamtest.Broker, group string) *member {
	return join(t, b, func(cc *stream.ConsumerConfig) { cc.Group = group },
		func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error { p.Done(recs...); return nil })
}
