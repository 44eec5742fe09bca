package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/pointsman/pointsman/pkg/event"
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
func (p processor) Close()                                                {}

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

func TestConsumerCommitsWhatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		produce(t, b, "t", 0, 0, 5)
		var s seen
		m := join(t, b, nil, func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			s.add(recs...)
			p.Done(recs...)
			return nil
		})
		settle(10 * time.Second)
		require.Equal(t, values(0, 5), s.take())
		require.Equal(t, int64(5), b.Offset(t, "g", "t", 0))
		require.Equal(t, 1, m.c.Assigned())
		produce(t, b, "t", 0, 5, 1)
		settle(time.Second)
		m.leave(t)
		require.Equal(t, int64(6), b.Offset(t, "g", "t", 0))
	})
}

// K4: attempts finish out of order, then the process dies. The slow one comes again, and nothing below it was committed.
func TestFinishedOutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		produce(t, b, "t", 0, 0, 10)
		ctx, kill := context.WithCancel(t.Context())
		m := join(t, b, nil, func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			for i := len(recs) - 1; i > 0; i-- {
				p.Done(recs[i])
			}
			<-ctx.Done()
			return nil
		})
		settle(10 * time.Second)
		require.LessOrEqual(t, b.Offset(t, "g", "t", 0), int64(0))
		kill()
		m.leave(t)
		require.LessOrEqual(t, b.Offset(t, "g", "t", 0), int64(0), "not at the end either")

		var s seen
		next := join(t, b, nil, func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			s.add(recs...)
			return nil
		})
		settle(10 * time.Second)
		require.Equal(t, values(0, 10), s.take())
		next.leave(t)
	})
}

// K3: the old owner finishes its work after another one has taken the partition over and gone on. The group's offset never goes back.
func TestOldOwnerDoesNotRewind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 2, nil)
		produce(t, b, "t", 0, 0, 6)
		produce(t, b, "t", 1, 0, 6)
		var commits []string
		b.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
			for _, rt := range req.(*kmsg.OffsetCommitRequest).Topics {
				for _, p := range rt.Partitions {
					commits = append(commits, fmt.Sprintf("%d@%d", p.Partition, p.Offset))
				}
			}
			return nil, nil, false
		})
		var mu sync.Mutex
		held := map[int32]func(){}
		a := join(t, b, nil, func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			p.Done(recs[0])
			mu.Lock()
			defer mu.Unlock()
			held[p.ID] = func() { p.Done(recs...) } // finished much later, by somebody who does not ask
			return nil
		})
		settle(5 * time.Second)
		require.Equal(t, int64(1), b.Offset(t, "g", "t", 0))
		require.Equal(t, int64(1), b.Offset(t, "g", "t", 1))

		other := join(t, b, nil, func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			p.Done(recs[:len(recs)-2]...) // 1, 2, 3: commits 4
			return nil
		})
		settle(30 * time.Second)
		require.Equal(t, 1, a.c.Assigned())
		require.Equal(t, 1, other.c.Assigned())
		moved := int32(0)
		if b.Offset(t, "g", "t", 1) == 4 {
			moved = 1
		}
		require.Equal(t, int64(4), b.Offset(t, "g", "t", moved))
		before := len(commits)
		mu.Lock()
		held[moved]()
		mu.Unlock()
		settle(5 * time.Second)
		require.Equal(t, int64(4), b.Offset(t, "g", "t", moved))
		require.Len(t, commits, before, "the old owner asks for nothing")
		a.leave(t)
		settle(30 * time.Second)
		other.leave(t)
		last := map[byte]int64{}
		for _, c := range commits {
			var p int32
			var at int64
			_, _ = fmt.Sscanf(c, "%d@%d", &p, &at)
			require.GreaterOrEqual(t, at, last[byte(p)], commits)
			last[byte(p)] = at
		}
	})
}

// K5: the engine is slower than every timeout. The member keeps its place, its commits count, and the other partitions go on.
func TestSlowerThanEveryTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 2, nil)
		produce(t, b, "t", 0, 0, 1)
		var s seen
		short := func(cc *stream.ConsumerConfig) {
			cc.SessionTimeout, cc.HeartbeatEvery, cc.RebalanceTimeout = 6*time.Second, time.Second, 10*time.Second
		}
		m := join(t, b, short, func(ctx context.Context, p *stream.Partition, recs []*kgo.Record) error {
			if p.ID == 0 {
				time.Sleep(180 * time.Second)
			}
			s.add(recs...)
			p.Done(recs...)
			return nil
		})
		settle(5 * time.Second)
		produce(t, b, "t", 1, 100, 3)
		settle(5 * time.Second)
		require.Equal(t, values(100, 3), s.take(), "one slow partition holds up no other")
		time.Sleep(180 * time.Second)
		require.Equal(t, values(0, 1), s.take(), "once, by the one who had it")
		require.Equal(t, int64(1), b.Offset(t, "g", "t", 0))
		m.leave(t)
	})
}

