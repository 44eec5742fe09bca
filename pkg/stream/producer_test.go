package stream_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
)

func producer(t *testing.T, b *streamtest.Broker) *stream.Producer {
	p, err := stream.NewProducer(b.Config, b.Deps, "test")
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func incompressible(n int) []byte {
	raw := make([]byte, n/2)
	_, _ = rand.Read(raw)
	return []byte(`"` + hex.EncodeToString(raw) + `"`)
}

func msg(topic, key string, data []byte) stream.Message {
	return stream.Message{Topic: topic, Key: key, Type: event.QueryRequested, ID: key, Data: data}
}

// K9: a record over its topic's limit is refused before anything is sent, and its neighbours are written.
func TestOversize(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "requests", 1, map[string]string{"max.message.bytes": "100000"})
	b.Topic(t, "deadletter", 1, map[string]string{"max.message.bytes": "50000"})
	b.Deps.MaxBytes = func(topic string) int { return map[string]int{"requests": 100_000, "deadletter": 50_000}[topic] }
	p := producer(t, b)
	err := p.Send(t.Context(), msg("requests", "1", []byte(`{}`)), msg("requests", "2", incompressible(120_000)), msg("requests", "3", []byte(`{}`)))
	require.ErrorIs(t, err, stream.ErrTooLarge)
	recs := b.Records(t, "requests")
	require.Len(t, recs, 2)
	require.NoError(t, p.Send(t.Context(), msg("requests", "4", incompressible(98_000))), "up to the limit it fits")

	for range 20 { // a burst that would be one batch of more than the limit
		p.Produce(t.Context(), encode(t, b, msg("requests", "5", incompressible(30_000))), func(_ *kgo.Record, err error) { require.NoError(t, err) })
	}
	require.NoError(t, p.Flush(t.Context()))

	in := &kgo.Record{Topic: "requests", Value: incompressible(200_000)}
	require.NoError(t, p.DeadLetter(t.Context(), stream.DeadLetter{Record: in, Class: stream.FaultNotJSON}))
	require.Less(t, len(b.Records(t, "deadletter")[0].Value), 50_000)
}

// The broker knows a lower limit than we do: the error is the same one.
func TestOversizeSaysTheBroker(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "requests", 1, map[string]string{"max.message.bytes": "1000"})
	require.ErrorIs(t, producer(t, b).Send(t.Context(), msg("requests", "1", incompressible(5000))), stream.ErrTooLarge)
}

// The broker refuses a batch as a whole: the small records in it must not share the large one's fate (K9).
func TestOversizeSparesItsNeighbours(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "requests", 1, map[string]string{"max.message.bytes": "3000"})
	p := producer(t, b)
	msgs := []stream.Message{msg("requests", "large", incompressible(5000))}
	for i := range 20 {
		msgs = append(msgs, msg("requests", strconv.Itoa(i), []byte(`{}`)))
	}
	err := p.Send(t.Context(), msgs...)
	require.ErrorIs(t, err, stream.ErrTooLarge)
	require.Len(t, b.Records(t, "requests"), 20)
}

func encode(t *testing.T, b *streamtest.Broker, m stream.Message) *kgo.Record {
	rec, err := b.Config.Encode(m)
	require.NoError(t, err)
	return rec
}

func TestSendGivesUpWithItsContext(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "requests", 1, nil)
	fault := b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: -1})
	p := producer(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.Send(ctx, msg("requests", "1", []byte(`{}`))), stream.ErrUnconfirmed)
	fault.Remove()
	require.NoError(t, p.Send(t.Context(), msg("requests", "2", []byte(`{}`))), "the one that was given up takes no other along")
	require.Len(t, b.Records(t, "requests"), 2)
}

