package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
	"github.com/pointsman/pointsman/pkg/event"
)

// rows is one result. Next, Values and Close belong to one goroutine; abort may come from another.
type rows struct {
	engine  *Engine
	session *session
	inner   driver.Rows
	sub     *wire.Submission
	unhook  func() bool

	columns  []event.Column
	kinds    []kind
	row      []driver.Value
	ahead    bool // the first row was read with the answer
	over     bool // the server has ended it
	count    int64
	err      error
	whole    bool // it was read to its end
	finished atomic.Bool
	stopping sync.Once
	once     sync.Once
}

func newRows(e *Engine, s *session, inner driver.Rows, sub *wire.Submission) *rows {
	r := &rows{engine: e, session: s, inner: inner, sub: sub, unhook: func() bool { return true }}
	names := inner.Columns()
	typed, _ := inner.(driver.RowsColumnTypeDatabaseTypeName)
	for i, name := range names {
		k := kindOf(typed.ColumnTypeDatabaseTypeName(i), s.local)
		r.kinds = append(r.kinds, k)
		r.columns = append(r.columns, event.Column{Name: name, Type: k.name})
	}
	r.row = make([]driver.Value, len(names))
	return r
}

// Columns names the result's columns.
func (r *rows) Columns() []event.Column { return r.columns }

// Next moves to the next row.
func (r *rows) Next() bool {
	if r.err != nil || r.finished.Load() {
		return false
	}
	if r.ahead {
		r.ahead = false
		r.count++
		return true
	}
	if !r.over {
		err := next(r.inner, r.row)
		if err == nil {
			r.count++
			return true
		}
		if errors.Is(err, io.EOF) {
			err = shut(r.inner) // later results of a procedure are not delivered, but their errors are
		}
		if err != nil {
			r.err = r.engine.wrap(err, r.sub)
		}
	}
	r.over, r.whole = true, r.err == nil
	r.finish()
	return false
}

// Values are the current row's values.
func (r *rows) Values() ([]any, error) {
	out := make([]any, len(r.row))
	for i, v := range r.row {
		out[i] = r.kinds[i].value(v)
	}
	return out, nil
}

// Err is what ended the rows before their end.
func (r *rows) Err() error { return r.err }

// finish ends the session; the statement is over at the server.
func (r *rows) finish() {
	if r.finished.CompareAndSwap(false, true) {
		r.unhook()
		r.session.close()
	}
}

// abort tells the server to stop. What it has sent already is read by Next or Close, up to its word that it stopped; a server
// that does not say so in time loses the connection.
func (r *rows) abort() {
	r.stopping.Do(func() {
		if r.finished.Load() {
			return
		}
		ctx, cancel := context.WithTimeout(r.engine.life, stopWithin)
		defer cancel()
		if err := r.engine.killConnection(ctx, r.session.id, false); err != nil {
			r.session.drop()
			return
		}
		time.AfterFunc(dropAfter, r.session.drop) // nobody may be reading; closing it again is no harm
	})
}

// Close ends the statement when it still runs.
func (r *rows) Close() error {
	r.once.Do(func() {
		if r.finished.Load() {
			return
		}
		r.unhook()
		if !r.over {
			r.abort()
			stop := time.AfterFunc(stopWithin, r.session.drop)
			_ = shut(r.inner) // it says that it was stopped, or that it was over before
			stop.Stop()
		}
		r.finish()
	})
	return nil
}

// Stats counts the rows of a result that is complete. The protocol does not say what was read.
func (r *rows) Stats() event.Stats {
	var s event.Stats
	if r.whole {
		n := r.count
		s.ResultRows = &n
	}
	return s
}

var _ engine.Rows = (*rows)(nil)