// A member that was thrown out comes back by itself, and loses nothing.
func TestThrownOutAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		produce(t, b, "t", 0, 0, 3)
		var s seen
		m := join(t, b, nil, func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			s.add(recs...)
			p.Done(recs...)
			return nil
		})
		settle(5 * time.Second)
		b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.UnknownMemberID, Count: 1})
		settle(30 * time.Second)
		produce(t, b, "t", 0, 3, 3)
		settle(30 * time.Second)
		require.Equal(t, values(0, 6), s.take())
		require.Equal(t, int64(6), b.Offset(t, "g", "t", 0))
		m.leave(t)
	})
}

// Two live processes with one fixed name: the older one ends with an error of its own kind.
func TestFencedByItsTwin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		named := func(cc *stream.ConsumerConfig) { cc.InstanceID = "executor-0" }
		nothing := func(context.Context, *stream.Partition, []*kgo.Record) error { return nil }
		old := join(t, b, named, nothing)
		settle(5 * time.Second)
		young := join(t, b, named, nothing)
		settle(30 * time.Second)
		require.ErrorIs(t, <-old.err, stream.ErrFenced)
		require.Equal(t, 1, young.c.Assigned())
		young.leave(t)
	})
}

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

// K6: a member is stalled for longer than the session lasts, another one takes its partition over and goes on. When the first one wakes
// up, its commits change nothing, and it finds back.
func TestZombieMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		produce(t, b, "t", 0, 0, 6)
		var mu sync.Mutex
		short := func(cc *stream.ConsumerConfig) {
			cc.SessionTimeout, cc.HeartbeatEvery, cc.RebalanceTimeout = 6*time.Second, time.Second, 10*time.Second
		}
		var late func()
		var s seen
		zombie := join(t, b, short, func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			s.add(recs...)
			p.Done(recs[0])
			if late == nil {
				late = func() { p.Done(recs...) }
			}
			return nil
		})
		settle(5 * time.Second)
		require.Equal(t, int64(1), b.Offset(t, "g", "t", 0))
		id := b.GroupInfo("g").Members[0].MemberID
		stalled := true
		b.ControlKey(int16(kmsg.Heartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
			b.KeepControl()
			mu.Lock()
			defer mu.Unlock()
			return nil, nil, stalled && req.(*kmsg.HeartbeatRequest).MemberID == id // never answered
		})
		healthy := join(t, b, short, func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			p.Done(recs...)
			return nil
		})
		settle(20 * time.Second)
		require.Equal(t, int64(6), b.Offset(t, "g", "t", 0), "the healthy one went on")
		mu.Lock()
		stalled = false
		mu.Unlock()
		late()
		settle(time.Minute)
		require.Equal(t, int64(6), b.Offset(t, "g", "t", 0))
		require.Equal(t, 1, zombie.c.Assigned()+healthy.c.Assigned())
		produce(t, b, "t", 0, 6, 2)
		healthy.leave(t)
		settle(time.Minute)
		require.Equal(t, 1, zombie.c.Assigned(), "it is a member again")
		zombie.leave(t)
	})
}

// K10: the consumer was away for longer than retention keeps records.
func TestAwayForLongerThanRetention(t *testing.T) {
	for _, policy := range []stream.LossPolicy{stream.LossStop, stream.LossResume} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := streamtest.Virtual(t)
				b.Topic(t, "t", 1, nil)
				produce(t, b, "t", 0, 0, 3)
				var s seen
				all := func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
					s.add(recs...)
					p.Done(recs...)
					return nil
				}
				set := func(cc *stream.ConsumerConfig) { cc.OnLoss = policy }
				m := join(t, b, set, all)
				settle(5 * time.Second)
				m.leave(t)
				require.Equal(t, values(0, 3), s.take())
				produce(t, b, "t", 0, 3, 12)
				require.NoError(t, b.DeleteRecords("t", 0, 10))

				m = join(t, b, set, all)
				settle(10 * time.Second)
				require.Equal(t, int64(7), m.c.Lost())
				if policy == stream.LossStop {
					err := <-m.err
					var loss *stream.LossError
					require.ErrorAs(t, err, &loss)
					require.Equal(t, stream.LossError{Topic: "t", Partition: 0, From: 3, To: 10}, *loss)
					require.Equal(t, int64(3), b.Offset(t, "g", "t", 0), "nothing is committed over the gap")
					require.Empty(t, s.take())
					return
				}
				require.Equal(t, values(10, 5), s.take())
				require.Equal(t, int64(15), b.Offset(t, "g", "t", 0))
				m.leave(t)
			})
		})
	}
}

