package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/embedded/broker"
	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/executor"
)

// world is a broker and an engine, on which executors are measured one after the other.
type world struct {
	dir     string
	brokers []string
	engine  *chdb.Engine
	specs   []topicadmin.Spec
	closers []func() error
}

func newWorld(ctx context.Context) (_ *world, err error) {
	w := &world{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "pointsman-bench-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	w.closers = append(w.closers, func() error { return os.RemoveAll(w.dir) })
	if w.specs, err = topicadmin.Specs(); err != nil {
		return nil, err
	}
	cfg := broker.Default()
	cfg.Addr = "127.0.0.1:0"
	b, err := broker.Start(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("starting the broker: %w", err)
	}
	w.brokers = b.Addrs()
	w.closers = append(w.closers, func() error { return b.Stop(context.WithoutCancel(ctx)) })
	w.engine, err = chdb.Start(ctx, chdb.Config{Name: "bench", DataDir: filepath.Join(w.dir, "engine"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("starting the engine: %w", err)
	}
	w.closers = append(w.closers, func() error { return w.engine.Stop(context.WithoutCancel(ctx)) })
	return w, nil
}

func (w *world) close() error {
	var errs []error
	for _, f := range slices.Backward(w.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// bench is an executor with topics of its own.
type bench struct {
	kafka    stream.Config
	app      *executor.App
	tel      *telemetry.Telemetry
	producer *stream.Producer
	reader   *kgo.Client
	results  string
	prefix   string
	done     func()

	mu       sync.Mutex
	outcomes map[string]event.Outcome
	came     chan struct{} // one for each Outcome
	failed   error
}

const cluster = "bench"

// start runs an executor. given replaces the embedded engine.
func (w *world) start(ctx context.Context, prefix string, slots int, given engine.Engine, hooks executor.Hooks) (_ *bench, err error) {
	b := &bench{outcomes: map[string]event.Outcome{}, came: make(chan struct{}, 1<<16), results: filepath.Join(w.dir, prefix), prefix: prefix}
	b.kafka = stream.DefaultConfig()
	b.kafka.Brokers, b.kafka.Prefix = w.brokers, prefix+"."
	if _, err := topicadmin.Apply(ctx, b.kafka, stream.Deps{}, w.specs, topicadmin.Options{}); err != nil {
		return nil, fmt.Errorf("making the topics: %w", err)
	}
	cfg := executor.Default()
	cfg.Telemetry.Admin.Address = ""
	cfg.Kafka, cfg.Results.Folder, cfg.Results.Max = b.kafka, b.results, 8<<30
	cfg.Engines = []executor.EngineConfig{{Name: cluster, Kind: "clickhouse", URL: w.engine.URL(), User: "default", Slots: slots}}
	var engines map[string]engine.Engine
	if given != nil {
		engines = map[string]engine.Engine{cluster: given}
	}
	b.tel, err = telemetry.New(ctx, cfg.Telemetry, telemetry.Options{Service: "executor", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if b.app, err = executor.New(ctx, cfg, b.tel, executor.Options{Engines: engines, Hooks: hooks}); err != nil {
		return nil, err
	}
	if err = b.app.Start(ctx); err != nil {
		return nil, err
	}
	if b.producer, err = stream.NewProducer(b.kafka, stream.Deps{}, "router"); err != nil {
		return nil, err
	}
	b.reader, err = kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.ConsumeTopics(b.kafka.Topic(event.TopicOutcomes)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { b.follow(following) })
	b.done = func() {
		stop()
		wg.Wait()
	}
	return b, nil
}

func (b *bench) follow(ctx context.Context) {
	for ctx.Err() == nil {
		b.reader.PollFetches(ctx).EachRecord(func(rec *kgo.Record) {
			var o event.Outcome
			err := json.Unmarshal(rec.Value, &o)
			b.mu.Lock()
			defer b.mu.Unlock()
			if err != nil {
				b.failed = err
			}
			if _, again := b.outcomes[o.TaskID]; !again {
				b.outcomes[o.TaskID] = o
				b.came <- struct{}{}
			}
		})
	}
}

func (b *bench) stop() {
	b.done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = b.app.Stop(ctx)
	_ = b.tel.Stop(ctx)
	b.producer.Close()
	b.reader.Close()
}

// decide publishes the decision on a Task.
func (b *bench) decide(ctx context.Context, id, sql string) error {
	now := time.Now().UTC().Truncate(time.Millisecond)
	sla, timeout := 900.0, 900.0
	task := &query.Task{ID: id, SQL: sql, Tenant: "bench", User: "bench", SubmittedAt: &now, SLASeconds: &sla, TimeoutSeconds: &timeout}
	d := event.RouteDecision{
		DecisionID: query.AttemptID(id, 1), TaskID: id, Attempt: 1, Kind: event.Route, Task: task, TaskDigest: task.Digest(), DecidedAt: now,
		Deadline: now.Add(15 * time.Minute), Target: event.Target{Engine: "clickhouse", Cluster: cluster, Queue: "default"},
		Reasons: []event.Reason{{Code: "meets_sla"}}, Fingerprint: "f", ReadOnly: true,
	}
	data, err := event.Marshal(d)
	if err != nil {
		return err
	}
	return b.producer.Send(ctx, stream.Message{Topic: event.TopicDecisions, Key: id, Type: d.Type(), ID: d.DecisionID, Time: d.DecidedAt, Data: data})
}

// await waits for so many Outcomes more, all of which must be successes.
func (b *bench) await(ctx context.Context, n int) error {
	for range n {
		select {
		case <-b.came:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, o := range b.outcomes {
		if o.Status != event.Succeeded {
			return fmt.Errorf("%s ended as %s: %+v", id, o.Status, o.Failure)
		}
	}
	return b.failed
}
