package stream_test

import (
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

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
)

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
