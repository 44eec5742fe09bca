package spark

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/spark/connect"
	"github.com/pointsman/pointsman/pkg/signal"
)

const source = "engine"

// Canary runs the configured statement to its end, or stops it when ctx ends.
func (e *Engine) Canary(ctx context.Context) error {
	rows, err := e.submit(ctx, engine.Query{SQL: e.cfg.Canary})
	if err != nil {
		return fmt.Errorf("running the canary: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("running the canary: %w", err)
	}
	return nil
}

// Observe asks whether the server answers. Spark Connect tells nobody what else runs there: that is absent.
func (e *Engine) Observe(ctx context.Context) (signal.Observation, error) {
	o := signal.Observation{Cluster: e.cfg.Name, Source: source, Values: map[signal.Name]signal.Value{}}
	ctx, cancel := e.asked(ctx, answerWithin)
	defer cancel()
	err := e.version(ctx)
	if f, told := faultOf(err); told && f.gone() {
		e.mu.Lock()
		e.health = "" // the server has closed a session that nobody used for long
		e.mu.Unlock()
		err = e.version(ctx)
	}
	o.At = time.Now().UTC()
	o.Values[signal.Healthy] = signal.OfFlag(err == nil, source, o.At)
	if err != nil {
		return o, fmt.Errorf("observing the engine: %w", e.wrap(err))
	}
	return o, nil
}

// version asks for the server's version, in a session that is kept for such questions.
func (e *Engine) version(ctx context.Context) error {
	e.mu.Lock()
	if e.health == "" {
		e.health = uuid.NewString()
	}
	session := e.health
	e.mu.Unlock()
	_, err := e.client().Analyze(ctx, &connect.AnalyzePlanRequest{
		SessionId: session, UserContext: e.user(), ClientType: new(clientType),
		Analyze: &connect.AnalyzePlanRequest_SparkVersion_{SparkVersion: &connect.AnalyzePlanRequest_SparkVersion{}},
	})
	return err
}
