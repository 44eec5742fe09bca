package stream_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
)

// K10: the consumer was away for longer than retention keeps records.
func TestAwayForLongerThanRetention(t *testing.T) {
	for _, policy := range []stream.LossPolicy{stream.LossStop, stream.LossResume} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := streamtest.Virtual(t)
				b.Topic(t, "t", 1, nil)
				produce(t, b, "t", 0, 0, 3)
				var s seen
				all := func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
					s.add(recs...)
					p.Done(recs...)
					return nil
				}
				set := func(cc *stream.ConsumerConfig) { cc.OnLoss = policy }
				m := join(t, b, set, all)
				settle(5 * time.Second)
				m.leave(t)
				require.Equal(t, values(0, 3), s.take())
				produce(t, b, "t", 0, 3, 12)
				require.NoError(t, b.DeleteRecords("t", 0, 10))

				m = join(t, b, set, all)
				settle(10 * time.Second)
				require.Equal(t, int64(7), m.c.Lost())
				if policy == stream.LossStop {
					err := <-m.err
					var loss *stream.LossError
					require.ErrorAs(t, err, &loss)
					require.Equal(t, stream.LossError{Topic: "t", Partition: 0, From: 3, To: 10}, *loss)
					require.Equal(t, int64(3), b.Offset(t, "g", "t", 0), "nothing is committed over the gap")
					require.Empty(t, s.take())
					return
				}
				require.Equal(t, values(10, 5), s.take())
				require.Equal(t, int64(15), b.Offset(t, "g", "t", 0))
				m.leave(t)
			})
		})
	}
}

// What compaction has taken away is no loss: it stops nobody, and health stays green.
func TestCompactionIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, event.TopicSignals, 1, map[string]string{"cleanup.policy": "compact"})
		produce(t, b, event.TopicSignals, 0, 0, 3)
		var s seen
		all := func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			s.add(recs...)
			p.Done(recs...)
			return nil
		}
		set := func(cc *stream.ConsumerConfig) { cc.OnLoss, cc.Topics = stream.LossStop, []string{event.TopicSignals} }
		m := join(t, b, set, all)
		settle(5 * time.Second)
		m.leave(t)
		require.Equal(t, values(0, 3), s.take())
		produce(t, b, event.TopicSignals, 0, 3, 12)
		require.NoError(t, b.DeleteRecords(b.Config.Topic(event.TopicSignals), 0, 10))

		m = join(t, b, set, all)
		settle(10 * time.Second)
		require.Zero(t, m.c.Lost())
		require.Equal(t, values(10, 5), s.take())
		require.Equal(t, int64(15), b.Offset(t, "g", event.TopicSignals, 0))
		m.leave(t)
	})
}

// Retention overtakes a consumer that is held up while it runs.
func TestOutrunByRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		produce(t, b, "t", 0, 0, 1)
		var s seen
		hold := make(chan struct{})
		m := join(t, b, func(cc *stream.ConsumerConfig) { cc.OnLoss, cc.MaxSpan = stream.LossResume, 1 },
			func(ctx context.Context, p *stream.Partition, recs []*kgo.Record) error {
				s.add(recs...)
				select {
				case <-hold:
				case <-ctx.Done():
				}
				p.Done(recs...)
				return nil
			})
		settle(5 * time.Second)
		produce(t, b, "t", 0, 1, 20)
		settle(time.Second)
		require.NoError(t, b.DeleteRecords("t", 0, 15))
		close(hold)
		settle(30 * time.Second)
		require.Equal(t, append(values(0, 1), values(15, 6)...), s.take())
		require.Equal(t, int64(14), m.c.Lost())
		require.Equal(t, int64(21), b.Offset(t, "g", "t", 0))
		m.leave(t)
	})
}

// The log lost its end, and the broker can't say where it parted from what was read: what is there now is read from its end on.
func TestLogThatLostItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		produce(t, b, "t", 0, 0, 10)
		var s seen
		m := join(t, b, func(cc *stream.ConsumerConfig) { cc.OnLoss = stream.LossResume },
			func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
				s.add(recs...)
				p.Done(recs...)
				return nil
			})
		settle(5 * time.Second)
		require.Equal(t, values(0, 10), s.take())
		require.Equal(t, int64(10), b.Offset(t, "g", "t", 0))

		// The broker can't be made to lose records; it says that it has 6, and then has others in the place of those above.
		b.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
			b.KeepControl()
			resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
			for _, rt := range req.(*kmsg.ListOffsetsRequest).Topics {
				topic := kmsg.NewListOffsetsResponseTopic()
				topic.Topic = rt.Topic
				for _, rp := range rt.Partitions {
					p := kmsg.NewListOffsetsResponseTopicPartition()
					p.Partition, p.Offset = rp.Partition, 0
					if rp.Timestamp == -1 {
						p.Offset = 6
					}
					topic.Partitions = append(topic.Partitions, p)
				}
				resp.Topics = append(resp.Topics, topic)
			}
			return resp, nil, true
		})
		b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.OffsetOutOfRange, Count: 1})
		settle(10 * time.Second)
		require.Equal(t, values(6, 4), s.take())
		require.Equal(t, int64(4), m.c.Lost())
		produce(t, b, "t", 0, 10, 1)
		settle(5 * time.Second)
		require.Equal(t, values(10, 1), s.take())
		require.Equal(t, int64(11), b.Offset(t, "g", "t", 0))
		m.leave(t)
	})
}

// K12: an outside producer uses transactions. Its markers do not stay behind as lag, and what it aborted is not read.
func TestTransactionMarkersAreNoLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		cl := b.Client(t, kgo.TransactionalID("outside"))
		for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
			require.NoError(t, cl.BeginTransaction())
			require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: fmt.Append(nil, i)}).FirstErr())
			require.NoError(t, cl.EndTransaction(t.Context(), end))
		}
		cl.Close()
		var s seen
		m := join(t, b, nil, func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			s.add(recs...)
			p.Done(recs...)
			return nil
		})
		settle(10 * time.Second)
		require.Equal(t, []string{"0", "2"}, s.take())
		require.Equal(t, b.PartitionInfo("t", 0).HighWatermark, b.Offset(t, "g", "t", 0))
		m.leave(t)
	})
}
