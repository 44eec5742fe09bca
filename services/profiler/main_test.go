package profiler_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/history/historytest"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
	"github.com/pointsman/pointsman/services/profiler"
)

func TestMain(m *testing.M) { os.Exit(historytest.Main(m)) }

const partitions = 2

// bench is a broker with the topics, a history, and what is needed to look at both.
type bench struct {
	t       testing.TB
	broker  *streamtest.Broker
	history history.Config
	db      *history.DB
	out     *stream.Producer
	cfg     profiler.Config
	several bool // profilers run at once: the goroutines of the others are no leak
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return newBenchOf(t, partitions)
}

func newBenchOf(t testing.TB, partitions int32) *bench {
	t.Helper()
	b := &bench{t: t, broker: streamtest.Start(t), history: historytest.Empty(t)}
	for _, topic := range []string{event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes, event.TopicSignals, event.TopicDeadLetter} {
		b.broker.Topic(t, topic, partitions, nil)
	}
	b.db = historytest.Open(t, b.history)
	var err error
	b.out, err = stream.NewProducer(b.broker.Config, stream.Deps{}, "test")
	require.NoError(t, err)
	t.Cleanup(b.out.Close)
	b.cfg = profiler.Default()
	b.cfg.Telemetry.Admin.Address = "127.0.0.1:0"
	b.cfg.HTTP.Address = "127.0.0.1:0"
	b.cfg.Kafka = b.broker.Config
	b.cfg.History = b.history
	b.cfg.Sink.FlushEvery = 50 * time.Millisecond
	b.cfg.Sink.MaxBackoff = 200 * time.Millisecond
	b.cfg.Rollups.Every = 50 * time.Millisecond
	b.cfg.Consumer.CommitEvery = 50 * time.Millisecond
	b.cfg.Consumer.HeartbeatEvery = 100 * time.Millisecond
	b.cfg.Consumer.SessionTimeout = 3 * time.Second
	b.cfg.Consumer.RebalanceTimeout = 5 * time.Second
	return b
}

// start runs a profiler until stop is called, or the test ends.
func (b *bench) start(cfg profiler.Config, opts ...profiler.Option) (app *profiler.App, stop func()) {
	b.t.Helper()
	before := goleak.IgnoreCurrent()
	tel, _ := telemetrytest.New(b.t, "profiler")
	app, err := profiler.New(b.t.Context(), cfg, tel, opts...)
	require.NoError(b.t, err)
	require.NoError(b.t, app.Start(b.t.Context()))
	done := false
	stop = func() {
		if done {
			return
		}
		done = true
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(b.t, app.Stop(ctx))
		require.NoError(b.t, app.Err())
		if !b.several {
			goleak.VerifyNone(b.t, append(notOurs, before)...)
		}
	}
	b.t.Cleanup(stop)
	return app, stop
}

// notOurs are goroutines of the broker and of the test's own connections, which come and go beside the profiler's.
var notOurs = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read"),
	goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read.func1"),
	goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).write"),
	goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
	goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
}

func (b *bench) send(topic, key string, typ event.Type, v any) {
	b.t.Helper()
	require.NoError(b.t, b.out.Send(b.t.Context(), b.message(topic, key, typ, v)))
}

func (b *bench) message(topic, key string, typ event.Type, v any) stream.Message {
	b.t.Helper()
	data, err := event.Marshal(v)
	require.NoError(b.t, err)
	return stream.Message{Topic: topic, Key: key, Type: typ, ID: key, Data: data}
}

