package mysql

import (
	"context"
	"errors"
	"regexp"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

// Submit sends the statement once and returns with its first row, or its end. When ctx ends, now or while rows are read, it is
// killed at the server, not only dropped here.
func (e *Engine) Submit(ctx context.Context, q engine.Query) (engine.Rows, error) {
	sub := &wire.Submission{Before: q.SubmitBefore, Late: engine.ErrGuardExpired}
	wrap := func(err error) *engine.Error { return e.wrap(err, sub) }
	if err := ctx.Err(); err != nil {
		return nil, wrap(err)
	}
	if sub.TooLate() {
		return nil, wrap(engine.ErrGuardExpired)
	}
	if err := e.refuse(q.SQL); err != nil {
		return nil, err
	}
	prepare := func(ctx context.Context, s *session) error { return s.prepare(ctx, q) }
	s, err := e.spares.Ready(ctx, sub, e.cfg.DialTimeout, prepare, func(_ *session, err error) bool { return broken(err) })
	if err != nil {
		return nil, wrap(err)
	}
	s.wire.Serve(sub)
	begun := false
	var watched *killing
	if q.ReadOnly && e.traits().hangsUp { // what a write has done by then is known to nobody
		watched = e.watch(s)
		defer watched.stop()
	}
	statement := &wire.Statement{
		Session: s, Sub: sub, Life: e.life,
		Send: func() (wire.Cursor, error) {
			inner, err := s.query(e.life, mark(q.ID)+q.SQL)
			if err != nil {
				return nil, err
			}
			return newCursor(s, inner), nil
		},
		Wrap: func(err error) *engine.Error {
			failed := wrap(err)
			// Behind the first row the server also hangs up on a reader that is too slow for it.
			if watched != nil && !begun && ctx.Err() == nil {
				failed = watched.judge(failed)
			}
			return failed
		},
	}
	rows, err := statement.Submit(ctx)
	begun = true
	return rows, err
}

// streams is a statement that asks the client for a file. Nobody would send it.
var streams = regexp.MustCompile(`(?is)^(?:\s|--[^\n]*\n|#[^\n]*\n|/\*.*?\*/)*LOAD\s+(?:DATA|XML)\b.*?\bLOCAL\b`)

// refuse says no to what can't be run, before anything is sent.
func (e *Engine) refuse(sql string) error {
	if !streams.MatchString(sql) {
		return nil
	}
	return &engine.Error{
		Engine: string(e.traits().flavour), Code: "1148", Phase: engine.Answered, // what a server says that allows no such thing
		Err: errors.New("LOAD DATA LOCAL needs a file of the client's; use a file of the server, or INSERT"),
	}
}
