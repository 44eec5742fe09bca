package postgres

import (
	"context"
	"errors"
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

// Submit sends the statement once and returns with its first row, or its end. When ctx ends, now or while rows are read, it is
// stopped at the server, not only dropped here.
func (e *Engine) Submit(ctx context.Context, q engine.Query) (engine.Rows, error) {
	r := &run{sub: &wire.Submission{Before: q.SubmitBefore, Late: engine.ErrGuardExpired}, limit: q.MaxExecution}
	wrap := func(err error) *engine.Error { return e.wrap(err, r) }
	if err := ctx.Err(); err != nil {
		return nil, wrap(err)
	}
	if r.sub.TooLate() {
		return nil, wrap(engine.ErrGuardExpired)
	}
	if err := refuse(q.SQL); err != nil {
		return nil, err
	}
	prepare := func(ctx context.Context, s *session) error { return s.prepare(ctx, q) }
	s, err := e.spares.Ready(ctx, r.sub, e.cfg.DialTimeout, prepare, func(s *session, _ error) bool { return s.pg.IsClosed() })
	if err != nil {
		return nil, wrap(err)
	}
	r.session, r.started = s, time.Now()
	s.conn.Serve(r.sub)
	statement := &wire.Statement{Session: s, Sub: r.sub, Life: e.life, Wrap: wrap, Send: func() (wire.Cursor, error) {
		return &cursor{engine: e, reader: s.pg.ExecParams(e.life, q.SQL, nil, nil, nil, nil)}, nil
	}}
	return statement.Submit(ctx)
}

// pgError gives the server's error, if it is one.
func pgError(err error) (*pgconn.PgError, bool) { return errors.AsType[*pgconn.PgError](err) }
