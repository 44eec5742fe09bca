package router_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/services/router"
)

// shippedQueries is what the shipped policy lets a session of an agent ask.
const shippedQueries = 24

func agentQuery(id, session string) string {
	return fmt.Sprintf(`{"id":%q,"sql":"SELECT %d","tenant":"support","session":{"id":%q,"class":"agent"},"timeoutSeconds":600}`, id, len(id), session)
}

// Two routers in processes of their own, which are killed and made to stand still in turn while agents press on their budgets, also from
// producers that don't know of sessions: every Task gets an answer and never two different ones, and each session has exactly its budget.
func TestBudgetsHoldWhileRoutersDie(t *testing.T) { newBench(t, 3).holdWhileRoutersDie(3) }

func (b *bench) holdWhileRoutersDie(partitions int32) {
	const sessions, each = 5, 40
	t := b.t
	anywhere := b.broker.Client(t) // it names the partition itself
	rnd := rand.New(rand.NewPCG(1, 2))
	routers := []*child{b.child(), b.child()}
	for n := range each {
		for s := range sessions {
			id, session := fmt.Sprintf("s%d-q%d", s, n), fmt.Sprint("s", s)
			if rnd.IntN(4) > 0 {
				b.publish(event.TopicRequests, session, "", agentQuery(id, session))
				continue
			}
			rec := &kgo.Record{Topic: b.broker.Config.Topic(event.TopicRequests), Partition: rnd.Int32N(partitions), Value: []byte(agentQuery(id, session))}
			require.NoError(t, anywhere.ProduceSync(t.Context(), rec).FirstErr())
		}
		switch i := rnd.IntN(2); n % 12 {
		case 5:
			routers[i].kill()
			routers[i] = b.child()
		case 11:
			routers[i].signal(syscall.SIGSTOP)
			go func(c *child) {
				time.Sleep(3500 * time.Millisecond)
				_ = c.cmd.Process.Signal(syscall.SIGCONT)
			}(routers[i])
		}
		time.Sleep(100 * time.Millisecond)
	}
	var kinds map[string][]event.DecisionKind
	require.Eventually(t, func() bool {
		kinds = b.kinds()
		return len(kinds) == sessions*each
	}, 60*time.Second, 300*time.Millisecond)
	time.Sleep(4 * time.Second) // what stood still goes on, and says what it still has to say
	kinds = b.kinds()
	admitted := map[string]int{}
	for id, all := range kinds {
		for _, k := range all {
			require.Equal(t, all[0], k, "task %s got different answers: %v", id, all)
		}
		if all[0] == event.Route {
			admitted[id[:2]]++
		}
	}
	for s := range sessions {
		require.Equal(t, shippedQueries, admitted[fmt.Sprint("s", s)])
	}
	for _, r := range routers { // they commit where the next owner begins
		r.signal(syscall.SIGTERM)
		_ = r.cmd.Wait() // its exit code says that it was a signal
	}
	for p := range partitions {
		whole, _ := b.rebuilt(p, ledger.Anchor{}, time.Now().Add(-time.Hour))
		short, _ := b.rebuilt(p, b.checkpoint(p), time.Now().Add(-time.Hour))
		require.Equal(t, whole, short, "what a router rebuilds is what there was, byte for byte")
	}
}

// A router dies when its reservation stands and its decision is not out yet. The next one keeps the reservation, and says what the
// first was about to say.
func TestCrashBetweenReservationAndDecision(t *testing.T) {
	b := newBench(t, 1)
	var hold atomic.Bool
	hold.Store(true)
	reached := make(chan struct{}, 1)
	decisions := b.broker.TopicInfo(event.TopicDecisions).TopicID
	b.broker.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.broker.KeepControl()
		if !hold.Load() || !writesTo(req.(*kmsg.ProduceRequest), decisions) {
			return nil, nil, false
		}
		select {
		case reached <- struct{}{}:
		default:
		}
		return nil, errors.New("the connection breaks"), true
	})
	first := b.child()
	b.publish(event.TopicRequests, "s1", "", agentQuery("q1", "s1"))
	select {
	case <-reached:
	case <-time.After(20 * time.Second):
		t.Fatal("no decision was on its way")
	}
	first.kill()
	require.Empty(t, b.kinds())
	_, s := b.rebuilt(0, ledger.Anchor{}, time.Time{})
	key := budget.SessionKey{Tenant: "support", Session: "s1"}
	require.True(t, s.Open(key, "q1"), "the reservation stands")

	hold.Store(false)
	b.child()
	require.Equal(t, event.Route, b.decisions(1)[0].Kind)
	b.publish(event.TopicRequests, "s1", "", agentQuery("q2", "s1"))
	b.decisions(2)
	_, s = b.rebuilt(0, ledger.Anchor{}, time.Time{})
	u, ok := s.Usage(key)
	require.True(t, ok)
	require.EqualValues(t, 2, u.Queries, "neither lost nor charged twice")
}

