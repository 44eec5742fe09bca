package mysql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

type answer struct {
	rows *rows
	err  error
}

// Submit sends the statement once and returns with its first row, or its end. When ctx ends, now or while rows are read, it is
// killed at the server, not only dropped here.
func (e *Engine) Submit(ctx context.Context, q engine.Query) (engine.Rows, error) {
	sub := &wire.Submission{Before: q.SubmitBefore, Late: engine.ErrGuardExpired}
	if err := ctx.Err(); err != nil {
		return nil, e.wrap(err, sub)
	}
	if sub.TooLate() {
		return nil, e.wrap(engine.ErrGuardExpired, sub)
	}
	if err := e.refuse(q.SQL); err != nil {
		return nil, err
	}
	s, err := e.ready(ctx, q, sub)
	if err != nil {
		return nil, e.wrap(err, sub)
	}
	s.wire.Serve(sub)
	answered := make(chan answer, 1)
	// The statement hangs on the client's life and not on ctx: a context that ends would close the connection before anybody has
	// told the server.
	go func() { answered <- e.first(s, mark(q.ID)+q.SQL, sub) }()
	var a answer
	select {
	case a = <-answered:
	case <-ctx.Done():
		a = e.stopSubmission(ctx, s, sub, answered)
	}
	if a.err != nil {
		err := e.wrap(a.err, sub) // before the session is closed: it may look whether the server is there
		s.close()
		return nil, err
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
		s.close()
		if !spare || !(silent || broken(err)) || ctx.Err() != nil {
			return nil, err
		}
	}
}

// first runs the statement up to its first row or its end.
func (e *Engine) first(s *session, sql string, sub *wire.Submission) answer {
	inner, err := s.query(e.life, sql)
	if err != nil {
		return answer{err: err}
	}
	out := newRows(e, s, inner, sub)
	switch err := next(inner, out.row); {
	case err == nil:
		out.ahead = true
	case !errors.Is(err, io.EOF):
		_ = shut(inner)
		return answer{err: err}
	default:
		if err := shut(inner); err != nil {
			return answer{err: err}
		}
		out.over = true
	}
	return answer{rows: out}
}

// stopSubmission ends a statement whose first row is not there yet. The connection stays open while the server is told, so that
// the server's own word (1317) says that it is over; a statement that is still on its way is told again.
func (e *Engine) stopSubmission(ctx context.Context, s *session, sub *wire.Submission, answered <-chan answer) answer {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		var err error
		if sub.Sent() {
			err = e.killConnection(bound, s.id, false)
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
	_ = a.rows.Close()
	return answer{err: context.Cause(ctx)}
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
