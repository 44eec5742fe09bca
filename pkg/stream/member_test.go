package stream_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
)

// member is one process of a group whose processor is a function.
type member struct {
	c    *stream.Consumer
	stop context.CancelFunc
	err  chan error
}

type processFunc func(ctx context.Context, p *stream.Partition, recs []*kgo.Record) error

type processor struct {
	p *stream.Partition
	f processFunc
}

func (p processor) Process(ctx context.Context, recs []*kgo.Record) error { return p.f(ctx, p.p, recs) }

func (p processor) Close() {}

func join(t *testing.T, b *streamtest.Broker, change func(*stream.ConsumerConfig), f processFunc) *member {
	cc := stream.DefaultConsumerConfig("g", "t")
	cc.CommitEvery = 50 * time.Millisecond
	if change != nil {
		change(&cc)
	}
	c, err := stream.NewConsumer(b.Config, b.Deps, cc, func(_ context.Context, p *stream.Partition) (stream.Processor, error) {
		return processor{p, f}, nil
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	m := &member{c: c, stop: cancel, err: make(chan error, 1)}
	go func() { m.err <- c.Run(ctx) }()
	t.Cleanup(cancel)
	return m
}

// leave stops a member in an orderly way.
func (m *member) leave(t *testing.T) {
	m.stop()
	require.NoError(t, <-m.err)
}

func produce(t *testing.T, b *streamtest.Broker, topic string, partition int32, from, n int) {
	cl := b.Client(t)
	defer cl.Close()
	for i := from; i < from+n; i++ {
		rec := &kgo.Record{Topic: b.Config.Topic(topic), Partition: partition, Value: fmt.Append(nil, i)}
		require.NoError(t, cl.ProduceSync(t.Context(), rec).FirstErr())
	}
}

// settle lets the bubble's time pass until everything that happens in it has happened.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// seen collects values, from any goroutine.
type seen struct {
	mu   sync.Mutex
	list []string
}

func (s *seen) add(recs ...*kgo.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range recs {
		s.list = append(s.list, string(r.Value))
	}
}

func (s *seen) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.list
	s.list = nil
	return l
}

func (s *seen) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.list)
}

func values(from, n int) (out []string) {
	for i := from; i < from+n; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}