func writesTo(r *kmsg.ProduceRequest, topic [16]byte) bool {
	return slices.ContainsFunc(r.Topics, func(t kmsg.ProduceRequestTopic) bool { return t.TopicID == topic })
}

// An Outcome replaces its reservation, and one of a Task that never ran gives it back, whoever owns the partition by then.
func TestOutcomesSettleReservations(t *testing.T) {
	b := newBench(t, 1)
	app := b.start()
	for i := range 3 {
		b.publish(event.TopicRequests, "s1", "", agentQuery(fmt.Sprint("q", i), "s1"))
	}
	b.decisions(3)
	end := func(id string, attempts int, bytes int64) {
		data, err := event.Marshal(event.Outcome{
			TaskID: id, Status: event.Succeeded, Tenant: "support", SessionID: "s1", Class: "agent", Attempts: attempts,
			Stats: event.Stats{ReadBytes: &bytes, ExecMs: new(int64(20))}, SubmittedAt: time.Now(), FinishedAt: time.Now(),
		})
		require.NoError(t, err)
		b.publish(event.TopicOutcomes, id, event.TaskEnded, string(data))
	}
	end("q0", 1, 1000)
	used := func(want budget.Usage) {
		t.Helper()
		require.Eventually(t, func() bool {
			_, s := b.rebuilt(0, ledger.Anchor{}, time.Time{})
			u, _ := s.Usage(budget.SessionKey{Tenant: "support", Session: "s1"})
			return u == want
		}, 10*time.Second, 100*time.Millisecond)
	}
	used(budget.Usage{Queries: 3, Bytes: 1000, WallMs: 20, UnknownBytes: 2})
	require.NoError(t, app.Stop(context.Background()))
	end("q1", 0, 0) // while nobody is there to hear it
	b.start()
	used(budget.Usage{Queries: 2, Bytes: 1000, WallMs: 20, UnknownBytes: 1})
}

// What has no budget writes nothing to the ledger, and does not wait for it: not even when it can't be opened.
func TestNoBudgetPaysNothing(t *testing.T) {
	b := newBench(t, 2)
	b.start()
	for i := range 50 {
		b.publish(event.TopicRequests, fmt.Sprint(i), "", fmt.Sprintf(`{"id":"h%d","sql":"SELECT %d","tenant":"t","session":{"id":"s","class":"human"}}`, i, i))
	}
	b.decisions(50)
	for _, rec := range b.broker.Records(t, event.TopicBudgetState) {
		r, err := ledger.Decode(rec.Value)
		require.NoError(t, err)
		require.Equal(t, ledger.KindLease, r.Kind)
	}
}

func TestBudgetsThatCantBeKeptHoldUpNobodyElse(t *testing.T) {
	b := newBench(t, 1)
	require.NoError(t, b.broker.DeleteTopic(event.TopicBudgetState))
	b.start()
	b.publish(event.TopicRequests, "s1", "", `{"id":"a","sql":"SELECT 1","tenant":"t","session":{"id":"s1","class":"agent"},"timeoutSeconds":2}`)
	b.publish(event.TopicRequests, "s1", event.CancelRequested, `{"taskId":"a"}`)
	b.publish(event.TopicRequests, "h", "", `{"id":"h","sql":"SELECT 1","tenant":"t"}`)
	require.Equal(t, "h", b.decisions(1)[0].TaskID)
	all := byID(b.decisions(3))
	require.Equal(t, "deadline_passed", all["a/1"].Rejection.Code, "it waited as long as it could")
	require.Equal(t, event.PassCancel, all["a/cancel"].Kind, "a cancel stays behind its task")
	require.EqualValues(t, 3, func() int64 {
		var n int64
		require.Eventually(t, func() bool { n = b.broker.Offset(t, "router", event.TopicRequests, 0); return n == 3 }, 5*time.Second, 50*time.Millisecond)
		return n
	}())
}

