package stream

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kotel"
	"github.com/twmb/franz-go/plugin/kprom"
	"github.com/twmb/franz-go/plugin/kslog"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Deps are what a client reports to. Every field may be left out.
type Deps struct {
	Log        *slog.Logger
	Registry   prometheus.Registerer
	Tracer     trace.TracerProvider
	Propagator propagation.TextMapPropagator
	// Dialer replaces the network, in tests.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
	// MaxBytes says how large a record of a topic (without prefix) may be on its way; nil or 0 means 1 MB, the broker's own default.
	MaxBytes func(topic string) int
}

func (d Deps) log() *slog.Logger {
	if d.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return d.Log
}

// DefaultMaxBytes is what a broker takes if its topic says nothing (1 MiB), less the bytes around a batch.
const DefaultMaxBytes = 1_000_012

// batchOverhead bounds what a batch of one record adds to the record.
const batchOverhead = 512

func (d Deps) maxBytes(topic string) int {
	if d.MaxBytes != nil {
		if n := d.MaxBytes(topic); n > 0 {
			return n
		}
	}
	return DefaultMaxBytes
}

func (c Config) codec() (kgo.CompressionCodec, error) {
	switch c.Compression {
	case "", "none":
		return kgo.NoCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	default:
		return kgo.CompressionCodec{}, fmt.Errorf("compression %q is not known", c.Compression)
	}
}

// NewClient builds a kgo client the one way every client here is built: acks from all replicas, idempotent, no linger, read_committed,
// no topic made by accident, logs, metrics and traces wired. role tells the clients of one process apart.
func NewClient(c Config, d Deps, role string, more ...kgo.Opt) (*kgo.Client, error) {
	return newClient(c, d, newDialer(c, d), role, more...)
}

func newClient(c Config, d Deps, dial *dialer, role string, more ...kgo.Opt) (*kgo.Client, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("kafka settings: %w", err)
	}
	codec, _ := c.codec()
	id := c.ClientID + "-" + role
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(id),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(codec),
		kgo.ProducerBatchMaxBytesFn(func(topic string) int32 { return int32(d.maxBytes(c.Name(topic))) }),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.DisableClientMetrics(),
		kgo.Dialer(dial.dial),
	}
	if d.Log != nil {
		opts = append(opts, kgo.WithLogger(kslog.New(d.Chatter())))
	}
	if c.TLS.Enabled {
		conf, err := c.TLS.load()
		if err != nil {
			return nil, fmt.Errorf("kafka settings: %w", err)
		}
		dial.tls = conf
	}
	opts = append(opts, c.securityOpts()...)
	var hooks []kgo.Hook
	if d.Registry != nil {
		hooks = append(hooks, kprom.NewMetrics("pointsman_kafka", kprom.Registerer(&polite{Registerer: d.Registry}), kprom.WithClientLabel()))
	}
	if d.Tracer != nil {
		hooks = append(hooks, kotel.NewKotel(kotel.WithTracer(newTracer(d, id))).Hooks()...)
	}
	if len(hooks) > 0 {
		opts = append(opts, kgo.WithHooks(hooks...))
	}
	cl, err := kgo.NewClient(append(opts, more...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client %s: %w", id, err)
	}
	dial.serve(cl)
	return cl, nil
}

func newTracer(d Deps, id string) *kotel.Tracer {
	opts := []kotel.TracerOpt{kotel.ClientID(id)}
	if d.Tracer != nil {
		opts = append(opts, kotel.TracerProvider(d.Tracer))
	}
	if d.Propagator != nil {
		opts = append(opts, kotel.TracerPropagator(d.Propagator))
	}
	return kotel.NewTracer(opts...)
}

// Span starts the span of processing one record, with the record's own trace as its parent. The context it returns is what the
// processing runs under, so that what it produces carries the trace on.
func Span(d Deps, rec *kgo.Record) (context.Context, trace.Span) {
	if d.Tracer == nil {
		ctx := rec.Context
		if ctx == nil {
			ctx = context.Background()
		}
		return ctx, trace.SpanFromContext(ctx)
	}
	return newTracer(d, "").WithProcessSpan(rec)
}
