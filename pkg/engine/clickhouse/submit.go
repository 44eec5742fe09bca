package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	rowsdriver "github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/pointsman/pointsman/pkg/engine"
)

// readsAndSets is ClickHouse's mode in which a query reads, and may have settings of its own but for this one.
const readsAndSets = 2

type answer struct {
	rows rowsdriver.Rows
	err  error
}

// Submit sends the query once and returns with its first block. When ctx ends, now or while rows are read, the query is
// killed at the engine, not only dropped here.
func (e *Engine) Submit(ctx context.Context, q engine.Query) (engine.Rows, error) {
	sub := &submission{before: q.SubmitBefore}
	if err := ctx.Err(); err != nil {
		return nil, e.wrap(err, sub)
	}
	// The query hangs on the client's life and not on ctx: a context that ends would close the connection before anybody has
	// told the engine. It also has no deadline, from which the driver would derive a max_execution_time of its own.
	run, cancel := context.WithCancelCause(e.life)
	profile := &profile{}
	answered := make(chan answer, 1)
	var release func()
	go func() {
		call := withSubmission(run, sub)
		conn, free, err := e.lane(call, q, sub)
		release = free
		flat := false
		if err == nil {
			flat, err = e.flattens(run, conn)
		}
		if err != nil {
			answered <- answer{err: err}
			return
		}
		call = driver.Context(call, append(profile.options(), driver.WithQueryID(q.ID), driver.WithSettings(e.settings(q, flat)))...)
		rows, err := ask(call, conn, q.SQL)
		if errors.Is(err, errGarbage) {
			e.replace(conn)
		}
		if errors.Is(err, io.EOF) && e.cfg.Protocol == Native {
			rows, err = nil, nil // the statement has no result
		}
		answered <- answer{rows, err}
	}()
	var a answer
	select {
	case a = <-answered:
	case <-ctx.Done():
		a = e.stopSubmission(ctx, q.ID, sub, answered, cancel)
	}
	if a.err != nil {
		cancel(a.err)
		release()
		return nil, e.wrap(a.err, sub)
	}
	r := newRows(e, q.ID, a.rows, sub, profile, func() { cancel(errClosed); release() })
	if len(r.columns) == 0 {
		r.columns = e.describe(ctx, q)
	}
	r.unhook = context.AfterFunc(ctx, r.abort)
	return r, nil
}

var errGarbage = errors.New("the server answers what is no result")

// ask sends a query. The driver trusts the lengths that a server gives, and panics on some.
func ask(ctx context.Context, conn driver.Conn, sql string) (rows rowsdriver.Rows, err error) {
	defer func() {
		if p := recover(); p != nil {
			rows, err = nil, fmt.Errorf("%w: %v", errGarbage, p)
		}
	}()
	return conn.Query(ctx, sql)
}

// replace makes a new pool for queries in place of one that has panicked: a place in it is lost then, and there would be none left some day.
// What runs there goes on.
func (e *Engine) replace(pool driver.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queries != pool || e.life.Err() != nil {
		return
	}
	if fresh, err := driver.Open(e.options(e.cfg.Queries, e.cfg.Database, nil)); err == nil {
		e.queries = fresh
		_ = pool.Close()
	}
}

// lane gives the connections that the submission uses, and how to give them back.
func (e *Engine) lane(ctx context.Context, q engine.Query, sub *submission) (driver.Conn, func(), error) {
	if e.cfg.Protocol == HTTP {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.queries, func() {}, nil
	}
	// A native submission has a connection of its own: the protocol has no request whose first byte could be told apart on a
	// shared one, so the guard is armed between the hello and the query.
	database := q.Database
	if database == "" {
		database = e.cfg.Database
	}
	conn, err := driver.Open(e.options(1, database, sub))
	if err != nil {
		return nil, func() {}, err
	}
	free := func() { _ = conn.Close() }
	if err := conn.Ping(ctx); err != nil {
		return nil, free, err
	}
	if err := ctx.Err(); err != nil {
		return nil, free, context.Cause(ctx)
	}
	sub.arm()
	return conn, free, nil
}

// stopSubmission ends a query whose first answer is not there yet. The connection stays open while the engine is told, so
// that the engine's own word (code 394) says that it is over; a query that is still on its way is killed when it arrives.
func (e *Engine) stopSubmission(ctx context.Context, id string, sub *submission, answered <-chan answer, drop context.CancelCauseFunc) answer {
	if sub.hold() {
		drop(context.Cause(ctx))
		a := <-answered
		return a.orClosed(ctx)
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		_, err := e.Kill(bound, id)
		select {
		case a := <-answered:
			return a.orClosed(ctx)
		case <-time.After(wait):
		case <-bound.Done():
			err = errors.Join(err, bound.Err())
		}
		if bound.Err() != nil {
			drop(context.Cause(ctx))
			a := <-answered
			if a.err == nil {
				return a.orClosed(ctx)
			}
			// Made here: what the kill failed of is not what the query ended with.
			return answer{err: &engine.Error{
				Engine: Kind, Phase: engine.SentUnknown, Err: fmt.Errorf("%w; the engine did not confirm that it stopped: %w", context.Cause(ctx), err),
			}}
		}
	}
}

// orClosed turns an answer that came after the context had ended into that end.
func (a answer) orClosed(ctx context.Context) answer {
	if a.err != nil {
		return a
	}
	if a.rows == nil {
		return answer{err: fmt.Errorf("%w; %w", context.Cause(ctx), engine.ErrDone)}
	}
	go func() { _ = a.rows.Close() }() // it drains what is left of a query that is over or about to be
	return answer{err: context.Cause(ctx)}
}

func (e *Engine) settings(q engine.Query, flat bool) driver.Settings {
	s := driver.Settings{}
	if flat {
		s[flattened] = 1
	}
	for name, value := range q.Settings {
		s[name] = value
		// Servers before 2019 take numbers as numbers over the native protocol; all others take both.
		if n, err := strconv.Atoi(value); err == nil && e.cfg.Protocol == Native {
			s[name] = n
		}
	}
	if q.MaxMemoryBytes > 0 {
		s["max_memory_usage"] = int(q.MaxMemoryBytes)
	}
	if q.MaxExecution > 0 {
		s["max_execution_time"] = int(math.Ceil(q.MaxExecution.Seconds())) // old servers take whole seconds only
	}
	if q.ReadOnly && q.Settings["readonly"] != "1" { // a resource profile may ask for the stricter mode, in which a statement has no SETTINGS
		s["readonly"] = readsAndSets
	}
	if q.Database != "" && e.cfg.Protocol == HTTP {
		s["database"] = q.Database // a parameter of the request, like the settings
	}
	return s
}
