// Package streamtest gives tests a Kafka broker: franz-go's kfake, over loopback or, inside a testing/synctest bubble, over a network
// of its own whose time the bubble controls.
package streamtest

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/embedded/broker"
	"github.com/pointsman/pointsman/pkg/stream"
)

// Broker is a running broker with what is needed to talk to it.
type Broker struct {
	*kfake.Cluster
	Config stream.Config
	Deps   stream.Deps
}

// Start runs a broker on loopback until the test ends.
func Start(t testing.TB, opts ...kfake.Opt) *Broker {
	b := start(t, stream.Deps{}, opts)
	stop, err := broker.WatchSessions(b.Cluster, b.Deps.Log) // kfake keeps members for ever that are killed while they join
	require.NoError(t, err)
	t.Cleanup(stop)
	return b
}

// Virtual runs a broker inside a synctest bubble. It has to be closed inside the bubble as well: call Close when the test is through.
func Virtual(t testing.TB, opts ...kfake.Opt) *Broker {
	var network kfake.VirtualNetwork
	return start(t, stream.Deps{Dialer: network.DialContext}, append([]kfake.Opt{kfake.ListenFn(network.Listen)}, opts...))
}

func start(t testing.TB, deps stream.Deps, opts []kfake.Opt) *Broker {
	writer := newTestWriter(t)
	cluster, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(100 * time.Millisecond),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	cfg := stream.DefaultConfig()
	cfg.Brokers = cluster.ListenAddrs()
	cfg.ClientID = "test"
	deps.Log = slog.New(slog.NewTextHandler(writer, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return &Broker{Cluster: cluster, Config: cfg, Deps: deps}
}

// Client returns a plain client of the broker, closed when the test ends.
func (b *Broker) Client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	cl := b.client(t, opts)
	t.Cleanup(cl.Close)
	return cl
}

func (b *Broker) client(t testing.TB, opts []kgo.Opt) *kgo.Client {
	opts = append([]kgo.Opt{kgo.SeedBrokers(b.Config.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner())}, opts...)
	if b.Deps.Dialer != nil {
		opts = append(opts, kgo.Dialer(b.Deps.Dialer))
	}
	cl, err := kgo.NewClient(opts...)
	require.NoError(t, err)
	return cl
}

// Topic makes a topic.
func (b *Broker) Topic(t testing.TB, name string, partitions int32, configs map[string]string) {
	require.NoError(t, b.CreateTopic(b.Config.Topic(name), partitions, configs))
}

// Offset returns what a group has committed for a partition, -1 if nothing.
func (b *Broker) Offset(t testing.TB, group, topic string, partition int32) int64 {
	info := b.GroupInfo(b.Config.Group(group))
	if info == nil {
		return -1
	}
	c, ok := info.Commits[b.Config.Topic(topic)][partition]
	if !ok {
		return -1
	}
	return c.Offset
}

// Records reads what a topic holds now, of all partitions, in no order among them.
func (b *Broker) Records(t testing.TB, topic string) []*kgo.Record {
	// It has no clean-up: a test that gives up may be through with all others while it is being closed here, and to close it twice at
	// once is a data race of the library's.
	cl := b.client(t, []kgo.Opt{
		kgo.ConsumeTopics(b.Config.Topic(topic)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
	})
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	admin := kadm.NewClient(cl)
	ends, err := admin.ListCommittedOffsets(ctx, b.Config.Topic(topic))
	require.NoError(t, err)
	starts, err := admin.ListStartOffsets(ctx, b.Config.Topic(topic))
	require.NoError(t, err)
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if s, _ := starts.Lookup(o.Topic, o.Partition); o.Offset > s.Offset {
			left[o.Partition] = o.Offset
		}
	})
	var out []*kgo.Record
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				out = append(out, r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return out
}

// testWriter sends log lines to the test as long as it runs.
type testWriter struct {
	t  testing.TB
	mu sync.Mutex
	on bool
}

func newTestWriter(t testing.TB) *testWriter {
	w := &testWriter{t: t, on: true}
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.on = false
	})
	return w
}

// Write implements io.Writer.
func (w *testWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.on {
		w.t.Log(strings.TrimSuffix(string(b), "\n"))
	}
	return len(b), nil
}