// The ledger is ours and takes no more records: a Task waits for it until its deadline, and no longer.
func TestADeadlineHoldsWhenTheLedgerTakesNothing(t *testing.T) {
	b := newBench(t, 1)
	app := b.start()
	require.Eventually(t, func() bool { return string(b.get(app, "/v1/budgets")["partitions"]) == "[0]" }, 10*time.Second, 20*time.Millisecond)
	state := b.broker.TopicInfo(event.TopicBudgetState).TopicID
	var away atomic.Bool
	away.Store(true)
	b.broker.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.broker.KeepControl()
		if !away.Load() || !writesTo(req.(*kmsg.ProduceRequest), state) {
			return nil, nil, false
		}
		return nil, errors.New("the connection breaks"), true
	})
	short := `{"id":%q,"sql":"SELECT 1","tenant":"t","session":{"id":"s1","class":"agent"},"timeoutSeconds":2}`
	b.publish(event.TopicRequests, "s1", "", fmt.Sprintf(short, "a"))
	time.Sleep(300 * time.Millisecond) // a is in work when the others come
	b.publish(event.TopicRequests, "s1", "", fmt.Sprintf(short, "b"))
	b.publish(event.TopicRequests, "s1", event.CancelRequested, `{"taskId":"b"}`)
	b.publish(event.TopicRequests, "s1", "", agentQuery("c", "s1"))
	all := byID(b.decisions(3))
	require.Equal(t, "deadline_passed", all["a/1"].Rejection.Code)
	require.Equal(t, "deadline_passed", all["b/1"].Rejection.Code)
	require.Equal(t, event.PassCancel, all["b/cancel"].Kind)
	away.Store(false)
	got := b.decisions(4)
	require.Equal(t, event.Route, byID(got)["c/1"].Kind, "whoever has time left waits")
	require.Len(t, got, 4, "each has one answer")
	require.Eventually(t, func() bool { return b.broker.Offset(t, "router", event.TopicRequests, 0) == 4 }, 10*time.Second, 50*time.Millisecond)
}

// elsewhere is where a session's tasks don't belong, if its producer has no key.
func elsewhere(session string, partitions int) int32 {
	return (stream.PartitionOf(event.TopicRequests, session, partitions) + 1) % int32(partitions)
}

// The partition of a session takes no records: what came elsewhere waits for it, and nobody behind.
func TestPassingOnHoldsUpNobodyElse(t *testing.T) {
	b := newBench(t, 2)
	b.start()
	at := elsewhere("s1", 2)
	away := b.broker.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: event.TopicRequests, Partitions: []int32{1 - at}, Err: kerr.NotEnoughReplicas, Count: -1,
	})
	cl := b.broker.Client(t)
	for _, body := range []string{
		agentQuery("q1", "s1"), `{"id":"h1","sql":"SELECT 1","tenant":"t"}`, agentQuery("q2", "s1"), `{"id":"h2","sql":"SELECT 1","tenant":"t"}`,
	} {
		rec := &kgo.Record{Topic: b.broker.Config.Topic(event.TopicRequests), Partition: at, Value: []byte(body)}
		require.NoError(t, cl.ProduceSync(t.Context(), rec).FirstErr())
	}
	first := byID(b.decisions(2))
	require.Contains(t, first, "h1/1")
	require.Contains(t, first, "h2/1")
	away.Remove()
	require.Len(t, byID(b.decisions(4)), 4)
	var passed []string
	for _, rec := range b.broker.Records(t, event.TopicRequests) {
		var task query.Task
		if require.NoError(t, json.Unmarshal(rec.Value, &task)); rec.Partition != at {
			passed = append(passed, task.ID)
		}
	}
	require.Equal(t, []string{"q1", "q2"}, passed, "in their order")
	require.Eventually(t, func() bool { return b.broker.Offset(t, "router", event.TopicRequests, at) == 4 }, 10*time.Second, 50*time.Millisecond)
}

