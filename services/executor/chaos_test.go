package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/services/executor"
)

// TestChaos lets executors die, freeze, wake up and leave while Tasks of all kinds run. Whatever happens: every Task has one
// Outcome, no attempt is submitted twice, and no write is run twice.
func TestChaos(t *testing.T) {
	b := newBench(t, 3)
	b.config = func(c *executor.Config) {
		c.Attempts.MaxAttempts, c.Attempts.MaxRetries = 2000, 50 // while both engines are away a Task goes to and fro without a pause
		c.Attempts.Grace = 50 * time.Millisecond
		for i := range c.Engines {
			c.Engines[i].Slots = 6
		}
	}
	for _, s := range b.servers {
		s.on("FAST", behaviour{rows: 1})
		s.on("SLOW", behaviour{rows: 1, slow: 300 * time.Millisecond})
		s.on("WRONG", behaviour{code: "62"})
		s.on("INSERT", behaviour{slow: 150 * time.Millisecond})
	}
	b.servers[interactive].on("BIG", behaviour{code: "241", slow: 50 * time.Millisecond})
	b.servers[batch].on("BIG", behaviour{rows: 1, slow: 50 * time.Millisecond})

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	b.answerReroutes()
	kinds := []string{"FAST", "SLOW", "WRONG", "INSERT", "BIG"}
	live := []*proc{b.start(), b.start()}
	const n = 120
	for i := range n {
		sql := kinds[i%len(kinds)]
		b.decide(b.route(fmt.Sprintf("t%d", i), sql, func(d *event.RouteDecision) { d.ReadOnly = sql != "INSERT" }))
		if i%12 != 11 {
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			continue
		}
		k := r.IntN(len(live))
		switch p := live[k]; r.IntN(4) {
		case 3: // an engine that can't be reached for a while; what runs there goes on
			s := b.servers[[]string{interactive, batch}[r.IntN(2)]]
			s.setDown(true)
			time.AfterFunc(500*time.Millisecond, func() { s.setDown(false) })
		case 0:
			p.crash()
			live[k] = b.start()
		case 1: // longer than the session timeout: it wakes up as a zombie
			p.network.freeze()
			time.Sleep(strain * 900 * time.Millisecond)
			p.network.thaw()
		default:
			p.end()
			live[k] = b.start()
		}
	}
	defer func() {
		if t.Failed() {
			b.tellOpen()
		}
	}()
	require.Eventually(t, func() bool { return len(b.outcomes()) == n }, strain*40*time.Second, 100*time.Millisecond, "no Task is lost")
	b.committed()
	b.once()
	for id, all := range b.outcomes() {
		o := all[0]
		var i int
		_, err := fmt.Sscanf(id, "t%d", &i)
		require.NoError(t, err)
		switch sql := kinds[i%len(kinds)]; sql {
		case "WRONG":
			require.Equal(t, event.Failed, o.Status, id)
		case "INSERT":
			require.Equal(t, 1, b.servers[interactive].count(id+"/1")+b.runs(id), "%s: a write reaches an engine at most once", id)
		default:
			require.Equal(t, event.Succeeded, o.Status, "%s %s: %+v", id, sql, o.Failure)
		}
	}
}

// tellOpen logs what is known of the Tasks that have no Outcome, and who has the partitions.
func (b *bench) tellOpen() {
	groups, err := kadm.NewClient(b.broker.Client(b.t)).DescribeGroups(b.t.Context(), "executor")
	b.t.Logf("open: %v %+v", err, groups)
	done := b.outcomes()
	for _, rec := range b.broker.Records(b.t, event.TopicDecisions) {
		if _, ended := done[string(rec.Key)]; !ended {
			b.t.Logf("open: decision %d[%d] %s %s", rec.Offset, rec.Partition, rec.Key, rec.Value)
		}
	}
	for _, topic := range []string{event.TopicAttempts, event.TopicAttemptState} {
		for _, rec := range b.broker.Records(b.t, topic) {
			if id, _, _ := strings.Cut(string(rec.Key), "/"); id == "" || len(done[id]) > 0 {
				continue
			}
			b.t.Logf("open: %s %d[%d] %s %s %s", topic, rec.Offset, rec.Partition, rec.Timestamp.UTC().Format(time.StampMilli), rec.Key, rec.Value)
		}
	}
}

// answerReroutes is a router that sends every Task that failed to the other cluster.
func (b *bench) answerReroutes() {
	cl := b.broker.Client(b.t, kgo.ConsumeTopics(event.TopicAttempts), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	b.t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		for {
			fetches := cl.PollFetches(ctx)
			if ctx.Err() != nil {
				return
			}
			fetches.EachRecord(func(rec *kgo.Record) {
				var a event.Attempt
				if json.Unmarshal(rec.Value, &a) != nil || a.Remedy != event.RemedyReroute {
					return
				}
				d := *a.Decision
				d.Attempt, d.DecisionID = a.Number+1, query.AttemptID(a.TaskID, a.Number+1)
				d.Cluster, d.Fallbacks = interactive, nil
				if a.Cluster == interactive {
					d.Cluster = batch
				}
				data, err := event.Marshal(d)
				if err == nil {
					_ = b.producer.Send(ctx, stream.Message{Topic: event.TopicDecisions, Key: d.TaskID, Type: d.Type(), ID: d.DecisionID, Data: data})
				}
			})
		}
	}()
}

// runs is 1 for a write that never reached an engine, and counts what reached one under a later number.
func (b *bench) runs(id string) int {
	n := 0
	for _, s := range b.servers {
		for attempt, k := range s.counts() {
			if len(attempt) > len(id) && attempt[:len(id)+1] == id+"/" && attempt != id+"/1" {
				n += k
			}
		}
	}
	if n == 0 && b.servers[interactive].count(id+"/1") == 0 {
		return 1
	}
	return n
}
