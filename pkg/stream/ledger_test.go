package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
)

func open(t *testing.T, b *streamtest.Broker, owner string) *stream.Ledger {
	l, err := stream.OpenLedger(t.Context(), b.Config, b.Deps, stream.DefaultLedgerConfig(1, owner))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func ledgerTopic(t *testing.T, b *streamtest.Broker) { b.Topic(t, event.TopicAttemptState, 2, nil) }

func rec(task string, n int, payload string) ledger.Record {
	return ledger.Record{
		Key: ledger.AttemptKey(task, n), TaskID: task, Attempt: n, Deadline: time.Now().Add(time.Hour), Payload: json.RawMessage(payload),
	}
}

func final(r ledger.Record) ledger.Record { r.Final = true; return r }

func TestLedgerFirstRun(t *testing.T) {
	b := streamtest.Start(t)
	ledgerTopic(t, b)
	l := open(t, b, "A")
	require.Equal(t, int64(1), l.Epoch())

	d := l.Driver("t/1", "t")
	require.Equal(t, ledger.ActionClaim, d.Action())
	require.NoError(t, l.ClaimFor(t.Context(), d, rec("t", 1, `{"cluster":"c"}`)))
	require.True(t, l.MaySubmit(d))
	e, err := l.Submitted(t.Context(), rec("t", 1, `{"externalId":"x"}`))
	require.NoError(t, err)
	require.True(t, e.Verdict.Accepted)
	require.Len(t, l.Open(), 1)

	require.NoError(t, l.EndFor(t.Context(), d, final(rec("t", 1, `{"sql":"a < b"}`))))
	require.Equal(t, ledger.ActionEmit, d.Action())
	payload, m := d.Ending()
	want := `{"sql":"a < b"}` // to the byte: it is published again by others
	require.Equal(t, want, string(payload))
	require.Empty(t, l.Open())

	second, err := l.End(t.Context(), final(rec("t", 1, `"other"`)))
	require.NoError(t, err)
	require.Equal(t, ledger.ReasonTaskEnded, second.Verdict.Reason)
	task, ok := l.Task("t")
	require.True(t, ok)
	require.Equal(t, m.Offset, task.Final.Offset)
	require.WithinDuration(t, time.Now(), l.BrokerNow(), time.Minute)
}

func TestLedgerRecordsAreReadableEvents(t *testing.T) {
	b := streamtest.Start(t)
	b.Config.Prefix = "dev."
	ledgerTopic(t, b)
	l := open(t, b, "A")
	_, err := l.Claim(t.Context(), rec("t", 1, `{}`))
	require.NoError(t, err)
	recs := b.Records(t, event.TopicAttemptState)
	require.Len(t, recs, 2)
	require.Equal(t, "dev.attempt-state", recs[0].Topic)
	for i, key := range []string{"lease/1", "t/1"} {
		require.Equal(t, int32(1), recs[i].Partition)
		require.Equal(t, key, string(recs[i].Key))
		e, err := stream.Decode(recs[i], stream.RulesFor(event.TopicAttemptState))
		require.NoError(t, err)
		require.Equal(t, event.LedgerRecorded, e.Type)
		require.Equal(t, fmt.Sprintf("A/1/%d", i+1), e.ID)
	}
}

// A new owner takes over: the old one learns of it, and nothing it still writes counts.
func TestLedgerTakenOver(t *testing.T) {
	b := streamtest.Start(t)
	ledgerTopic(t, b)
	old := open(t, b, "A")
	armed := old.Driver("t/1", "t")
	require.NoError(t, old.ClaimFor(t.Context(), armed, rec("t", 1, `{}`)))

	next := open(t, b, "B")
	require.Equal(t, int64(2), next.Epoch())
	<-old.Lost()
	require.ErrorIs(t, old.Err(), stream.ErrLeaseLost)
	_, err := old.End(t.Context(), final(rec("t", 1, `"by A"`)))
	require.ErrorIs(t, err, stream.ErrLeaseLost)
	require.False(t, old.MaySubmit(armed))

	require.Len(t, next.Open(), 1)
	d := next.Driver("t/1", "t")
	require.Equal(t, ledger.ActionLookUp, d.Action())
	d.LookedUp(true, next.BrokerNow())
	require.NoError(t, next.EndFor(t.Context(), d, final(rec("t", 1, `"by B"`))))
	payload, _ := d.Ending()
	require.Equal(t, `"by B"`, string(payload))
}

// A stalled owner does not know that it lost. What it has on its way lands behind the new lease and is void for everybody.
func TestLedgerStalledOwner(t *testing.T) {
	b := streamtest.Start(t)
	ledgerTopic(t, b)
	old := open(t, b, "A")

	// A's next produce is held at the broker until B owns the partition.
	release := make(chan struct{})
	held := make(chan struct{})
	var slept atomic.Bool
	b.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		if slept.CompareAndSwap(false, true) {
			close(held)
			b.SleepControl(func() { <-release })
		}
		return nil, nil, false
	})
	type result struct {
		e   stream.Entry
		err error
	}
	got := make(chan result, 1)
	go func() {
		e, err := old.Claim(context.Background(), rec("t", 1, `"A"`))
		got <- result{e, err}
	}()
	<-held
	next := open(t, b, "B")
	close(release)
	r := <-got
	require.True(t, r.err != nil || r.e.Verdict.Lost(), "%+v", r)

	e, err := next.Claim(t.Context(), rec("t", 1, `"B"`))
	require.NoError(t, err)
	require.True(t, e.Verdict.Accepted)
	a, _ := next.Attempt("t/1")
	require.Equal(t, "B", a.Claim.Owner)
}