// What compaction has taken away is no loss: it stops nobody, and health stays green.
func TestCompactionIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, event.TopicSignals, 1, map[string]string{"cleanup.policy": "compact"})
		produce(t, b, event.TopicSignals, 0, 0, 3)
		var s seen
		all := func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			s.add(recs...)
			p.Done(recs...)
			return nil
		}
		set := func(cc *stream.ConsumerConfig) { cc.OnLoss, cc.Topics = stream.LossStop, []string{event.TopicSignals} }
		m := join(t, b, set, all)
		settle(5 * time.Second)
		m.leave(t)
		require.Equal(t, values(0, 3), s.take())
		produce(t, b, event.TopicSignals, 0, 3, 12)
		require.NoError(t, b.DeleteRecords(b.Config.Topic(event.TopicSignals), 0, 10))

		m = join(t, b, set, all)
		settle(10 * time.Second)
		require.Zero(t, m.c.Lost())
		require.Equal(t, values(10, 5), s.take())
		require.Equal(t, int64(15), b.Offset(t, "g", event.TopicSignals, 0))
		m.leave(t)
	})
}

// Retention overtakes a consumer that is held up while it runs.
func TestOutrunByRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		produce(t, b, "t", 0, 0, 1)
		var s seen
		hold := make(chan struct{})
		m := join(t, b, func(cc *stream.ConsumerConfig) { cc.OnLoss, cc.MaxSpan = stream.LossResume, 1 },
			func(ctx context.Context, p *stream.Partition, recs []*kgo.Record) error {
				s.add(recs...)
				select {
				case <-hold:
				case <-ctx.Done():
				}
				p.Done(recs...)
				return nil
			})
		settle(5 * time.Second)
		produce(t, b, "t", 0, 1, 20)
		settle(time.Second)
		require.NoError(t, b.DeleteRecords("t", 0, 15))
		close(hold)
		settle(30 * time.Second)
		require.Equal(t, append(values(0, 1), values(15, 6)...), s.take())
		require.Equal(t, int64(14), m.c.Lost())
		require.Equal(t, int64(21), b.Offset(t, "g", "t", 0))
		m.leave(t)
	})
}

// The log lost its end, and the broker can't say where it parted from what was read: what is there now is read from its end on.
func TestLogThatLostItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		produce(t, b, "t", 0, 0, 10)
		var s seen
		m := join(t, b, func(cc *stream.ConsumerConfig) { cc.OnLoss = stream.LossResume },
			func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
				s.add(recs...)
				p.Done(recs...)
				return nil
			})
		settle(5 * time.Second)
		require.Equal(t, values(0, 10), s.take())
		require.Equal(t, int64(10), b.Offset(t, "g", "t", 0))

		// The broker can't be made to lose records; it says that it has 6, and then has others in the place of those above.
		b.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
			b.KeepControl()
			resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
			for _, rt := range req.(*kmsg.ListOffsetsRequest).Topics {
				topic := kmsg.NewListOffsetsResponseTopic()
				topic.Topic = rt.Topic
				for _, rp := range rt.Partitions {
					p := kmsg.NewListOffsetsResponseTopicPartition()
					p.Partition, p.Offset = rp.Partition, 0
					if rp.Timestamp == -1 {
						p.Offset = 6
					}
					topic.Partitions = append(topic.Partitions, p)
				}
				resp.Topics = append(resp.Topics, topic)
			}
			return resp, nil, true
		})
		b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.OffsetOutOfRange, Count: 1})
		settle(10 * time.Second)
		require.Equal(t, values(6, 4), s.take())
		require.Equal(t, int64(4), m.c.Lost())
		produce(t, b, "t", 0, 10, 1)
		settle(5 * time.Second)
		require.Equal(t, values(10, 1), s.take())
		require.Equal(t, int64(11), b.Offset(t, "g", "t", 0))
		m.leave(t)
	})
}