// life is all events of a Task that a memory limit kills at first, or not.
func (b *bench) life(i int, killed bool) []stream.Message {
	id := fmt.Sprintf("task-%d", i)
	at := time.Now().Add(-3 * time.Second).UTC().Truncate(time.Millisecond) // it ends a second later, and a summary leaves the present second out
	task := query.Task{ID: id, SQL: "SELECT " + id, Tenant: "ten", SubmittedAt: &at, SLASeconds: new(10.0)}
	first := event.Target{Engine: "interactive", Cluster: "i1", Queue: "q"}
	second := event.Target{Engine: "batch", Cluster: "b1", Queue: "q"}
	msgs := []stream.Message{b.message(event.TopicRequests, id, event.QueryRequested, task)}
	decide := func(n int, to event.Target) {
		d := event.RouteDecision{DecisionID: query.AttemptID(id, n), TaskID: id, Attempt: n, Kind: event.Route, Task: &task, DecidedAt: at, Deadline: at.Add(time.Hour), Target: to, Fingerprint: "fp"}
		msgs = append(msgs, b.message(event.TopicDecisions, id, d.Type(), d))
	}
	try := func(n int, to event.Target, states ...string) {
		for seq, state := range states {
			a := event.Attempt{AttemptID: query.AttemptID(id, n), TaskID: id, Number: n, Seq: seq + 1, State: state, At: at, Target: to, Tenant: "ten", Fingerprint: "fp"}
			if state == "failed" {
				a.Failure = &event.Failure{Class: "memory_limit", Code: "241"}
			}
			if state == "succeeded" {
				a.Stats = &event.Stats{QueueMs: new(int64(i % 10)), ExecMs: new(int64(100)), ReadBytes: new(int64(1000))}
			}
			msgs = append(msgs, b.message(event.TopicAttempts, id, a.Type(), a))
		}
	}
	o := event.Outcome{TaskID: id, Status: event.Succeeded, Tenant: "ten", Fingerprint: "fp", Target: first, Attempts: 1, SubmittedAt: at, FinishedAt: at.Add(time.Second), TotalMs: 1000, SLAMs: 10_000, SLAHit: i%4 != 0}
	decide(1, first)
	if killed {
		try(1, first, "awaiting_slot", "running", "failed")
		decide(2, second)
		try(2, second, "awaiting_slot", "running", "succeeded")
		o.Target, o.Attempts, o.Rerouted = second, 2, true
	} else {
		try(1, first, "awaiting_slot", "running", "succeeded")
	}
	return append(msgs, b.message(event.TopicOutcomes, id, event.TaskEnded, o))
}

// live writes the events of n Tasks, each fifth of them killed at first.
func (b *bench) live(from, n int) {
	b.t.Helper()
	var msgs []stream.Message
	for i := from; i < from+n; i++ {
		msgs = append(msgs, b.life(i, i%5 == 0)...)
	}
	require.NoError(b.t, b.out.Send(b.t.Context(), msgs...))
}

func (b *bench) try(query string) (uint64, error) {
	var n uint64
	err := b.db.Conn().QueryRow(context.Background(), query).Scan(&n)
	return n, err
}

func (b *bench) count(query string) uint64 {
	b.t.Helper()
	n, err := b.try(query)
	require.NoError(b.t, err, query)
	return n
}

// eventually waits until a query gives a number.
func (b *bench) eventually(want uint64, query string) {
	b.t.Helper()
	b.within(30*time.Second, want, query)
}

func (b *bench) within(most time.Duration, want uint64, query string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		n, err := b.try(query)
		return err == nil && n == want
	}, most, 50*time.Millisecond, "%s", query)
}

// caughtUp waits until the group has committed everything.
func (b *bench) caughtUp() {
	b.t.Helper()
	want := map[string]map[int32]int64{}
	for _, topic := range []string{event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes} {
		want[topic] = map[int32]int64{}
		for _, r := range b.broker.Records(b.t, topic) {
			want[topic][r.Partition] = max(want[topic][r.Partition], r.Offset+1)
		}
	}
	require.Eventually(b.t, func() bool {
		for topic, parts := range want {
			for p, offset := range parts {
				if b.broker.Offset(b.t, "profiler", topic, p) < offset {
					return false
				}
			}
		}
		return true
	}, 30*time.Second, 50*time.Millisecond, "not all is committed")
}

func (b *bench) deadLetters() []*kgo.Record { return b.broker.Records(b.t, event.TopicDeadLetter) }

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

func TestConfigIsComplete(t *testing.T) {
	require.NoError(t, config.Validate(profiler.Default()))
	require.NotEmpty(t, config.Describe(profiler.Default()))
}

// record is an outcome, or whatever, as a record for one partition.
func (b *bench) record(topic string, v any, partition int32) *kgo.Record {
	b.t.Helper()
	key := "k"
	if o, ok := v.(event.Outcome); ok {
		key = o.TaskID
	}
	rec, err := b.broker.Config.Encode(b.message(topic, key, event.TaskEnded, v))
	require.NoError(b.t, err)
	rec.Partition = partition
	return rec
}

func (b *bench) commit(cl *kgo.Client, topic string, partition int32, offset int64) {
	b.t.Helper()
	var o kadm.Offsets
	o.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset, LeaderEpoch: -1})
	_, err := kadm.NewClient(cl).CommitOffsets(b.t.Context(), b.broker.Config.Group("profiler"), o)
	require.NoError(b.t, err)
}
