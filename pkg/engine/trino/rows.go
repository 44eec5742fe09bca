package trino

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
	"github.com/pointsman/pointsman/pkg/event"
)

// rows is one query and its result. Next, Values, Stats and Close belong to one goroutine; halt may come from another.
type rows struct {
	engine *Engine
	sub    *wire.Submission
	run    context.Context // ends with the client's life, or when the query is halted
	drop   context.CancelCauseFunc
	unhook func() bool

	attempt string

	mu  sync.Mutex
	id  string // Trino's own
	uri string // of the next page; empty when there is none

	started bool // the server has answered for it
	update  bool // it has no rows: what the server sends of them is a count
	columns []event.Column
	types   []signature
	data    *table
	row     []any // of the current row, once it has been read
	count   int64
	seen    pageStats
	err     *engine.Error

	over        atomic.Bool // the server has said that it is over
	halting     sync.Once
	unconfirmed error
}

var errReaderLeft = errors.New("the result was closed before its end")

func newRows(e *Engine, attempt string, sub *wire.Submission) *rows {
	r := &rows{engine: e, attempt: attempt, sub: sub, unhook: func() bool { return true }}
	r.run, r.drop = context.WithCancelCause(e.life)
	return r
}

func (r *rows) next() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uri
}

// take keeps what an answer says.
func (r *rows) take(a results) {
	r.mu.Lock()
	r.id, r.uri = a.ID, a.NextURI
	r.mu.Unlock()
	r.seen.merge(a.Stats)
	r.data = a.Data
	if a.UpdateType != "" {
		r.update = r.update || a.UpdateCount != nil || len(a.Columns) == 0
	}
	if r.columns == nil && a.Columns != nil {
		for _, c := range a.Columns {
			r.columns = append(r.columns, event.Column{Name: c.Name, Type: c.Type})
			r.types = append(r.types, c.Signature)
		}
	}
	if r.update {
		r.columns, r.data = nil, nil
	}
	if a.Error != nil || a.NextURI == "" {
		r.over.Store(true)
	}
}

// page gets the next page. One that can't be had is asked for again, since the server keeps it: for the first one only within
// the guard, which the connection sees to.
func (r *rows) page() *engine.Error {
	ctx, bound := r.run, r.engine.cfg.RetryFor
	if !r.started {
		ctx, bound = withStart(r.run, r.sub), startFor
	}
	uri, began := r.next(), time.Now()
	var before error
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		answer, err := r.engine.statement(ctx, http.MethodGet, uri, r.engine.header(), "")
		if err == nil {
			if !r.started && r.attempt != "" {
				r.engine.mine.Store(r.attempt, answer.ID)
			}
			r.started = true
			r.take(answer)
			switch {
			case answer.Error != nil:
				return answer.Error.failed()
			case len(answer.Columns) > engine.MostColumns:
				return &engine.Error{Engine: Kind, Phase: engine.Answered, Err: fmt.Errorf("%w: %d", engine.ErrColumns, len(answer.Columns))}
			}
			return nil
		}
		if cause := context.Cause(r.run); cause != nil {
			return r.engine.wrap(cause, r.sub)
		}
		if errors.Is(err, engine.ErrGuardExpired) && before != nil {
			err = before // it says more, and the guard only ended the tries
		}
		before = err
		if wire.Refused(err) {
			bound = min(bound, refusedFor) // the coordinator is down, and its queries with it
		}
		if !again(err) || time.Since(began) >= bound || (!r.started && r.sub.TooLate()) {
			return r.engine.wrap(err, r.sub)
		}
		select {
		case <-time.After(wait):
		case <-r.run.Done():
			return r.engine.wrap(context.Cause(r.run), r.sub)
		}
	}
}

// begin starts the query and reads up to its first rows or its end.
func (r *rows) begin() *engine.Error {
	for r.data.empty() && !r.over.Load() {
		if err := r.page(); err != nil {
			return err
		}
	}
	if r.over.Load() && r.data.empty() {
		r.finish()
	}
	return nil
}

