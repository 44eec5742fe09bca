package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
)

const (
	// StopWithin bounds how long a stop waits for the server's own word before the connection is dropped.
	StopWithin = 5 * time.Second
	// dropAfter is how long the rest of a result that nobody wants is awaited: a server that waits for its reader does not listen.
	dropAfter = 500 * time.Millisecond
)

// Session is a connection on which one statement runs.
type Session interface {
	// Stop tells the server to stop what runs in it.
	Stop(ctx context.Context) error
	// Drop cuts it: what waits for the server returns. Doing so again is no harm.
	Drop()
	// Close ends it.
	Close()
}

// Cursor is a result as a driver reads it.
type Cursor interface {
	// Next moves to the next row. False without an error is the server's word that the statement is over.
	Next() (bool, error)
	// Columns are known once Next was called.
	Columns() []event.Column
	// Values are those of the current row, in the kinds of engine.Rows.
	Values() []any
	// Close reads up to the server's word that the statement is over or was stopped.
	Close()
}

// Statement is an attempt's statement and the session that is its own.
type Statement struct {
	Session Session
	Sub     *Submission
	// Life ends with the client. The statement hangs on it and not on the context of its submission: a driver would close the
	// connection when that ends, before anybody has told the server.
	Life context.Context
	// Send sends it. It returns once the driver can say how the result goes on.
	Send func() (Cursor, error)
	// Wrap makes errors those of the engine.
	Wrap func(error) *engine.Error
}

type answer struct {
	rows *Rows
	err  error
}

// Submit sends the statement and returns with its first row, or its end. When ctx ends, now or while rows are read, it is
// stopped at the server, not only dropped here. The session is closed behind it in any case.
func (s *Statement) Submit(ctx context.Context) (engine.Rows, error) {
	answered := make(chan answer, 1)
	go func() { answered <- s.first() }()
	var a answer
	select {
	case a = <-answered:
	case <-ctx.Done():
		a = s.stop(ctx, answered)
	}
	if a.err != nil {
		err := s.Wrap(a.err) // before the session is closed: it may look whether the server is there
		s.Session.Close()
		return nil, err
	}
	a.rows.unhook = context.AfterFunc(ctx, a.rows.abort)
	return a.rows, nil
}

// first runs it up to its first row or its end.
func (s *Statement) first() answer {
	cursor, err := s.Send()
	if err != nil {
		return answer{err: err}
	}
	row, err := cursor.Next()
	if err != nil {
		return answer{err: err}
	}
	return answer{rows: &Rows{statement: s, cursor: cursor, ahead: row, over: !row, unhook: func() bool { return true }}}
}

// stop ends a statement whose first row is not there yet. The connection stays open while the server is told, so that the
// server's own word says that it is over; a statement that is still on its way is told again.
func (s *Statement) stop(ctx context.Context, answered <-chan answer) answer {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopWithin)
	defer cancel()
	defer context.AfterFunc(s.Life, cancel)()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		var err error
		if s.Sub.Sent() {
			err = s.Session.Stop(bound)
		}
		select {
		case a := <-answered:
			return a.orStopped(ctx)
		case <-time.After(wait):
		case <-bound.Done():
			s.Session.Drop()
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
	over := a.rows.over
	_ = a.rows.Close()
	if over {
		return answer{err: fmt.Errorf("%w; %w", context.Cause(ctx), engine.ErrDone)}
	}
	return answer{err: context.Cause(ctx)}
}
