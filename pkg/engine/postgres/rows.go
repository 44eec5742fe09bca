package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
)

// rows is one result. Next, Values and Close belong to one goroutine; abort may come from another.
type rows struct {
	engine  *Engine
	session *session
	reader  *pgconn.ResultReader
	run     *run
	unhook  func() bool

	columns  []event.Column
	kinds    []*kind
	ahead    bool // the first row was read with the answer
	over     bool // the server has ended it
	count    int64
	err      error
	whole    bool // it was read to its end
	finished atomic.Bool
	stopping sync.Once
	once     sync.Once
}

func newRows(e *Engine, s *session, reader *pgconn.ResultReader, r *run) *rows {
	out := &rows{engine: e, session: s, reader: reader, run: r, unhook: func() bool { return true }}
	for _, f := range reader.FieldDescriptions() {
		k := e.kindOf(f.DataTypeOID)
		out.columns = append(out.columns, event.Column{Name: f.Name, Type: k.typeName(f.TypeModifier)})
		out.kinds = append(out.kinds, k)
	}
	return out
}

// Columns names the result's columns.
func (r *rows) Columns() []event.Column { return r.columns }

// Next moves to the next row.
func (r *rows) Next() bool {
	if r.err != nil || r.finished.Load() {
		return false
	}
	if r.ahead || (!r.over && r.reader.NextRow()) {
		r.ahead = false
		r.count++
		return true
	}
	if !r.over {
		if _, err := r.reader.Close(); err != nil {
			r.err = r.engine.wrap(err, r.run)
		}
	}
	r.whole = r.err == nil
	r.finish()
	return false
}

// Values are the current row's values.
func (r *rows) Values() ([]any, error) {
	raw := r.reader.Values()
	out := make([]any, len(raw))
	for i, text := range raw {
		if text != nil {
			out[i] = r.kinds[i].value(string(text))
		}
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
		if err := r.session.cancel(ctx); err != nil {
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
			ctx, cancel := context.WithTimeout(r.engine.life, stopWithin)
			stop := context.AfterFunc(ctx, r.session.drop)
			_, _ = r.reader.Close() // it says that it was stopped, or that it was over before
			stop()
			cancel()
		}
		r.finish()
	})
	return nil
}

// Stats counts the rows of a result that is complete. PostgreSQL does not say what it read.
func (r *rows) Stats() event.Stats {
	var s event.Stats
	if r.whole {
		n := r.count
		s.ResultRows = &n
	}
	return s
}

var _ engine.Rows = (*rows)(nil)
