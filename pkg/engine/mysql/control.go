package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

const (
	source = "engine"
	// aside marks statements of the control lane, which count as no load.
	aside = "/* pointsman control */ "
)

// process is a line of the server's list.
type process struct {
	id      uint64
	command string
	info    string
	elapsed time.Duration // 0 when the server does not say
	stats   event.Stats
}

// busy says that it works at a statement.
func (p process) busy() bool {
	return slices.Contains([]string{"query", "execute", "killed"}, strings.ToLower(p.command))
}

// known gives the server's traits, and reaches it once if need be.
func (e *Engine) known(ctx context.Context) (*traits, error) {
	if t := e.flavour.Load(); t != nil {
		return t, nil
	}
	var version, comment string
	if err := e.control.QueryRowContext(ctx, aside+"SELECT @@version, @@version_comment").Scan(&version, &comment); err != nil {
		return nil, err
	}
	t := flavours[flavourOf(version, comment)]
	e.flavour.Store(t)
	return t, nil
}

// list reads the server's list of processes: all that the user may see.
func (e *Engine) list(ctx context.Context, t *traits) ([]process, error) {
	rows, err := e.control.QueryContext(ctx, aside+t.list)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out []process
	for rows.Next() {
		cells, dest := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range cells {
			dest[i] = &cells[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		var p process
		for i, name := range names {
			if cells[i].Valid {
				p.set(strings.ToLower(name), cells[i].String)
			}
		}
		out = append(out, p)
	}
	return out, rows.Err()
}

func (p *process) set(column, value string) {
	switch column {
	case "id":
		p.id, _ = strconv.ParseUint(value, 10, 64)
	case "command":
		p.command = value
	case "info":
		p.info = value
	case "time":
		p.elapsed = spent(value, time.Second)
	case "time_ms":
		p.elapsed = spent(value, time.Millisecond)
	case "examined_rows":
		p.stats.ReadRows = counted(value)
	case "max_memory_used":
		p.stats.PeakMemoryBytes = counted(value)
	}
}

func spent(value string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n * float64(unit))
}

// counted is a count that is known to have begun: a zero may as well mean that nobody counts.
func counted(value string) *int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n <= 0 {
		return nil
	}
	return &n
}

// processes are those of an attempt.
func (e *Engine) processes(ctx context.Context, t *traits, id string) ([]process, error) {
	all, err := e.list(ctx, t)
	lead := strings.TrimSpace(mark(id))
	return slices.DeleteFunc(all, func(p process) bool { return !strings.HasPrefix(p.info, lead) }), err
}

// Find looks an attempt id up in the server's list of processes. It keeps no finished statements, so the answer is active or
// unknown.
func (e *Engine) Find(ctx context.Context, id string) (engine.Run, error) {
	t, err := e.known(ctx)
	var found []process
	if err == nil {
		found, err = e.processes(ctx, t, id)
	}
	switch {
	case err != nil:
		return engine.Run{}, fmt.Errorf("looking up a query: %w", e.wrap(err, nil))
	case len(found) == 0:
		return engine.Run{State: engine.RunUnknown}, nil
	default:
		return engine.Run{State: engine.RunActive, Elapsed: found[0].elapsed, Stats: found[0].stats}, nil
	}
}

// noThread and noQuery are the codes of a KILL that came too late.
const (
	noThread = 1094
	noQuery  = 1097
)

// owns says whether a connection is an attempt's. Its lock tells it of a procedure too, whose statements have no comment in front.
func (e *Engine) owns(ctx context.Context, attempt string, id uint64) (bool, error) {
	t := e.traits()
	if t.holder {
		var by sql.NullInt64
		err := e.control.QueryRowContext(ctx, aside+"SELECT IS_USED_LOCK('"+wire.LockName(attempt)+"')").Scan(&by)
		return err == nil && by.Valid && uint64(by.Int64) == id, err
	}
	found, err := e.processes(ctx, t, attempt)
	return slices.ContainsFunc(found, func(p process) bool { return p.id == id }), err
}

// killConnection stops what a connection runs, or the connection itself.
func (e *Engine) killConnection(ctx context.Context, id uint64, whole bool) error {
	what := "QUERY"
	if whole {
		what = "CONNECTION"
	}
	e.kills.Add(1)
	_, err := e.control.ExecContext(ctx, aside+"KILL "+what+" "+strconv.FormatUint(id, 10))
	if said, ok := errors.AsType[*driver.MySQLError](err); ok && (said.Number == noThread || said.Number == noQuery) {
		return nil
	}
	return err
}

// Kill tells the server to stop an attempt and waits until it is gone. A statement that waits for a reader that does not read
// does not listen; after a while its connection is killed.
func (e *Engine) Kill(ctx context.Context, id string) (bool, error) {
	t, err := e.known(ctx)
	if err != nil {
		return false, fmt.Errorf("killing a query: %w", e.wrap(err, nil))
	}
	seen := false
	began := time.Now()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		found, err := e.processes(ctx, t, id)
		for _, p := range found {
			seen = true
			if err == nil {
				err = e.killConnection(ctx, p.id, time.Since(began) > wire.StopWithin/2)
			}
		}
		switch {
		case err != nil:
			return seen, fmt.Errorf("killing a query: %w", e.wrap(err, nil))
		case len(found) == 0:
			return seen, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return true, fmt.Errorf("waiting for a killed query to end: %w", context.Cause(ctx))
		}
	}
}

// Canary runs the configured statement to its end.
func (e *Engine) Canary(ctx context.Context) error {
	if err := e.drain(ctx, aside+e.cfg.Canary); err != nil {
		return fmt.Errorf("running the canary: %w", e.wrap(err, nil))
	}
	return nil
}

func (e *Engine) drain(ctx context.Context, sql string) error {
	rows, err := e.control.QueryContext(ctx, sql)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// Observe counts the statements that run, without those of control lanes, and the connections against their limit. A user
// without the PROCESS right sees its own only. No server of the family says how long its queue is, so nothing is said of one. A
// server that does not answer is known to be unhealthy; all else is absent.
func (e *Engine) Observe(ctx context.Context) (signal.Observation, error) {
	o := signal.Observation{Cluster: e.cfg.Name, Source: source, Values: map[signal.Name]signal.Value{}}
	t, err := e.known(ctx)
	var all []process
	if err == nil {
		all, err = e.list(ctx, t)
	}
	var most int64
	if err == nil && t.connections != "" {
		err = e.control.QueryRowContext(ctx, aside+"SELECT @@"+t.connections).Scan(&most)
	}
	o.At = time.Now().UTC()
	o.Values[signal.Healthy] = signal.OfFlag(err == nil, source, o.At)
	if err != nil {
		return o, fmt.Errorf("observing the engine: %w", e.wrap(err, nil))
	}
	running, connections := 0, 0
	for _, p := range all {
		if strings.EqualFold(p.command, "daemon") {
			continue
		}
		connections++
		if p.busy() && !strings.HasPrefix(p.info, strings.TrimSpace(aside)) {
			running++
		}
	}
	o.Values[signal.Running] = signal.Of(float64(running), signal.Count, source, o.At)
	o.Values[signal.Connections] = signal.Of(float64(connections), signal.Count, source, o.At)
	if most > 0 { // TiDB: 0 is no limit
		o.Values[signal.MaxConnections] = signal.Of(float64(most), signal.Count, source, o.At)
	}
	return o, nil
}