// A crash between the produce and the read-back: the next owner finds the claim and does not run it blindly.
func TestLedgerCrashBeforeReadBack(t *testing.T) {
	b := streamtest.Start(t)
	ledgerTopic(t, b)
	old := open(t, b, "A")
	ctx, cancel := context.WithCancel(t.Context())
	b.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		time.Sleep(time.Millisecond)
		return nil, nil, ctx.Err() == nil // no answer: the connection hangs
	})
	done := make(chan error, 1)
	go func() {
		_, err := old.Claim(ctx, rec("t", 1, `{}`))
		done <- err
	}()
	require.Eventually(t, func() bool { return b.PartitionInfo(event.TopicAttemptState, 1).HighWatermark == 2 }, 5*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, stream.ErrUnconfirmed)

	next := open(t, b, "B")
	d := next.Driver("t/1", "t")
	require.Equal(t, ledger.ActionLookUp, d.Action())
	require.False(t, d.MayEnd())
	d.LookedUp(false, next.BrokerNow())
	require.Equal(t, ledger.ActionWait, d.Action(), "it may still be on its way to the engine")
}

func TestLedgerWaitsTheGuardOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := streamtest.Virtual(t)
		ledgerTopic(t, b)
		old := open(t, b, "A")
		_, err := old.Claim(t.Context(), rec("t", 1, `{}`))
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		next := open(t, b, "B")
		taken := time.Now()
		d := next.Driver("t/1", "t")
		d.LookedUp(false, next.BrokerNow())
		require.NoError(t, next.WaitGuard(t.Context(), d))
		require.GreaterOrEqual(t, time.Since(taken), 5*time.Second, "record times are not the broker's, so the whole guard counts")
		require.Less(t, time.Since(taken), 7*time.Second)
		d.LookedUp(false, next.BrokerNow())
		require.Equal(t, ledger.ActionClaim, d.Action())
	})
}

// Two processes take the same partition over at the same moment: one has it in the end, and both know.
func TestLedgerLeaseRace(t *testing.T) {
	b := streamtest.Start(t)
	ledgerTopic(t, b)
	type result struct {
		l   *stream.Ledger
		err error
	}
	results := make(chan result)
	for _, owner := range []string{"A", "B", "C"} {
		go func() {
			l, err := stream.OpenLedger(t.Context(), b.Config, b.Deps, stream.DefaultLedgerConfig(1, owner))
			results <- result{l, err}
		}()
	}
	var ledgers []*stream.Ledger
	for range 3 {
		r := <-results
		require.NoError(t, r.err)
		defer r.l.Close(context.Background())
		ledgers = append(ledgers, r.l)
	}
	holders := func() (n int) {
		for _, l := range ledgers {
			if l.Err() == nil {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return holders() == 1 }, 10*time.Second, time.Millisecond)
	epochs := map[int64]bool{}
	for _, l := range ledgers {
		require.False(t, epochs[l.Epoch()], "no epoch is held twice")
		epochs[l.Epoch()] = true
	}
}

// The lease's answer gets lost: it is in the log, and its repeat changes nothing.
func TestLedgerLeaseAnswerLost(t *testing.T) {
	b := streamtest.Start(t)
	ledgerTopic(t, b)
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicasAfterAppend, Count: 2})
	l := open(t, b, "A")
	require.Equal(t, int64(1), l.Epoch())
	e, err := l.Claim(t.Context(), rec("t", 1, `{}`))
	require.NoError(t, err)
	require.True(t, e.Verdict.Accepted)
}

