package wire

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
)

// Rows is the result of a Statement. Next, Values and Close belong to one goroutine.
type Rows struct {
	statement *Statement
	cursor    Cursor
	unhook    func() bool

	ahead    bool // the first row was read with the answer
	over     bool // the server has ended it
	count    int64
	err      error
	whole    bool // it was read to its end
	finished atomic.Bool
	stopping sync.Once
	once     sync.Once
}

var _ engine.Rows = (*Rows)(nil)

// Columns names the result's columns.
func (r *Rows) Columns() []event.Column { return r.cursor.Columns() }

// Next moves to the next row.
func (r *Rows) Next() bool {
	if r.err != nil || r.finished.Load() {
		return false
	}
	row := r.ahead
	r.ahead = false
	if !row && !r.over {
		var err error
		if row, err = r.cursor.Next(); err != nil {
			row, r.err = false, r.statement.Wrap(err)
		}
	}
	if row {
		r.count++
		return true
	}
	r.over, r.whole = true, r.err == nil
	r.finish()
	return false
}

// Values are the current row's values.
func (r *Rows) Values() ([]any, error) { return r.cursor.Values(), nil }

// Err is what ended the rows before their end.
func (r *Rows) Err() error { return r.err }

// finish ends the session; the statement is over at the server.
func (r *Rows) finish() {
	if r.finished.CompareAndSwap(false, true) {
		r.unhook()
		r.statement.Session.Close()
	}
}

// abort tells the server to stop, from any goroutine. What it has sent already is read by Next or Close, up to its word that it
// stopped; a server that does not say so in time loses the connection.
func (r *Rows) abort() {
	r.stopping.Do(func() {
		if r.finished.Load() {
			return
		}
		session := r.statement.Session
		ctx, cancel := context.WithTimeout(r.statement.Life, StopWithin)
		defer cancel()
		if err := session.Stop(ctx); err != nil {
			session.Drop()
			return
		}
		time.AfterFunc(dropAfter, session.Drop) // nobody may be reading
	})
}

// Close ends the statement when it still runs.
func (r *Rows) Close() error {
	r.once.Do(func() {
		if r.finished.Load() {
			return
		}
		r.unhook()
		if !r.over {
			r.abort()
			ctx, cancel := context.WithTimeout(r.statement.Life, StopWithin)
			stop := context.AfterFunc(ctx, r.statement.Session.Drop)
			r.cursor.Close()
			stop()
			cancel()
		}
		r.finish()
	})
	return nil
}

// Stats counts the rows of a result that is complete. These protocols don't say what was read.
func (r *Rows) Stats() event.Stats {
	var s event.Stats
	if r.whole {
		n := r.count
		s.ResultRows = &n
	}
	return s
}
