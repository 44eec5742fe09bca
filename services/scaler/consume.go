package scaler

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/services/scaler/demand"
	"github.com/pointsman/pointsman/services/scaler/follow"
)

// stages are what is followed, and in which order it is caught up with: ends before beginnings, so that what has ended
// long ago is never taken for open.
func stages(lookBack time.Duration) [][]follow.Source {
	return [][]follow.Source{
		{{Topic: event.TopicSignals}, {Topic: event.TopicOutcomes, LookBack: lookBack}},
		{{Topic: event.TopicDecisions, LookBack: lookBack}, {Topic: event.TopicAttempts, LookBack: lookBack}},
	}
}

// fold takes records in.
type fold struct {
	kafka   stream.Config
	demand  *demand.Demand
	facts   *facts
	skipped func(topic string, class stream.FaultClass)
}

// record takes one record. One that can't be read is counted and passed over: the consumers that act on the topic
// dead-letter it.
func (f *fold) record(rec *kgo.Record) {
	topic := f.kafka.Name(rec.Topic)
	if err := f.take(topic, rec); err != nil {
		f.skipped(topic, stream.FaultOf(err))
	}
}

func (f *fold) take(topic string, rec *kgo.Record) error {
	env, err := stream.Decode(rec, stream.RulesFor(topic))
	if err != nil || env.Tombstone {
		return err
	}
	at := rec.Timestamp
	if now := time.Now(); at.After(now) {
		at = now // a producer's clock that is ahead must not make a pool look busy in the future
	}
	switch topic {
	case event.TopicDecisions:
		var d event.RouteDecision
		if err := d.UnmarshalJSON(env.Data); err != nil {
			return err
		}
		f.demand.Decision(d, at)
	case event.TopicAttempts:
		var a event.Attempt
		if err := a.UnmarshalJSON(env.Data); err != nil {
			return err
		}
		f.demand.Attempt(a, at)
	case event.TopicOutcomes:
		var o event.Outcome
		if err := o.UnmarshalJSON(env.Data); err != nil {
			return err
		}
		f.demand.Outcome(o, at)
	case event.TopicSignals:
		var o signal.Observation
		if err := json.Unmarshal(env.Data, &o); err != nil {
			return err
		}
		f.facts.observe(o)
	}
	return nil
}

// facts are what others, and we ourselves before a restart, have published of the clusters.
type facts struct {
	mu       sync.Mutex
	snapshot signal.Snapshot
	own      map[string]signal.Value // the wake times that scalers have measured, by cluster
}

func newFacts() *facts { return &facts{snapshot: signal.Snapshot{}, own: map[string]signal.Value{}} }

func (f *facts) observe(o signal.Observation) {
	if o.Cluster == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.snapshot.Merge(o)
	if v := o.Values[signal.WakeMs]; o.Source == group && v.State() != signal.Absent {
		f.own[o.Cluster] = v
	}
}

// queueAge is how old a reading of the queue may be.
const queueAge = 10 * time.Second

func (f *facts) queued(cluster string, now time.Time) signal.Value {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snapshot.Get(cluster, signal.Queued, now, queueAge)
}

// wakeBefore is the wake time that was known before this process.
func (f *facts) wakeBefore(cluster string) (w wakeTime) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.own[cluster]
	w.ms, w.known = v.Last()
	w.at = v.At
	return w
}

// member is a partition of decisions that the group has given to this instance. Its records are folded by the follower,
// which sees all partitions; what the group adds is who acts, and a place in the log that others can see.
type member struct {
	part *stream.Partition
	lead func(bool)
}

// assign makes the owner of partition 0 the one that acts.
func (a *App) assign(_ context.Context, p *stream.Partition) (stream.Processor, error) {
	m := &member{part: p, lead: func(bool) {}}
	if p.ID == 0 {
		m.lead = a.lead
	}
	m.lead(true)
	return m, nil
}

// Process has nothing to wait for.
func (m *member) Process(_ context.Context, recs []*kgo.Record) error {
	m.part.Done(recs...)
	return nil
}

// Close ends the acting.
func (m *member) Close() { m.lead(false) }