// K1, the half of this layer: the crash comes after the effect and before the commit. The record comes again, none is lost.
func TestCrashBeforeCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		produce(t, b, "t", 0, 0, 3)
		fault := b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.CoordinatorNotAvailable, Count: -1})
		var s seen
		all := func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			s.add(recs...)
			p.Done(recs...)
			return nil
		}
		m := join(t, b, func(cc *stream.ConsumerConfig) { cc.RebalanceTimeout = 4 * time.Second }, all)
		settle(5 * time.Second)
		m.leave(t)
		require.Equal(t, int64(-1), b.Offset(t, "g", "t", 0))
		fault.Remove()
		m = join(t, b, nil, all)
		settle(5 * time.Second)
		require.Equal(t, append(values(0, 3), values(0, 3)...), s.take())
		require.Equal(t, int64(3), b.Offset(t, "g", "t", 0))
		m.leave(t)
	})
}

// K7 and K8: what can't be read goes to the dead letters with where it was, and the partition goes on; unless that fails.
func TestPoisonAtTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		b.Topic(t, "deadletter", 1, nil)
		cl := b.Client(t)
		require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Key: []byte("k"), Value: []byte{0xff, 1}},
			&kgo.Record{Topic: "t", Headers: []kgo.RecordHeader{{Key: "traceparent", Value: []byte("")}}}).FirstErr())
		cl.Close()
		produce(t, b, "t", 0, 2, 1)
		p, err := stream.NewProducer(b.Config, b.Deps, "test")
		require.NoError(t, err)
		defer p.Close()
		var s seen
		f := func(ctx context.Context, part *stream.Partition, recs []*kgo.Record) error {
			for _, r := range recs {
				_, err := stream.Decode(r, stream.RulesFor("requests"))
				if bad, ok := errors.AsType[*stream.Fault](err); ok {
					if err := p.DeadLetter(ctx, stream.DeadLetter{Record: r, Group: "g", Stage: "test", Class: bad.Class, Err: bad}); err != nil {
						return err
					}
				} else {
					s.add(r)
				}
				part.Done(r)
			}
			return nil
		}
		// the dead letter topic refuses: nothing moves
		fault := b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "deadletter", Err: kerr.TopicAuthorizationFailed, Count: -1})
		m := join(t, b, nil, f)
		err = <-m.err
		require.ErrorIs(t, err, kerr.TopicAuthorizationFailed)
		require.ErrorContains(t, err, "t[0]@0")
		require.LessOrEqual(t, b.Offset(t, "g", "t", 0), int64(0))
		fault.Remove()

		m = join(t, b, nil, f)
		settle(10 * time.Second)
		require.Equal(t, []string{"2"}, s.take())
		require.Equal(t, int64(3), b.Offset(t, "g", "t", 0))
		dead := b.Records(t, "deadletter")
		require.Len(t, dead, 2)
		require.Equal(t, []byte{0xff, 1}, dead[0].Value)
		require.Nil(t, dead[1].Value)
		m.leave(t)
	})
}

// K12: an outside producer uses transactions. Its markers do not stay behind as lag, and what it aborted is not read.
func TestTransactionMarkersAreNoLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		cl := b.Client(t, kgo.TransactionalID("outside"))
		for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
			require.NoError(t, cl.BeginTransaction())
			require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: fmt.Append(nil, i)}).FirstErr())
			require.NoError(t, cl.EndTransaction(t.Context(), end))
		}
		cl.Close()
		var s seen
		m := join(t, b, nil, func(_ context.Context, p *stream.Partition, recs []*kgo.Record) error {
			s.add(recs...)
			p.Done(recs...)
			return nil
		})
		settle(10 * time.Second)
		require.Equal(t, []string{"0", "2"}, s.take())
		require.Equal(t, b.PartitionInfo("t", 0).HighWatermark, b.Offset(t, "g", "t", 0))
		m.leave(t)
	})
}

func TestCommitTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		b.Topic(t, "t", 1, nil)
		produce(t, b, "t", 0, 0, 10)
		var part *stream.Partition
		hold := func(_ context.Context, p *stream.Partition, _ []*kgo.Record) error { part = p; return nil }
		m := join(t, b, nil, hold)
		settle(5 * time.Second)
		_, _, ok := part.Committed()
		require.False(t, ok)
		require.NoError(t, part.CommitTo(t.Context(), 6, "cut=6"))
		require.NoError(t, part.CommitTo(t.Context(), 4, "cut=4"))
		m.leave(t)
		require.Equal(t, int64(6), b.Offset(t, "g", "t", 0))
		require.ErrorIs(t, part.CommitTo(t.Context(), 9, ""), stream.ErrNotOwned)

		m = join(t, b, nil, hold)
		settle(5 * time.Second)
		at, metadata, ok := part.Committed()
		require.True(t, ok)
		require.Equal(t, int64(6), at)
		require.Equal(t, "cut=6", metadata)
		m.leave(t)
	})
}