// A new cluster still has to make the topic that keeps offsets: opening waits for it.
func TestLedgerOnANewCluster(t *testing.T) {
	b := streamtest.Start(t)
	ledgerTopic(t, b)
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.CoordinatorNotAvailable, Count: 5})
	require.Equal(t, int64(1), open(t, b, "A").Epoch())
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.GroupAuthorizationFailed, Count: -1})
	_, err := stream.OpenLedger(t.Context(), b.Config, b.Deps, stream.DefaultLedgerConfig(1, "B"))
	require.ErrorIs(t, err, kerr.GroupAuthorizationFailed)
}

func TestLedgerSkipsWhatIsNoRecord(t *testing.T) {
	b := streamtest.Start(t)
	ledgerTopic(t, b)
	cl := b.Client(t)
	for _, v := range [][]byte{[]byte("nope"), nil, []byte(`{"kind":"lease"}`)} {
		require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: event.TopicAttemptState, Partition: 1, Value: v}).FirstErr())
	}
	l := open(t, b, "A")
	require.Equal(t, int64(1), l.Epoch())
}

func TestLedgerLimits(t *testing.T) {
	b := streamtest.Start(t)
	ledgerTopic(t, b)
	b.Deps.MaxBytes = func(string) int { return 64 << 10 }
	l := open(t, b, "A")
	_, err := l.End(t.Context(), final(rec("t", 1, `"`+strings.Repeat("x", 80<<10)+`"`)))
	require.ErrorIs(t, err, stream.ErrTooLarge)

	long := `"` + strings.Repeat("x", 32<<10) + `"`
	_, err = l.End(t.Context(), final(rec("t", 1, long)))
	require.NoError(t, err)
	task, _ := l.Task("t")
	require.True(t, task.Final.Trimmed)
	payload, err := l.Payload(t.Context(), *task.Final)
	require.NoError(t, err)
	require.Equal(t, long, string(payload))
	_, err = l.End(t.Context(), ledger.Record{Key: "x/1", TaskID: "x"})
	require.Error(t, err, "no deadline")
}

// counting is a state that counts the records of its kind.
type counting struct{ seen []string }

func (c *counting) Apply(r ledger.Record, _ ledger.Mark, _ ledger.Anchor) ledger.Verdict {
	if r.Key == "bad" {
		return ledger.Refuse("bad")
	}
	c.seen = append(c.seen, r.Key)
	return ledger.Accept()
}
func (c *counting) Forget(time.Time) int          { return 0 }
func (c *counting) Oldest() (ledger.Anchor, bool) { return ledger.Anchor{}, false }

// Several records go out together and come back in their order, each with its own verdict; behind a newer lease none counts.
func TestLedgerWritesTogether(t *testing.T) {
	b := streamtest.Start(t)
	ledgerTopic(t, b)
	state := &counting{}
	lc := stream.DefaultLedgerConfig(1, "A")
	lc.State = state
	l, err := stream.OpenLedger(t.Context(), b.Config, b.Deps, lc)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	all := []ledger.Record{{Kind: "count", Key: "one"}, {Kind: "count", Key: "bad"}, {Kind: "count", Key: "two"}}
	entries, err := l.WriteAll(t.Context(), all)
	require.NoError(t, err)
	require.Len(t, entries, 3)
	for i, want := range []bool{true, false, true} {
		require.Equal(t, want, entries[i].Verdict.Accepted)
		require.False(t, entries[i].Verdict.Lost())
		require.Equal(t, entries[0].Offset+int64(i), entries[i].Offset)
	}
	none, err := l.WriteAll(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, none)

	open(t, b, "B")
	<-l.Lost()
	_, err = l.WriteAll(t.Context(), all)
	require.ErrorIs(t, err, stream.ErrLeaseLost)
	l.View(func(*ledger.Fold) { require.Equal(t, []string{"one", "two"}, state.seen) })
}
