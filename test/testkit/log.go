package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
)

// followed are the topics whose records a Log keeps. Signals are many and say nothing about Tasks.
var followed = []string{
	event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes, event.TopicAttemptState, event.TopicDeadLetter,
}

// Log is what stands in the topics, as any outside reader sees it.
type Log struct {
	t     testing.TB
	kafka stream.Config

	mu       sync.Mutex
	records  map[string][]*kgo.Record // by topic, in the order of each partition
	next     map[place]int64          // the position after what was read, transaction markers included
	outcomes map[string][]*kgo.Record // by Task, first one first
	watch    func(topic string, rec *kgo.Record)
	changed  chan struct{} // closed and made anew with every record
}

type place struct {
	topic     string
	partition int32
}

// follow reads all topics from their start until the test ends.
func follow(t testing.TB, cfg stream.Config) *Log {
	l := &Log{
		t: t, kafka: cfg, records: map[string][]*kgo.Record{}, next: map[place]int64{}, outcomes: map[string][]*kgo.Record{}, changed: make(chan struct{}),
	}
	cfg.ClientID = "test-log"
	topics := make([]string, len(followed))
	for i, topic := range followed {
		topics[i] = cfg.Topic(topic)
	}
	start := kgo.NewOffset().AtStart()
	client, err := stream.NewClient(cfg, stream.Deps{}, "reader", kgo.ConsumeTopics(topics...), kgo.ConsumeStartOffset(start), kgo.ConsumeResetOffset(start),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(250*time.Millisecond))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			fetches := client.PollFetches(ctx)
			for it := fetches.RecordIter(); !it.Done(); {
				l.take(it.Next())
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		client.Close()
		<-done
	})
	return l
}

func (l *Log) take(rec *kgo.Record) {
	topic := l.kafka.Name(rec.Topic)
	marker := rec.Attrs.IsControl()
	l.mu.Lock()
	l.next[place{topic, rec.Partition}] = rec.Offset + 1
	if !marker {
		l.records[topic] = append(l.records[topic], rec)
	}
	if topic == event.TopicOutcomes && !marker {
		l.outcomes[string(rec.Key)] = append(l.outcomes[string(rec.Key)], rec)
	}
	close(l.changed)
	l.changed = make(chan struct{})
	watch := l.watch
	l.mu.Unlock()
	if watch != nil && !marker {
		watch(topic, rec)
	}
}

// Watch calls f with every record from now on, on the reader's goroutine; nil ends that.
func (l *Log) Watch(f func(topic string, rec *kgo.Record)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch = f
}

// Records are the records of a topic so far.
func (l *Log) Records(topic string) []*kgo.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.records[topic])
}

// wait waits until ok says so, and fails the test with what it was waiting for if that takes too long.
func (l *Log) wait(within time.Duration, what string, ok func() bool) {
	l.t.Helper()
	late := time.After(within)
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-late:
			require.FailNow(l.t, "not within "+within.String()+": "+what)
		}
	}
}

// Outcome waits for the Outcome of a Task.
func (l *Log) Outcome(id string, within time.Duration) event.Outcome {
	l.t.Helper()
	var o event.Outcome
	l.wait(within, "the outcome of "+id, func() bool {
		l.mu.Lock()
		recs := l.outcomes[id]
		l.mu.Unlock()
		return len(recs) > 0 && json.Unmarshal(recs[0].Value, &o) == nil
	})
	return o
}

// Ended waits until every Task has an Outcome; what is missing then is named and fails the test.
func (l *Log) Ended(ids []string, within time.Duration) {
	l.t.Helper()
	missing := func() (out []string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, id := range ids {
			if len(l.outcomes[id]) == 0 {
				out = append(out, id)
			}
		}
		return out
	}
	late := time.Now().Add(within)
	for time.Now().Before(late) && len(missing()) > 0 {
		time.Sleep(100 * time.Millisecond)
	}
	lost := missing()
	for _, id := range lost[:min(len(lost), 3)] {
		l.t.Logf("what the topics say of %s:\n%s", id, l.Story(id))
	}
	require.Empty(l.t, lost, "%d of %d tasks have no outcome after %s", len(lost), len(ids), within)
}

