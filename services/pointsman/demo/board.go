package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/loadgen/workload"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
)

// board is what the topics say of the demo's Tasks.
type board struct {
	mu   sync.Mutex
	kind map[string]workload.Kind // of every Task of the demo

	decided  map[string]event.RouteDecision // the newest decision of each Task
	running  map[string]string              // attempt -> cluster
	ended    map[string]event.Outcome
	attempts map[string]bool   // that have ended, by id
	raw      map[string][]byte // the Outcome as it stands in the log, to find one that differs
	conflict int
	rescued  int
	sent     bool
	last     string // what just happened, for the live view
	telling  *event.RouteDecision

	done     chan struct{}
	doneOnce sync.Once
}

func newBoard(arrivals []workload.Arrival) *board {
	b := &board{
		kind: make(map[string]workload.Kind, len(arrivals)), decided: map[string]event.RouteDecision{}, running: map[string]string{},
		attempts: map[string]bool{},
		ended:    map[string]event.Outcome{}, raw: map[string][]byte{}, done: make(chan struct{}),
	}
	for _, a := range arrivals {
		b.kind[a.Task.ID] = a.Kind
	}
	return b
}

// follow reads decisions, attempts and outcomes until the context ends.
func (b *board) follow(ctx context.Context, cfg stream.Config, log *slog.Logger) error {
	cfg.ClientID = "pointsman-demo"
	cl, err := stream.NewClient(cfg, stream.Deps{Log: log}, "follower",
		kgo.ConsumeTopics(cfg.Topic(event.TopicDecisions), cfg.Topic(event.TopicAttempts), cfg.Topic(event.TopicOutcomes)),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer cl.Close()
	for {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		for it := fetches.RecordIter(); !it.Done(); {
			rec := it.Next()
			b.take(cfg.Name(rec.Topic), rec)
		}
	}
}

func (b *board) take(topic string, rec *kgo.Record) {
	env, err := stream.Decode(rec, stream.RulesFor(topic))
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch topic {
	case event.TopicDecisions:
		var d event.RouteDecision
		if json.Unmarshal(env.Data, &d) == nil && b.kind[d.TaskID] != "" && d.Kind != event.PassCancel {
			b.decision(d)
		}
	case event.TopicAttempts:
		var a event.Attempt
		if json.Unmarshal(env.Data, &a) == nil && b.kind[a.TaskID] != "" {
			b.attempt(a)
		}
	case event.TopicOutcomes:
		var o event.Outcome
		if json.Unmarshal(env.Data, &o) == nil && b.kind[o.TaskID] != "" {
			b.outcome(o, env.Data)
		}
	}
}

func (b *board) decision(d event.RouteDecision) {
	if have, ok := b.decided[d.TaskID]; ok && have.Attempt >= d.Attempt {
		return
	}
	b.decided[d.TaskID] = d
	// The decision worth telling at the end is one where the reason is not the price.
	for _, r := range d.Reasons {
		if d.Attempt == 1 && (r.Code == "history_memory_kill" || (b.telling == nil && r.Code == "queue_wait_over_sla")) {
			told := d
			b.telling = &told
		}
	}
}

func (b *board) attempt(a event.Attempt) {
	switch a.State {
	case "running", "submitting", "delivering":
		b.running[a.AttemptID] = a.Cluster
	case "succeeded":
		delete(b.running, a.AttemptID)
		b.attempts[a.AttemptID] = true
		if a.Number > 1 {
			b.rescued++
		}
	case "failed", "timed_out", "overrun", "cancelled", "lost":
		delete(b.running, a.AttemptID)
		b.attempts[a.AttemptID] = true
		if a.Failure != nil && a.Remedy != event.RemedyFail {
			b.last = a.AttemptID + " on " + a.Cluster + ": " + a.Failure.Class + ", next: " + string(a.Remedy)
		}
	}
}

func (b *board) outcome(o event.Outcome, raw []byte) {
	if have, ok := b.raw[o.TaskID]; ok {
		if !bytes.Equal(have, raw) {
			b.conflict++
		}
		return
	}
	b.raw[o.TaskID] = bytes.Clone(raw)
	b.ended[o.TaskID] = o
	if b.sent && len(b.ended) == len(b.kind) {
		b.doneOnce.Do(func() { close(b.done) })
	}
}

// allSent says that everything is published; from here on the last Outcome ends the wait.
func (b *board) allSent() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = true
	if len(b.ended) == len(b.kind) {
		b.doneOnce.Do(func() { close(b.done) })
	}
}

// note shows an event of the demo itself.
func (b *board) note(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = text
}