// A broker that is away for a while, and more records that wait for it than the client holds: what is written then comes through, in
// its order, when the broker is back. One who gives up meanwhile gets away.
func TestWriteSurvivesAFullBuffer(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "requests", 1, nil)
	fault := b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: -1})
	p := producer(t, b)
	var taken, busy atomic.Int64
	for i := range 50_500 {
		p.Produce(t.Context(), encode(t, b, msg("requests", strconv.Itoa(i), []byte(`{}`))), func(_ *kgo.Record, err error) {
			if errors.Is(err, stream.ErrBusy) {
				busy.Add(1)
			} else if err == nil {
				taken.Add(1)
			}
		})
	}
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.Send(impatient, msg("requests", "given up", []byte(`{}`))), stream.ErrUnconfirmed)
	require.Positive(t, busy.Load(), "the buffer is full")

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- p.Send(ctx, msg("requests", "first", []byte(`{}`)), msg("requests", "second", []byte(`{}`)), msg("requests", "third", []byte(`{}`)))
	}()
	time.Sleep(100 * time.Millisecond)
	fault.Remove()
	require.NoError(t, <-done)
	require.NoError(t, p.Flush(ctx))
	require.Equal(t, int64(50_500), taken.Load()+busy.Load())
	var order []string
	for _, r := range b.Records(t, "requests") {
		switch k := string(r.Key); k {
		case "first", "second", "third":
			order = append(order, k)
		}
	}
	require.Equal(t, []string{"first", "second", "third"}, order)
}

// Answers get lost, not records: idempotence keeps one of each.
func TestRetriedProduceIsThereOnce(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "requests", 1, nil)
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicasAfterAppend, Count: 2})
	require.NoError(t, producer(t, b).Send(t.Context(), msg("requests", "1", []byte(`{}`))))
	require.Len(t, b.Records(t, "requests"), 1)
}

// A producer whose id was fenced is replaced, and the next record gets through.
func TestFencedProducerIsReplaced(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "requests", 1, nil)
	b.Deps.Registry = prometheus.NewRegistry()
	p := producer(t, b)
	require.NoError(t, p.Send(t.Context(), msg("requests", "1", []byte(`{}`))))
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.ProducerFenced, Count: 1})
	_ = p.Send(t.Context(), msg("requests", "2", []byte(`{}`)))
	require.Eventually(t, func() bool { return p.Send(t.Context(), msg("requests", "3", []byte(`{}`))) == nil }, 10*time.Second, 10*time.Millisecond)
}

// However many records fail by it, a fenced producer is replaced once.
func TestFencedProducerIsReplacedOnce(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "requests", 1, nil)
	var log lines
	b.Deps.Log = slog.New(slog.NewTextHandler(&log, nil))
	p := producer(t, b)
	require.NoError(t, p.Send(t.Context(), msg("requests", "1", []byte(`{}`))))
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.ProducerFenced, Count: 1})
	var ms []stream.Message
	for i := range 50 {
		ms = append(ms, msg("requests", strconv.Itoa(i), []byte(`{}`)))
	}
	require.Error(t, p.Send(t.Context(), ms...))
	require.Eventually(t, func() bool { return p.Send(t.Context(), msg("requests", "2", []byte(`{}`))) == nil }, 10*time.Second, 10*time.Millisecond)
	p.Close() // waits for whoever is still at it
	require.Equal(t, 1, log.count("replaced a fenced producer"))
}

