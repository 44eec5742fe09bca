package flightsql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

const source = "engine"

// Find looks an attempt id up where the server can be asked for it. Elsewhere only what this client runs itself is known.
func (e *Engine) Find(ctx context.Context, id string) (engine.Run, error) {
	var found Statement
	known, err := e.ask(ctx, ActionFind, wire.Name(id), &found)
	if err != nil {
		return engine.Run{}, fmt.Errorf("looking up a query: %w", err)
	}
	if !known {
		if own, ok := e.mine.Load(id); ok && own.(*rows).guard.WasSent() { // before that its connection is still being made
			return engine.Run{State: engine.RunActive, Elapsed: time.Since(own.(*rows).began)}, nil
		}
		return engine.Run{State: engine.RunUnknown}, nil
	}
	if !found.Running {
		return engine.Run{State: engine.RunUnknown}, nil
	}
	run := engine.Run{State: engine.RunActive, Waiting: found.Waiting, Stats: event.Stats{
		ReadRows: found.ReadRows, ReadBytes: found.ReadBytes, PeakMemoryBytes: found.PeakMemoryBytes,
	}}
	if found.ElapsedMs != nil {
		run.Elapsed = time.Duration(*found.ElapsedMs) * time.Millisecond
	}
	return run, nil
}

// CanFind says whether this server can be asked for an attempt by its id.
func (e *Engine) CanFind(ctx context.Context) (bool, error) { return e.has(ctx, ActionFind) }

// Kill ends an attempt where the server can be asked for it, and waits until it is gone. Elsewhere only what this client runs itself
// can be ended, and of anything else nothing is known.
func (e *Engine) Kill(ctx context.Context, id string) (bool, error) {
	var killed Killed
	known, err := e.ask(ctx, ActionKill, wire.Name(id), &killed)
	if err != nil {
		return false, fmt.Errorf("killing a query: %w", err)
	}
	if known {
		return killed.Found, nil
	}
	own, ok := e.mine.Load(id)
	if !ok {
		return false, nil
	}
	r := own.(*rows)
	r.halt(errKilled)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unconfirmed != nil {
		return true, fmt.Errorf("killing a query: the server did not confirm that it stopped: %w", e.wrap(r.unconfirmed, &call{}, r.guard))
	}
	return true, nil
}

var errKilled = errors.New("it was killed")

// kill is Kill for a run of this client; known says whether the server can be asked, found whether it had anything to kill.
func (e *Engine) kill(ctx context.Context, attempt string) (known, found bool, err error) {
	if attempt == "" {
		return false, false, nil
	}
	var killed Killed
	known, err = e.ask(ctx, ActionKill, wire.Name(attempt), &killed)
	return known, killed.Found, err
}

// ask asks by an action of protocol.go. A server that lacks it does not know it, which is no error.
func (e *Engine) ask(ctx context.Context, action, body string, answer any) (known bool, err error) {
	has, err := e.has(ctx, action)
	if err != nil || !has {
		return false, err
	}
	var result []byte
	err = e.do(ctx, func(ctx context.Context) error {
		stream, err := e.client.DoAction(ctx, &flight.Action{Type: action, Body: []byte(body)})
		if err != nil {
			return err
		}
		first, err := stream.Recv()
		if err != nil {
			return err
		}
		result = first.GetBody()
		return flight.ReadUntilEOF(stream)
	})
	switch {
	case err != nil:
		return true, err
	case json.Unmarshal(result, answer) != nil:
		return true, &engine.Error{Engine: Kind, Phase: engine.SentUnknown, Err: errGarbage}
	}
	return true, nil
}

// has asks the server whether it has an action, each time: one that can't be asked is not one that knows nothing.
func (e *Engine) has(ctx context.Context, action string) (bool, error) {
	found := false
	err := e.do(ctx, func(ctx context.Context) error {
		stream, err := e.client.ListActions(ctx, &flight.Empty{})
		for err == nil {
			var a *flight.ActionType
			if a, err = stream.Recv(); err == nil {
				found = found || a.GetType() == action
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	if err != nil && unimplemented(err) {
		return false, nil
	}
	return found, err
}

// Canary runs the configured query to its end.
func (e *Engine) Canary(ctx context.Context) error {
	rows, err := e.Submit(ctx, engine.Query{SQL: e.cfg.Canary, ReadOnly: true})
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

// Observe says whether the server answers, and its load if it can be asked for it. A server that does not answer is known to be
// unhealthy; all else is absent.
func (e *Engine) Observe(ctx context.Context) (signal.Observation, error) {
	o := signal.Observation{Cluster: e.cfg.Name, Source: source, Values: map[signal.Name]signal.Value{}}
	var load Load
	known, err := e.ask(ctx, ActionLoad, "", &load)
	o.At = time.Now().UTC()
	o.Values[signal.Healthy] = signal.OfFlag(err == nil, source, o.At)
	if err != nil {
		return o, fmt.Errorf("observing the engine: %w", err)
	}
	if known && load.Running != nil {
		o.Values[signal.Running] = signal.Of(float64(*load.Running), signal.Count, source, o.At)
	}
	if known && load.MemoryUsedBytes != nil && *load.MemoryUsedBytes > 0 {
		o.Values[signal.MemoryUsedBytes] = signal.Of(float64(*load.MemoryUsedBytes), signal.Bytes, source, o.At)
	}
	return o, nil
}
