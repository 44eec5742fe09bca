//go:build real

package router_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/test/real/kafka"
)

// What the embedded broker can't show: the broker's own times in the ledger, sessions that end by its clock, and how long it takes.
func TestBudgetsOnRealKafka(t *testing.T) {
	cluster := kafka.Start(t, kafka.Options{})
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Prefix, cfg.ClientID = cluster.Addrs(), "real.", "test"
	deps := stream.Deps{Log: slog.New(slog.DiscardHandler)}
	specs, err := topicadmin.Specs()
	require.NoError(t, err)
	deps.MaxBytes = topicadmin.MaxBytes(specs)
	_, err = topicadmin.Apply(t.Context(), cfg, deps, specs, topicadmin.Options{MinInSync: 1})
	require.NoError(t, err)
	b := &bench{t: t, broker: &streamtest.Broker{Config: cfg, Deps: deps}}
	b.client = b.broker.Client(t, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))

	app := b.start()
	require.Eventually(t, func() bool { return string(b.get(app, "/v1/budgets")["partitions"]) == "[0,1,2,3,4,5]" }, time.Minute, 100*time.Millisecond)
	without, with := b.waits("human"), b.waits("agent")
	t.Logf("from request acknowledged to decision read, one at a time: without a budget p50 %s, p95 %s; with one p50 %s, p95 %s",
		without[100], without[190], with[100], with[190])
	require.NoError(t, app.Stop(context.Background()))

	b.holdWhileRoutersDie(6)
}

// waits are how long 200 requests wait for their decisions, one after the other, in order of length.
func (b *bench) waits(class string) []time.Duration {
	t := b.t
	reader := b.broker.Client(t, kgo.ConsumeTopics(b.broker.Config.Topic(event.TopicDecisions)), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
		kgo.FetchMinBytes(1), kgo.FetchMaxWait(100*time.Millisecond))
	defer reader.Close()
	decided := make(chan string, 10)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for ctx.Err() == nil {
			reader.PollFetches(ctx).EachRecord(func(r *kgo.Record) { decided <- string(r.Key) })
		}
	}()
	time.Sleep(time.Second) // until the reader stands at the end
	var out []time.Duration
	for i := range 200 {
		id := fmt.Sprint(class, i)
		b.publish(event.TopicRequests, class+fmt.Sprint(i%20), "", fmt.Sprintf(
			`{"id":%q,"sql":"SELECT %d","tenant":"waits","session":{"id":"%s%d","class":%q}}`, id, i, class, i%20, class))
		began := time.Now()
		for got := ""; got != id; {
			select {
			case got = <-decided:
			case <-time.After(10 * time.Second):
				t.Fatalf("no decision of %s", id)
			}
		}
		out = append(out, time.Since(began))
	}
	slices.Sort(out)
	return out
}