// settle says of an error what became of the query. One that was stopped from here is stopped by now; one that the server will
// give no more pages of is stopped, so that whoever goes on elsewhere leaves nothing behind; of one whose connection broke, and
// of what runs when the client is closed, nothing is known.
func (r *rows) settle(err *engine.Error) *engine.Error {
	switch {
	case r.over.Load(), r.engine.life.Err() != nil:
	case r.run.Err() != nil:
		cause := context.Cause(r.run)
		unconfirmed := r.halt(cause) // waits for the one that is under way
		if r.sub.Sent() {
			err = r.engine.stopped(cause, unconfirmed)
		}
	case !r.sub.Sent():
		_ = r.halt(err) // what was only posted runs nothing, wanted or not
	case err.Phase == engine.Answered:
		if r.halt(err) != nil {
			err.Phase = engine.SentUnknown
		}
	}
	r.finish()
	return err
}

// halt kills the query at the server and waits until it is gone. It runs once; whoever comes later waits for it and gets the
// same answer: nil when the server has confirmed it.
func (r *rows) halt(cause error) error {
	r.halting.Do(func() {
		r.drop(cause)
		r.mu.Lock()
		id, uri := r.id, r.uri
		r.mu.Unlock()
		if id == "" || r.over.Load() {
			return
		}
		ctx, cancel := context.WithTimeout(r.engine.life, stopWithin)
		defer cancel()
		if !r.sub.Sent() {
			// Taken back, it can't be started any more, not even by a request that is leaving just now.
			_ = r.engine.call(ctx, http.MethodDelete, uri, r.engine.header(), "", nil)
			if !r.sub.Sent() {
				return
			}
		}
		r.unconfirmed = r.engine.stop(ctx, id, uri)
	})
	return r.unconfirmed
}

// finish lets go of what the query held here.
func (r *rows) finish() {
	r.unhook()
	r.drop(errReaderLeft)
	if r.attempt != "" {
		r.engine.mine.CompareAndDelete(r.attempt, r.query())
	}
}

// query is Trino's own id, empty before it has answered.
func (r *rows) query() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id
}

// Columns names the result's columns.
func (r *rows) Columns() []event.Column { return r.columns }

// Next moves to the next row.
func (r *rows) Next() bool {
	r.row = nil
	for r.err == nil {
		more, err := r.data.next()
		switch {
		case err != nil:
			r.err = r.settle(r.unreadable(err))
			return false
		case more:
			r.count++
			return true
		case r.over.Load():
			r.finish()
			return false
		}
		if err := r.page(); err != nil {
			r.err = r.settle(err)
		}
	}
	return false
}

// Values are the current row's values.
func (r *rows) Values() ([]any, error) {
	if r.row == nil {
		row, err := r.data.values(r.types)
		if err != nil {
			return nil, r.unreadable(err)
		}
		r.row = row
	}
	return r.row, nil
}

func (r *rows) unreadable(err error) *engine.Error {
	return &engine.Error{Engine: Kind, Phase: engine.Answered, Err: err}
}

// Err is what ended the rows before their end.
func (r *rows) Err() error {
	if r.err == nil {
		return nil // a nil *engine.Error would be an error
	}
	return r.err
}

// Close ends the query when it still runs.
func (r *rows) Close() error {
	if !r.over.Load() && r.engine.life.Err() == nil {
		_ = r.halt(errReaderLeft) // a server that can't be reached gives it up by itself, as nobody asks for its pages
	}
	r.finish()
	return nil
}

// Stats is what the server said of the run.
func (r *rows) Stats() event.Stats {
	s := stats(r.seen.State, r.seen.ProcessedRows, r.seen.PhysicalInputBytes, r.seen.ProcessedBytes, r.seen.PeakMemoryBytes)
	if r.over.Load() && r.data.empty() && r.err == nil {
		n := r.count
		s.ResultRows = &n
	}
	return s
}

var _ engine.Rows = (*rows)(nil)