// A record that is sent alone waits for a broker that is away. Flush gives up with its context, Close does not wait at all, and whoever
// asked for the record is told.
func TestCloseWhileOneIsSentAlone(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "requests", 1, nil)
	p := producer(t, b)
	// The first answer makes the record one to be sent alone; that is never taken.
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.MessageTooLarge, Count: 1})
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: -1})
	outcome := make(chan error, 2)
	p.Produce(t.Context(), encode(t, b, msg("requests", "1", []byte(`{}`))), func(_ *kgo.Record, err error) { outcome <- err })

	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.Flush(ctx), context.DeadlineExceeded)
	closed := make(chan struct{})
	go func() { defer close(closed); p.Close() }()
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		t.Fatal("Close waits for the broker")
	}
	require.ErrorIs(t, <-outcome, stream.ErrUnconfirmed)
	require.Empty(t, outcome, "told once")
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// The trace of the one who asked runs through headers into what is produced downstream. A malformed one is ignored.
func TestTraceRunsThroughHeaders(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "requests", 1, nil)
	b.Topic(t, "decisions", 1, nil)
	spans := tracetest.NewInMemoryExporter()
	tp := trace.NewTracerProvider(trace.WithSyncer(spans))
	b.Deps.Tracer, b.Deps.Propagator = tp, propagation.TraceContext{}
	p := producer(t, b)
	ctx, root := tp.Tracer("test").Start(t.Context(), "root")
	require.NoError(t, p.Send(ctx, msg("requests", "1", []byte(`{}`))))
	root.End()
	for _, bad := range []string{"", "junk", "00-00000000000000000000000000000000-0000000000000000-00"} {
		m := msg("requests", "1", []byte(`{}`))
		m.Headers = []kgo.RecordHeader{{Key: "traceparent", Value: []byte(bad)}}
		rec := encode(t, b, m)
		require.NoError(t, b.Client(t).ProduceSync(t.Context(), rec).FirstErr())
	}

	ctx, cancel := context.WithCancel(t.Context())
	cc := stream.DefaultConsumerConfig("router", "requests")
	got := make(chan oteltrace.SpanContext, 4)
	c, err := stream.NewConsumer(b.Config, b.Deps, cc, func(_ context.Context, part *stream.Partition) (stream.Processor, error) {
		return processor{part, func(_ context.Context, part *stream.Partition, recs []*kgo.Record) error {
			for _, r := range recs {
				ctx, span := stream.Span(b.Deps, r)
				got <- span.SpanContext()
				if err := p.Send(ctx, msg("decisions", "1", []byte(`{}`))); err != nil {
					return err
				}
				span.End()
				part.Done(r)
			}
			return nil
		}}, nil
	})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	require.Equal(t, root.SpanContext().TraceID(), (<-got).TraceID())
	for range 3 {
		require.NotEqual(t, root.SpanContext().TraceID(), (<-got).TraceID())
	}
	require.Eventually(t, func() bool { return len(b.Records(t, "decisions")) == 4 }, 5*time.Second, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	for _, h := range b.Records(t, "decisions")[0].Headers {
		if h.Key == "traceparent" {
			require.True(t, strings.HasPrefix(string(h.Value), "00-"+root.SpanContext().TraceID().String()))
			return
		}
	}
	t.Fatal("no traceparent in the decision")
}

func TestTwoClientsOfOneNameShareARegistry(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "requests", 1, nil)
	reg := prometheus.NewRegistry()
	b.Deps.Registry = reg
	first, second := producer(t, b), producer(t, b)
	second.Close()
	require.NoError(t, first.Send(t.Context(), msg("requests", "1", []byte(`{}`))))
	families, err := reg.Gather()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	require.True(t, names["pointsman_kafka_connects_total"], "%v", names)
}

func TestBadSettings(t *testing.T) {
	for name, change := range map[string]func(*stream.Config){
		"no brokers":     func(c *stream.Config) { c.Brokers = nil },
		"no port":        func(c *stream.Config) { c.Brokers = []string{"localhost"} },
		"prefix":         func(c *stream.Config) { c.Prefix = "a/b" },
		"compression":    func(c *stream.Config) { c.Compression = "rar" },
		"half a cert":    func(c *stream.Config) { c.TLS = stream.TLS{Enabled: true, CertFile: "x"} },
		"sasl mechanism": func(c *stream.Config) { c.SASL.Mechanism = "GSSAPI" },
		"sasl password":  func(c *stream.Config) { c.SASL = stream.SASL{Mechanism: "PLAIN", User: "u"} },
		"no such ca":     func(c *stream.Config) { c.TLS = stream.TLS{Enabled: true, CAFile: "/nonexistent"} },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := stream.DefaultConfig()
			change(&cfg)
			_, err := stream.NewProducer(cfg, stream.Deps{}, "test")
			require.Error(t, err)
		})
	}
}
