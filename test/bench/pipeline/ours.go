package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/services/executor"
)

// startOurs starts a router and an executor whose engines only take the time: what is measured is the pipeline's own.
func startOurs(ctx context.Context, g *ground, db history.Config) (*side, error) {
	s, err := newSide(ctx, g, "ours")
	if err != nil {
		return nil, err
	}
	quiet, err := s.signals(ctx)
	if err != nil {
		return nil, err
	}
	stopRouter, err := startRouter(ctx, g, s.topics, db)
	if err != nil {
		return nil, errors.Join(err, quiet())
	}
	stopExecutor, err := startExecutor(ctx, g, s.topics, s.watch)
	if err != nil {
		return nil, errors.Join(err, stopRouter(), quiet())
	}
	s.stop = func() error { return errors.Join(stopRouter(), stopExecutor(), quiet()) }
	return s, nil
}

func startExecutor(ctx context.Context, g *ground, t topics, watch *stopwatch) (stop func() error, err error) {
	tel, err := g.telemetry(ctx)
	if err != nil {
		return nil, err
	}
	cfg := executor.Default()
	cfg.Telemetry.Admin.Address = ""
	cfg.Kafka = t.of("executor")
	cfg.Results.Folder = filepath.Join(g.dir, "results")
	opts := executor.Options{Engines: map[string]engine.Engine{}, MaxBytes: topicadmin.MaxBytes(g.specs)}
	for _, name := range pools {
		e := executor.EngineConfig{}
		e.SetDefaults()
		// More slots than can be taken: no Task waits for another.
		e.Name, e.URL, e.Slots = name, "http://127.0.0.1:1", 256
		cfg.Engines = append(cfg.Engines, e)
		opts.Engines[name] = recorder{watch}
	}
	if watch != nil {
		opts.Hooks.At = func(_ context.Context, step executor.Step, attemptID string) {
			if step == executor.StepPlaced {
				watch.decided(taskOf(attemptID))
			}
		}
	}
	app, err := executor.New(ctx, cfg, tel.For("executor"), opts)
	if err != nil {
		return nil, err
	}
	if err := app.Start(ctx); err != nil {
		return nil, errors.Join(err, app.Stop(context.WithoutCancel(ctx)))
	}
	return func() error {
		ctx := context.WithoutCancel(ctx)
		return errors.Join(app.Err(), app.Stop(ctx), tel.Stop(ctx))
	}, nil
}

// recordsOf takes what our side wrote, for the plain chain to carry.
func (s *side) recordsOf(ctx context.Context, n int) (decisions, claims []template, err error) {
	if decisions, err = s.templates(ctx, event.TopicDecisions, n, nil); err != nil {
		return nil, nil, err
	}
	claims, err = s.templates(ctx, event.TopicAttemptState, min(n, 100), func(r *kgo.Record) bool {
		return strings.Contains(string(r.Value), `"kind":"claim"`)
	})
	return decisions, claims, err
}

func taskOf(attemptID string) string {
	id, _, _ := strings.Cut(attemptID, "/")
	return id
}

// recorder is an engine that takes the time of a submission and answers with one row at once.
type recorder struct{ watch *stopwatch }

// Submit takes the time.
func (r recorder) Submit(_ context.Context, q engine.Query) (engine.Rows, error) {
	if r.watch != nil {
		r.watch.arrive(taskOf(q.ID))
	}
	return &oneRow{}, nil
}

// Find knows nothing: no query is ever left open.
func (recorder) Find(context.Context, string) (engine.Run, error) {
	return engine.Run{State: engine.RunUnknown}, nil
}

// Kill has nothing to end.
func (recorder) Kill(context.Context, string) (bool, error) { return false, nil }

// Canary is always well.
func (recorder) Canary(context.Context) error { return nil }

// Observe says nothing.
func (recorder) Observe(context.Context) (signal.Observation, error) {
	return signal.Observation{}, nil
}

// Close has nothing to give back.
func (recorder) Close() error { return nil }

// oneRow is a result of one number.
type oneRow struct{ read bool }

// Columns is the number's.
func (*oneRow) Columns() []event.Column { return []event.Column{{Name: "n", Type: "UInt64"}} }

// Next is true once.
func (r *oneRow) Next() bool {
	first := !r.read
	r.read = true
	return first
}

// Values is the number.
func (*oneRow) Values() ([]any, error) { return []any{uint64(1)}, nil }

// Err is nil.
func (*oneRow) Err() error { return nil }

// Close does nothing.
func (*oneRow) Close() error { return nil }

// Stats are what an engine would say.
func (*oneRow) Stats() event.Stats {
	return event.Stats{ReadRows: new(int64(1)), ReadBytes: new(int64(8)), PeakMemoryBytes: new(int64(1 << 20))}
}
