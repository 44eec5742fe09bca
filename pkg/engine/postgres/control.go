package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
	"github.com/pointsman/pointsman/pkg/signal"
)

const source = "engine"

// configurePool makes the control lane: a few connections of its own, so that a full server of queries never keeps one from
// being stopped once they are there.
func (e *Engine) configurePool(pool *pgxpool.Config) {
	pool.MaxConns = controlConns
	pool.ConnConfig.ConnectTimeout = e.cfg.DialTimeout
	// One round trip, and nothing that a session would have to remember.
	pool.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
}

// ask asks on the control lane, and once more when its connections turn out to be dead: the server may have been restarted since
// they were used. All that is asked there may be asked twice.
func (e *Engine) ask(ctx context.Context, question func() error) error {
	err := question()
	if said, ok := pgError(err); err == nil || errors.Is(err, pgx.ErrNoRows) || wire.Refused(err) || ctx.Err() != nil || (ok && said.Code != codeShutdown) {
		return err
	}
	e.control.Reset()
	return question()
}

// mine are the sessions of an attempt. One whose state the server does not tell counts as running: what is not known is not
// over. A session that is idle has no statement yet, or no more.
const mine = "FROM pg_catalog.pg_stat_activity WHERE application_name = $1 AND backend_type = 'client backend' AND state IS DISTINCT FROM 'idle'"

// Find looks an attempt id up among the sessions. PostgreSQL keeps no finished statements, and does not say how far one has
// come, so the answer is active or unknown, and the time that it has run.
func (e *Engine) Find(ctx context.Context, id string) (engine.Run, error) {
	var micros *int64
	err := e.ask(ctx, func() error {
		return e.control.QueryRow(ctx, "SELECT (extract(epoch FROM clock_timestamp() - query_start) * 1000000)::bigint "+mine+" ORDER BY query_start LIMIT 1", wire.Name(id)).Scan(&micros)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return engine.Run{State: engine.RunUnknown}, nil
	case err != nil:
		return engine.Run{}, fmt.Errorf("looking up a query: %w", e.wrap(err, nil))
	}
	run := engine.Run{State: engine.RunActive}
	if micros != nil {
		run.Elapsed = time.Duration(max(*micros, 0)) * time.Microsecond
	}
	return run, nil
}

// Kill tells the server to stop an attempt and waits until it is gone. A statement that waits for a reader that does not read
// can't be cancelled; after a while its session is ended.
func (e *Engine) Kill(ctx context.Context, id string) (bool, error) {
	found := false
	began := time.Now()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		stop := "pg_cancel_backend"
		if time.Since(began) > wire.StopWithin/2 {
			stop = "pg_terminate_backend"
		}
		var n int
		err := e.ask(ctx, func() error {
			return e.control.QueryRow(ctx, "SELECT count("+stop+"(pid)) "+mine, wire.Name(id)).Scan(&n)
		})
		if err != nil {
			return found, fmt.Errorf("killing a query: %w", e.wrap(err, nil))
		}
		if n == 0 {
			return found, nil
		}
		found = true
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return true, fmt.Errorf("waiting for a killed query to end: %w", context.Cause(ctx))
		}
	}
}

// Canary runs the configured statement to its end.
func (e *Engine) Canary(ctx context.Context) error {
	err := e.ask(ctx, func() error {
		rows, err := e.control.Query(ctx, e.cfg.Canary)
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		rows.Close()
		return rows.Err()
	})
	if err != nil {
		return fmt.Errorf("running the canary: %w", e.wrap(err, nil))
	}
	return nil
}

// Observe counts the statements that run, without those of control lanes, and the connections against their limit. PostgreSQL
// has no queue of its own, so nothing is said of one. A server that does not answer is known to be unhealthy; all else is absent.
func (e *Engine) Observe(ctx context.Context) (signal.Observation, error) {
	o := signal.Observation{Cluster: e.cfg.Name, Source: source, Values: map[signal.Name]signal.Value{}}
	var running, connections, most int64
	err := e.ask(ctx, func() error {
		return e.control.QueryRow(ctx, "SELECT count(*) FILTER (WHERE state <> 'idle' AND application_name <> $1), count(*), "+
			"current_setting('max_connections')::bigint FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'", controlName).
			Scan(&running, &connections, &most)
	})
	o.At = time.Now().UTC()
	o.Values[signal.Healthy] = signal.OfFlag(err == nil, source, o.At)
	if err != nil {
		return o, fmt.Errorf("observing the engine: %w", e.wrap(err, nil))
	}
	o.Values[signal.Running] = signal.Of(float64(running), signal.Count, source, o.At)
	o.Values[signal.Connections] = signal.Of(float64(connections), signal.Count, source, o.At)
	o.Values[signal.MaxConnections] = signal.Of(float64(most), signal.Count, source, o.At)
	return o, nil
}
