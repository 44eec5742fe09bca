package stream_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
)

// The span is bounded: records that don't finish pause their partition, and nothing is lost or read twice when it goes on.
func TestPausesAtTheSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		produce(t, b, "t", 0, 0, 100)
		var s seen
		slow := make(chan struct{})
		m := join(t, b, func(cc *stream.ConsumerConfig) { cc.MaxSpan, cc.MaxPoll = 10, 4 },
			func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
				s.add(recs...)
				go func() {
					<-slow
					p.Done(recs...)
				}()
				return nil
			})
		settle(time.Minute)
		require.LessOrEqual(t, s.len(), 10+4)
		close(slow)
		settle(time.Minute)
		require.Equal(t, values(0, 100), s.take())
		require.Equal(t, int64(100), b.Offset(t, "g", "t", 0))
		m.leave(t)
	})
}

// One record that does not finish holds up the commit, and nobody behind it. When the process dies it comes again, and so do they.
func TestASlowOneHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		produce(t, b, "t", 0, 0, 101)
		var s seen
		m := join(t, b, func(cc *stream.ConsumerConfig) { cc.MaxSpan, cc.MaxPoll = 10, 4 },
			func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
				s.add(recs...)
				if recs[0].Offset == 0 {
					recs = recs[1:]
				}
				p.Done(recs...)
				return nil
			})
		settle(time.Minute)
		require.Equal(t, values(0, 101), s.take(), "each once")
		m.leave(t)
		require.LessOrEqual(t, b.Offset(t, "g", "t", 0), int64(0))

		next := join(t, b, nil, func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			s.add(recs...)
			p.Done(recs...)
			return nil
		})
		settle(time.Minute)
		require.Equal(t, values(0, 101), s.take())
		require.Equal(t, int64(101), b.Offset(t, "g", "t", 0))
		next.leave(t)
	})
}

// Memory is bounded by bytes as well: a sink that is away holds up few large records, not ten thousand of them.
func TestPausesAtTheBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		var s seen
		away := make(chan struct{})
		m := join(t, b, func(cc *stream.ConsumerConfig) { cc.MaxHeldBytes, cc.MaxPoll = 100_000, 2 },
			func(ctx context.Context, p *stream.Partition, recs []*kgo.Record) error {
				s.add(recs...)
				select {
				case <-away:
				case <-ctx.Done():
				}
				p.Done(recs...)
				return nil
			})
		cl := b.Client(t)
		for range 50 {
			require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: bytes.Repeat([]byte("x"), 20_000)}).FirstErr())
		}
		cl.Close()
		settle(time.Minute)
		require.LessOrEqual(t, s.len(), 2)
		close(away)
		settle(time.Minute)
		require.Len(t, s.take(), 50)
		require.Equal(t, int64(50), b.Offset(t, "g", "t", 0))
		m.leave(t)
	})
}
