//go:build real

package kafka_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/test/real/kafka"
)

func client(t *testing.T, c *kafka.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Addrs()...)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return cl
}

func createTopic(t *testing.T, cl *kgo.Client, topic string, partitions int32, configs map[string]*string) {
	t.Helper()
	_, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, -1, configs, topic)
	require.NoError(t, err)
}

// consume reads records until it has as many, and returns them.
func consume(t *testing.T, cl *kgo.Client, count int) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out []*kgo.Record
	for len(out) < count {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "read %d of %d records", len(out), count)
		fetches.EachRecord(func(r *kgo.Record) { out = append(out, r) })
	}
	return out
}

func TestOneBroker(t *testing.T) {
	began := time.Now()
	c := kafka.Start(t, kafka.Options{Properties: map[string]string{"num.partitions": "7"}})
	t.Logf("one broker was ready after %s", time.Since(began).Round(100*time.Millisecond))
	cl := client(t, c, kgo.ConsumeTopics("events"), kgo.ConsumerGroup("readers"))
	logAppend := "LogAppendTime"
	createTopic(t, cl, "events", 4, map[string]*string{"message.timestamp.type": &logAppend})

	before := time.Now()
	for i := range 100 {
		record := &kgo.Record{Topic: "events", Key: fmt.Append(nil, i), Value: fmt.Append(nil, i), Timestamp: time.Unix(0, 0)}
		record.Headers = []kgo.RecordHeader{{Key: "ce_id", Value: record.Key}}
		require.NoError(t, cl.ProduceSync(t.Context(), record).FirstErr())
	}
	for _, r := range consume(t, cl, 100) {
		require.Equal(t, int8(1), r.Attrs.TimestampType(), "the broker's time")
		require.WithinRange(t, r.Timestamp, before.Add(-time.Second), time.Now().Add(time.Second),
			"a producer's clock does not count on such a topic")
		require.Equal(t, r.Key, r.Headers[0].Value)
	}

	lost := &kgo.Record{Topic: "nowhere", Value: []byte("x")}
	require.Error(t, cl.ProduceSync(t.Context(), lost).FirstErr(), "topics are not made by themselves")
	createTopic(t, cl, "wide", -1, nil)
	topics, err := kadm.NewClient(cl).ListTopics(t.Context(), "wide")
	require.NoError(t, err)
	require.Len(t, topics["wide"].Partitions, 7, "the test's own property counts")

	began = time.Now()
	c.Kill(0)
	c.Restart(0)
	t.Logf("after SIGKILL it was ready again after %s", time.Since(began).Round(100*time.Millisecond))
	again := client(t, c, kgo.ConsumeTopics("events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.Len(t, consume(t, again, 100), 100)

	c.Pause(0)
	done := make(chan error, 1)
	go func() {
		done <- again.ProduceSync(t.Context(), &kgo.Record{Topic: "events", Value: []byte("x")}).FirstErr()
	}()
	select {
	case err := <-done:
		t.Fatalf("a broker that stands still has answered: %v", err)
	case <-time.After(time.Second):
	}
	c.Resume(0)
	require.NoError(t, <-done)
}

// What was acknowledged by all in-sync replicas is still there when the leader dies without a word.
func TestLeaderOfThreeIsKilledUnderLoad(t *testing.T) {
	began := time.Now()
	c := kafka.Start(t, kafka.Options{Brokers: 3})
	t.Logf("three brokers were ready after %s", time.Since(began).Round(100*time.Millisecond))
	cl := client(t, c, kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0))
	createTopic(t, cl, "events", 1, nil)

	var acked, failed atomic.Int64
	produce := func(from, to int) {
		for i := from; i < to; i++ {
			cl.Produce(t.Context(), &kgo.Record{Topic: "events", Value: fmt.Append(nil, i)}, func(_ *kgo.Record, err error) {
				if err != nil {
					failed.Add(1)
					return
				}
				acked.Add(1)
			})
			time.Sleep(time.Millisecond)
		}
	}
	produce(0, 1000)
	leader := leaderOf(t, cl, "events")
	c.Kill(c.Index(leader))
	killed := time.Now()
	require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "events", Value: []byte("first after the kill")}).FirstErr())
	t.Logf("the first record after the kill was acknowledged after %s", time.Since(killed).Round(10*time.Millisecond))
	produce(1000, 2000)
	require.NoError(t, cl.Flush(t.Context()))
	require.Zero(t, failed.Load())
	require.Equal(t, int64(2000), acked.Load())
	require.NotEqual(t, leader, leaderOf(t, cl, "events"))

	seen := map[string]int{}
	for _, r := range consume(t, client(t, c, kgo.ConsumeTopics("events")), 2001) {
		seen[string(r.Value)]++
	}
	require.Len(t, seen, 2001, "each once: the producer is idempotent")
	c.Restart(c.Index(leader))
}

func leaderOf(t *testing.T, cl *kgo.Client, topic string) int32 {
	t.Helper()
	topics, err := kadm.NewClient(cl).ListTopics(t.Context(), topic)
	require.NoError(t, err)
	return topics[topic].Partitions[0].Leader
}

// The script is for people; it must start the same thing.
func TestScript(t *testing.T) {
	kafka.Require(t)
	dir := t.TempDir()
	run := func(args ...string) string {
		out, err := exec.Command("./kafka.sh", args...).Output()
		require.NoError(t, err, "kafka.sh %v", args)
		return strings.TrimSpace(string(out))
	}
	run("start", dir, "1")
	defer run("stop", dir)
	address := run("ready", dir)
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	require.NoError(t, err)
	defer cl.Close()
	require.NoError(t, cl.Ping(t.Context()))
	run("stop", dir)
	run("start", dir)
	require.Equal(t, address, run("ready", dir))
}
