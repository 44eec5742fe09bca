package testkit

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/history/migrate"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/services/pointsman/parts"
	"github.com/pointsman/pointsman/services/pointsman/stack"
)

// Main is the TestMain of a package that uses the kit: an embedded engine is this binary, started as a child.
func Main(m *testing.M) {
	chdb.MaybeRunChild()
	code := m.Run()
	removeBinaries()
	os.Exit(code)
}

// Options say which world a test wants.
type Options struct {
	// Brokers are those of a Kafka that runs already; empty takes the embedded broker.
	Brokers []string
	// Prefix is put before topics and groups, so that several worlds fit on one Kafka.
	Prefix string
	// Scale of the tables; 0 is 0.01.
	Scale float64
	// InteractiveMemory is the hard limit of a query on the interactive pool; 0 is 12 MB, which Wide exceeds at scale 0.01.
	InteractiveMemory int64
	Log               *slog.Logger
}

// World is everything but the services.
type World struct {
	T     testing.TB
	Parts *parts.Parts
	// Interactive and Batch stand in front of the pools; the services know no other address.
	Interactive, Batch *Proxy
	// Stack says where everything is, for the services.
	Stack stack.Config
	Kafka stream.Config
	Log   *Log
	DB    *history.DB

	specs            []topicadmin.Spec
	producer, manual *kgo.Client
}

// Wide is a query that the interactive pool's memory does not hold, and that batch spills to disk.
const Wide = "SELECT count() AS n FROM (SELECT l_orderkey, l_partkey, l_comment, sum(l_quantity) FROM tpch.lineitem GROUP BY ALL)"

// New starts a world. The test's end stops it.
func New(t testing.TB, opts Options) *World {
	t.Helper()
	cfg := parts.Free(t.TempDir())
	cfg.LibPath = chdbtest.Library(t)
	cfg.Scale, cfg.InteractiveMemory, cfg.BatchStartDelay = 0.01, 12_000_000, 200*time.Millisecond
	if opts.Scale > 0 {
		cfg.Scale = opts.Scale
	}
	if opts.InteractiveMemory > 0 {
		cfg.InteractiveMemory = opts.InteractiveMemory
	}
	if opts.Log != nil {
		cfg.Log = opts.Log
	}
	// The test's own context ends before its clean-ups, and the parts must outlive the services.
	p, err := parts.Start(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop(context.Background())) })
	w := &World{
		T: t, Parts: p,
		Interactive: StartProxy(t, parts.Interactive, p.Interactive.Addr()), Batch: StartProxy(t, parts.BatchPool, p.Batch.Addr()),
		Stack: stack.Of(p, cfg).FreePorts(),
	}
	w.Stack.InteractiveAddr, w.Stack.BatchAddr = w.Interactive.Addr(), w.Batch.Addr()
	if len(opts.Brokers) > 0 {
		w.Stack.Brokers, w.Stack.Prefix = opts.Brokers, opts.Prefix
	}
	w.Kafka = w.Stack.Kafka()
	w.specs, err = topicadmin.Specs()
	require.NoError(t, err)
	_, err = topicadmin.Apply(t.Context(), w.Kafka, stream.Deps{}, w.specs, topicadmin.Options{})
	require.NoError(t, err)
	_, err = migrate.Up(t.Context(), w.Stack.History())
	require.NoError(t, err)
	w.DB, err = history.Open(w.Stack.History())
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.DB.Close() })
	w.Log = follow(t, w.Kafka)
	w.producer, w.manual = w.client(t), w.client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	return w
}

// Leader is the node id of the broker that leads a partition.
func (w *World) Leader(t testing.TB, topic string, partition int32) int32 {
	t.Helper()
	client, err := stream.NewClient(w.Kafka, stream.Deps{}, "test-leader")
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	topics, err := kadm.NewClient(client).ListTopics(ctx, w.Kafka.Topic(topic))
	require.NoError(t, err)
	return topics[w.Kafka.Topic(topic)].Partitions[partition].Leader
}

// client is a producer as an outsider would make one: no CloudEvents, no envelope of ours.
func (w *World) client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(w.Stack.Brokers...), kgo.ClientID("test-producer"), kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytes(8<<20), kgo.DefaultProduceTopic(w.Kafka.Topic(event.TopicRequests)))...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// Produce writes records to the topics and returns them with their coordinates.
func (w *World) Produce(recs ...*kgo.Record) []*kgo.Record {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(w.T, w.producer.ProduceSync(ctx, recs...).FirstErr())
	return recs
}

// ProduceAsync writes a record without waiting; done is told how that went.
func (w *World) ProduceAsync(rec *kgo.Record, done func(error)) {
	w.producer.Produce(context.Background(), rec, func(_ *kgo.Record, err error) { done(err) })
}

// ProduceTo writes records to the partitions that they name.
func (w *World) ProduceTo(recs ...*kgo.Record) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(w.T, w.manual.ProduceSync(ctx, recs...).FirstErr())
}

// Try writes a record that may be refused.
func (w *World) Try(rec *kgo.Record) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return w.producer.ProduceSync(ctx, rec).FirstErr()
}

// Partitions counts through the partitions of a topic.
func (w *World) Partitions(topic string) iter.Seq[int32] {
	for _, s := range w.specs {
		if s.Name == topic {
			return func(yield func(int32) bool) {
				for p := range s.Partitions {
					if !yield(p) {
						return
					}
				}
			}
		}
	}
	require.FailNow(w.T, "no topic "+topic)
	return nil
}

// Drained waits until a group has nothing left to read.
func (w *World) Drained(t testing.TB, within time.Duration, group string, topics ...string) {
	t.Helper()
	client, err := stream.NewClient(w.Kafka, stream.Deps{}, "test-lag")
	require.NoError(t, err)
	defer client.Close()
	var left int64
	var unknown int
	for late := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		lags, err := stream.Lags(context.Background(), w.Kafka, client, group, topics...)
		if err == nil {
			if left, unknown = stream.TotalLag(lags); left == 0 && unknown == 0 {
				return
			}
		}
		if time.Now().After(late) {
			require.FailNow(t, fmt.Sprintf("group %s still has %d records to read, %d partitions unknown (%v)", group, left, unknown, err))
		}
	}
}

// Sent is every submission that has reached an engine, by attempt id.
func (w *World) Sent() map[string]int {
	sent := w.Interactive.Submissions()
	for id, n := range w.Batch.Submissions() {
		sent[id] += n
	}
	return sent
}

// Engine asks a pool's engine itself, past the proxy.
type Engine struct{ opts *clickhouse.Options }

// Engine is the engine of a pool, by the cluster's name.
func (w *World) Engine(cluster string) Engine {
	addr := w.Parts.Interactive.Addr()
	if cluster == parts.BatchPool {
		addr = w.Parts.Batch.Addr()
	}
	return Engine{&clickhouse.Options{Addr: []string{addr}, Protocol: clickhouse.HTTP}}
}

// Running is how many queries run there under an id.
func (e Engine) Running(t testing.TB, id string) int {
	t.Helper()
	conn, err := clickhouse.Open(e.opts)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	var n uint64
	require.NoError(t, conn.QueryRow(context.Background(), "SELECT count() FROM system.processes WHERE query_id = ?", id).Scan(&n))
	return int(n)
}
