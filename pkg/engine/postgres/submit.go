package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

// run is one statement on its way and what it left in the meantime.
type run struct {
	sub     *wire.Submission
	session *session      // once it has one
	limit   time.Duration // its statement_timeout, 0 for none
	started time.Time
}

type answer struct {
	rows *rows
	err  error
}

// Submit sends the statement once and returns with its first row, or its end. When ctx ends, now or while rows are read, it is
// stopped at the server, not only dropped here.
func (e *Engine) Submit(ctx context.Context, q engine.Query) (engine.Rows, error) {
	r := &run{sub: &wire.Submission{Before: q.SubmitBefore, Late: engine.ErrGuardExpired}, limit: q.MaxExecution}
	if err := ctx.Err(); err != nil {
		return nil, e.wrap(err, r)
	}
	if r.sub.TooLate() {
		return nil, e.wrap(engine.ErrGuardExpired, r)
	}
	if err := refuse(q.SQL); err != nil {
		return nil, err
	}
	s, err := e.ready(ctx, q, r.sub)
	if err != nil {
		return nil, e.wrap(err, r)
	}
	r.session, r.started = s, time.Now()
	s.conn.Serve(r.sub)
	answered := make(chan answer, 1)
	// The statement hangs on the client's life and not on ctx: a context that ends would close the connection before anybody has
	// told the server.
	go func() { answered <- e.first(s, q.SQL, r) }()
	var a answer
	select {
	case a = <-answered:
	case <-ctx.Done():
		a = e.stopSubmission(ctx, s, r, answered)
	}
	if a.err != nil {
		s.close()
		return nil, e.wrap(a.err, r)
	}
	a.rows.unhook = context.AfterFunc(ctx, a.rows.abort)
	return a.rows, nil
}

// ready gives a session that is the attempt's. One that was kept ready may have gone away meanwhile, or its network: then another
// is made. Nothing of the statement has left, so nobody has to wait for a server that says nothing.
func (e *Engine) ready(ctx context.Context, q engine.Query, sub *wire.Submission) (*session, error) {
	for {
		s, spare, err := e.spares.Take(ctx)
		if err != nil {
			return nil, err
		}
		if sub.TooLate() { // it will be submitted again, and must not meet the lock of a session that is just going away
			s.close()
			return nil, engine.ErrGuardExpired
		}
		bound, cancel := context.WithTimeout(ctx, e.cfg.DialTimeout)
		err = s.prepare(bound, q)
		silent := bound.Err() != nil
		cancel()
		if err == nil {
			return s, nil
		}
		broken := silent || s.pg.IsClosed()
		s.close()
		if !spare || !broken || ctx.Err() != nil {
			return nil, err
		}
	}
}

// first runs the statement up to its first row or its end.
func (e *Engine) first(s *session, sql string, r *run) answer {
	reader := s.pg.ExecParams(e.life, sql, nil, nil, nil, nil)
	row := reader.NextRow()
	out := newRows(e, s, reader, r)
	if !row {
		if _, err := reader.Close(); err != nil {
			return answer{err: err}
		}
	}
	out.ahead, out.over = row, !row
	return answer{rows: out}
}

// stopSubmission ends a statement whose first row is not there yet. The connection stays open while the server is told, so that
// the server's own word (SQLSTATE 57014) says that it is over; a statement that is still on its way is told again.
func (e *Engine) stopSubmission(ctx context.Context, s *session, r *run, answered <-chan answer) answer {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		var err error
		if r.sub.Sent() {
			err = s.cancel(bound)
		}
		select {
		case a := <-answered:
			return a.orStopped(ctx)
		case <-time.After(wait):
		case <-bound.Done():
			s.drop()
			a := <-answered
			if a.err == nil {
				return a.orStopped(ctx)
			}
			return answer{err: fmt.Errorf("%w; the server did not confirm that it stopped: %w", context.Cause(ctx), errors.Join(err, bound.Err()))}
		}
	}
}

// orStopped turns rows that came after the context had ended into that end.
func (a answer) orStopped(ctx context.Context) answer {
	if a.err != nil {
		return a
	}
	a.rows.abort()
	_ = a.rows.Close()
	return answer{err: context.Cause(ctx)}
}

// pgError gives the server's error, if it is one.
func pgError(err error) (*pgconn.PgError, bool) { return errors.AsType[*pgconn.PgError](err) }