// Decisions are the decisions of a Task in the order of the log, repeats included.
func (l *Log) Decisions(id string) []event.RouteDecision {
	return of[event.RouteDecision](l, event.TopicDecisions, id)
}

// Attempts are the changes of a Task's attempts in the order of the log.
func (l *Log) Attempts(id string) []event.Attempt {
	return of[event.Attempt](l, event.TopicAttempts, id)
}

func of[T any](l *Log, topic, key string) (out []T) {
	for _, rec := range l.Records(topic) {
		if string(rec.Key) != key {
			continue
		}
		var v T
		env, err := stream.Decode(rec, stream.RulesFor(topic))
		if err == nil && json.Unmarshal(env.Data, &v) == nil {
			out = append(out, v)
		}
	}
	return out
}

// Attempt waits for a change of a Task's attempt to a state.
func (l *Log) Attempt(id string, number int, state string, within time.Duration) event.Attempt {
	l.t.Helper()
	var found event.Attempt
	l.wait(within, fmt.Sprintf("attempt %s to be %s", query.AttemptID(id, number), state), func() bool {
		for _, a := range l.Attempts(id) {
			if a.Number == number && a.State == state {
				found = a
				return true
			}
		}
		return false
	})
	return found
}

// Header is a header of a record, the last one of that name.
func Header(rec *kgo.Record, name string) (value string) {
	for _, h := range rec.Headers {
		if h.Key == name {
			value = string(h.Value)
		}
	}
	return value
}

// DeadLetters waits until a record of a topic is among the dead letters, and returns every entry for it.
func (l *Log) DeadLetters(topic string, partition int32, offset int64, within time.Duration) (out []*kgo.Record) {
	l.t.Helper()
	l.wait(within, fmt.Sprintf("%s[%d]@%d among the dead letters", topic, partition, offset), func() bool {
		out = nil
		for _, rec := range l.Records(event.TopicDeadLetter) {
			if Header(rec, stream.DLQTopic) == topic && Header(rec, stream.DLQPartition) == fmt.Sprint(partition) && Header(rec, stream.DLQOffset) == fmt.Sprint(offset) {
				out = append(out, rec)
			}
		}
		return len(out) > 0
	})
	return out
}

// CatchUp waits until everything that stands in the topics now has been read.
func (l *Log) CatchUp(within time.Duration) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	client, err := stream.NewClient(l.kafka, stream.Deps{}, "test-ends")
	require.NoError(l.t, err)
	defer client.Close()
	for _, topic := range followed {
		ends, err := kadm.NewClient(client).ListCommittedOffsets(ctx, l.kafka.Topic(topic))
		require.NoError(l.t, err)
		ends.Each(func(end kadm.ListedOffset) {
			require.NoError(l.t, end.Err)
			l.wait(within, fmt.Sprintf("%s[%d] to be read up to %d", topic, end.Partition, end.Offset), func() bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.next[place{topic, end.Partition}] >= end.Offset
			})
		})
	}
}

// Story tells what the topics say of a Task, for the log of a failed test.
func (l *Log) Story(id string) (story string) {
	for _, topic := range followed {
		for _, rec := range l.Records(topic) {
			if !Concerns(rec, id) {
				continue
			}
			value := string(rec.Value)
			story += fmt.Sprintf("  %s %s[%d]@%d %s %s\n", rec.Timestamp.UTC().Format(stamp), topic, rec.Partition, rec.Offset,
				Header(rec, "ce_type"), value[:min(len(value), 600)])
		}
	}
	return story
}

// Concerns says whether a record is about a Task, or about one of its attempts.
func Concerns(rec *kgo.Record, id string) bool {
	key := string(rec.Key)
	return key == id || strings.HasPrefix(key, id+"/") || Header(rec, "ce_subject") == id
}
