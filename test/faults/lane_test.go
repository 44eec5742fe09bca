package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
)

// The clusters of every lane: faults happen on the way to the first. Both are the same server.
const (
	mainCluster  = "main"
	spareCluster = "spare"
)

// lane is a world of its own in which one Task at a time has its fault: a broker, a ledger, an executor, a router that sends every
// Task that failed to the spare cluster, and the ways to an engine that all lanes share.
type lane struct {
	t        testing.TB
	number   int
	engine   *target
	log      *slog.Logger
	broker   *streamtest.Broker
	producer *stream.Producer
	wire     *wire
	results  string
	p        *proc
	retired  sync.WaitGroup

	mu       sync.Mutex
	outcomes map[string]map[string]event.Outcome // task, bytes
	changes  map[string][]event.Attempt          // attempt
	routed   map[string]bool
}

func newLane(t testing.TB, number int, e *target, log *slog.Logger) *lane {
	t.Helper()
	b := streamtest.Start(t)
	for _, topic := range []string{event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes, event.TopicAttemptState} {
		b.Topic(t, topic, 1, nil)
	}
	b.Topic(t, event.TopicSignals, 1, map[string]string{"cleanup.policy": "compact"})
	b.Topic(t, event.TopicDeadLetter, 1, nil)
	b.Deps.Log = log
	producer, err := stream.NewProducer(b.Config, b.Deps, "router")
	require.NoError(t, err)
	t.Cleanup(producer.Close)
	l := &lane{
		t: t, number: number, engine: e, log: log, broker: b, producer: producer, wire: &wire{seen: map[string]map[string]int{}}, results: t.TempDir(),
		outcomes: map[string]map[string]event.Outcome{}, changes: map[string][]event.Attempt{}, routed: map[string]bool{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var follow sync.WaitGroup
	cl := b.Client(t, kgo.ConsumeTopics(event.TopicAttempts, event.TopicOutcomes), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	follow.Go(func() { l.follow(ctx, cl) })
	t.Cleanup(func() {
		cancel()
		follow.Wait()
	})
	t.Cleanup(func() {
		l.retire(l.p)
		l.retired.Wait()
	})
	l.p = l.start()
	return l
}

// follow keeps what is published, and answers reroutes.
func (l *lane) follow(ctx context.Context, cl *kgo.Client) {
	for {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			if rec.Topic == event.TopicOutcomes {
				var o event.Outcome
				if err := json.Unmarshal(rec.Value, &o); err != nil {
					l.t.Errorf("an Outcome that can't be read: %v", err)
					return
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				if l.outcomes[o.TaskID] == nil {
					l.outcomes[o.TaskID] = map[string]event.Outcome{}
				}
				l.outcomes[o.TaskID][whole(rec)] = o
				return
			}
			var a event.Attempt
			if err := json.Unmarshal(rec.Value, &a); err != nil {
				l.t.Errorf("an attempt's change that can't be read: %v", err)
				return
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.changes[a.AttemptID] = append(l.changes[a.AttemptID], a)
			if a.Remedy == event.RemedyReroute && !l.routed[a.AttemptID] {
				l.routed[a.AttemptID] = true
				wait := 50*time.Millisecond + l.engine.restarts/100 // long enough that no Task runs out of attempts while its engine starts
				time.AfterFunc(time.Duration(min(a.Number-1, 8))*wait, func() { l.reroute(a) })
			}
		})
	}
}

// reroute sends a Task to the spare cluster, and where it was over a limit, without that.
func (l *lane) reroute(a event.Attempt) {
	d := *a.Decision
	d.Attempt, d.DecisionID = a.Number+1, query.AttemptID(a.TaskID, a.Number+1)
	d.Cluster, d.Resource, d.Fallbacks = spareCluster, "", nil
	l.decide(d)
}

func whole(rec *kgo.Record) string {
	var s strings.Builder
	s.Write(rec.Value)
	for _, h := range rec.Headers {
		if h.Key != "traceparent" && h.Key != "tracestate" {
			fmt.Fprintf(&s, "\n%s=%s", h.Key, h.Value)
		}
	}
	return s.String()
}

func (l *lane) decide(d event.RouteDecision) {
	data, err := event.Marshal(d)
	if err == nil {
		err = l.producer.Send(context.Background(), stream.Message{
			Topic: event.TopicDecisions, Key: d.TaskID, Type: d.Type(), ID: d.DecisionID, Time: d.DecidedAt, Data: data,
		})
	}
	if err != nil {
		l.log.Warn("deciding", "error", err.Error())
	}
}

// task makes a Task's first decision.
func (l *lane) task(id, sql, resource string, write bool, left time.Duration) event.RouteDecision {
	now := time.Now().UTC().Truncate(time.Millisecond)
	sla, timeout := 600.0, left.Seconds()
	task := &query.Task{ID: id, SQL: sql, Tenant: "tenant_a", User: "u", SubmittedAt: &now, SLASeconds: &sla, TimeoutSeconds: &timeout}
	return event.RouteDecision{
		DecisionID: query.AttemptID(id, 1), TaskID: id, Attempt: 1, Kind: event.Route, Task: task, TaskDigest: task.Digest(),
		DecidedAt: now, Deadline: now.Add(left), Target: event.Target{Engine: l.engine.kind, Cluster: mainCluster, Queue: "default", Resource: resource},
		Reasons: []event.Reason{{Code: "meets_sla"}}, Fingerprint: "f", ReadOnly: !write,
	}
}

func cancelOf(id string) event.RouteDecision {
	now := time.Now().UTC()
	return event.RouteDecision{
		DecisionID: id + "/cancel", TaskID: id, Kind: event.PassCancel, DecidedAt: now, Deadline: now.Add(time.Hour),
		Cancel: &event.Cancel{TaskID: id, Tenant: "tenant_a", User: "u", Reason: "changed my mind"},
	}
}

// outcomesOf are the different Outcomes of a Task.
func (l *lane) outcomesOf(id string) (out []event.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.outcomes[id] {
		out = append(out, o)
	}
	return out
}

func (l *lane) was(attempt, state string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.changes[attempt] {
		if a.State == state {
			return true
		}
	}
	return false
}

// failures are the classes of a Task's attempts that failed, in order.
func (l *lane) failures(id string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := 1; n < 30; n++ {
		for _, a := range l.changes[query.AttemptID(id, n)] {
			if a.Failure != nil {
				out = append(out, a.Failure.Class)
				break
			}
		}
	}
	return out
}

// await waits for something, and says whether it came.
func await(bound time.Duration, is func() bool) bool {
	for end := time.Now().Add(bound); ; time.Sleep(3 * time.Millisecond) {
		if is() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// idle waits until everything that was decided is committed: nothing is lost, and nothing hangs on.
func (l *lane) idle(bound time.Duration) bool {
	n := l.broker.PartitionInfo(event.TopicDecisions, 0).HighWatermark
	return await(bound, func() bool { return l.broker.Offset(l.t, "executor", event.TopicDecisions, 0) == n })
}