// A Task that came on the wrong partition and fits its topic only compressed can't be passed on. It is rejected, and holds up nobody.
func TestATaskTooLargeToBePassedOn(t *testing.T) {
	b := newBench(t, 2)
	b.start()
	cl := b.broker.Client(t, kgo.ProducerBatchMaxBytes(8<<20), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	at := elsewhere("s1", 2)
	large := strings.Replace(agentQuery("large", "s1"), "{", `{"note":"`+strings.Repeat("x", 3<<20)+`",`, 1)
	for _, body := range []string{large, agentQuery("small", "s1")} {
		rec := &kgo.Record{Topic: b.broker.Config.Topic(event.TopicRequests), Partition: at, Value: []byte(body)}
		require.NoError(t, cl.ProduceSync(t.Context(), rec).FirstErr())
	}
	all := byID(b.decisions(2))
	require.Equal(t, event.Route, all["small/1"].Kind)
	require.Equal(t, event.Reject, all["large/1"].Kind)
	require.Contains(t, all["large/1"].Rejection.Message, "too large")
	require.Eventually(t, func() bool { return b.broker.Offset(t, "router", event.TopicRequests, at) == 2 }, 10*time.Second, 50*time.Millisecond)
}

// The view of what sessions and tenants have used.
func TestBudgetsOverHTTP(t *testing.T) {
	b := newBench(t, 1)
	app := b.start()
	b.publish(event.TopicRequests, "s1", "", agentQuery("q1", "s1"))
	b.publish(event.TopicRequests, "s2", "", agentQuery("q2", "s2"))
	b.decisions(2)
	got := b.get(app, "/v1/budgets?tenant=support&session=s1")
	require.JSONEq(t, `[0]`, string(got["partitions"]))
	var list []struct {
		Session string       `json:"session"`
		Usage   budget.Usage `json:"usage"`
		Open    int          `json:"open"`
		Left    struct {
			Queries struct {
				Value float64 `json:"value"`
			} `json:"queries"`
		} `json:"left"`
	}
	require.NoError(t, json.Unmarshal(got["sessions"], &list))
	require.Len(t, list, 1)
	require.Equal(t, "s1", list[0].Session)
	require.EqualValues(t, 1, list[0].Usage.Queries)
	require.Equal(t, 1, list[0].Open)
	require.InDelta(t, shippedQueries-1, list[0].Left.Queries.Value, 0)
	require.JSONEq(t, `[]`, string(b.get(app, "/v1/budgets?tenant=nobody")["sessions"]))
}

func (b *bench) get(app *router.App, path string) (out map[string]json.RawMessage) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, "http://"+app.HTTPAddr().String()+path, http.NoBody)
	require.NoError(b.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(b.t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(b.t, http.StatusOK, resp.StatusCode)
	require.NoError(b.t, json.NewDecoder(resp.Body).Decode(&out))
	return out
}

// An explanation looks at the session's account, and charges nothing.
func TestExplainWithinABudget(t *testing.T) {
	b := newBench(t, 1)
	b.withBudgets("  agent_session: {max_queries: 1}\n")
	app := b.start()
	explain := func() string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+app.HTTPAddr().String()+"/v1/explain", strings.NewReader(agentQuery("", "s1")))
		require.NoError(t, err)
		req.Header.Set("Accept", "text/plain")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(text)
	}
	require.Eventually(t, func() bool { return string(b.get(app, "/v1/budgets")["partitions"]) == "[0]" }, 10*time.Second, 20*time.Millisecond)
	for range 3 {
		require.NotContains(t, explain(), "of its budget")
	}
	b.publish(event.TopicRequests, "s1", "", agentQuery("q1", "s1"))
	require.Equal(t, event.Route, b.decisions(1)[0].Kind)
	require.Contains(t, explain(), "of its budget")
}
