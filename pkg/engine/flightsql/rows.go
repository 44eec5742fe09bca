package flightsql

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
)

// rows is one run. Next, Values and Close belong to one goroutine; halt may come from another.
type rows struct {
	engine  *Engine
	attempt string
	guard   *guard
	headers metadata.MD
	conn    *grpc.ClientConn
	others  []*grpc.ClientConn // to the locations of endpoints
	run     context.Context    // of its streams
	cancel  context.CancelCauseFunc
	unhook  func() bool
	limit   *time.Timer
	began   time.Time
	dialled atomic.Int32 // how often conn was made
	asked   int32        // that, when the server had answered with tickets
	redeems bool         // the last call goes to conn with one of them

	columns []event.Column
	call    *call // the one that was made last
	reader  *flight.Reader
	started bool // rows have been answered
	cells   []cell
	at, n   int // the current row of the batch, and how many it has
	count   int64
	err     error
	whole   bool

	refusedLogin bool
	finished     atomic.Bool
	halting      sync.Once
	once         sync.Once

	mu          sync.Mutex
	info        *flight.FlightInfo
	endpoints   []*flight.FlightEndpoint
	cause       error // why it was stopped
	unconfirmed error // why nobody knows whether that was the end of it
}

// context is that of the next call of the run.
func (r *rows) context() context.Context {
	r.call = &call{}
	return r.call.in(metadata.NewOutgoingContext(r.run, r.headers))
}

// describe takes the columns from the server's first answer, if they are there.
func (r *rows) describe(info *flight.FlightInfo) {
	if len(info.GetSchema()) == 0 {
		return
	}
	if schema, err := flight.DeserializeSchema(info.GetSchema(), memory.DefaultAllocator); err == nil && schema.NumFields() > 0 {
		r.columns = columnsOf(schema)
	}
}

// Columns names the result's columns.
func (r *rows) Columns() []event.Column { return r.columns }

// load reads up to a batch that has rows; false means the end.
func (r *rows) load() (bool, error) {
	for {
		if r.reader == nil {
			r.mu.Lock()
			left := len(r.endpoints)
			r.mu.Unlock()
			if left == 0 {
				return false, nil
			}
			if err := r.open(); err != nil {
				return false, err
			}
		}
		for r.reader.Next() {
			batch := r.reader.RecordBatch()
			if batch.NumRows() == 0 {
				continue
			}
			cells, err := cellsOf(batch, len(r.columns))
			if err != nil {
				return false, err
			}
			r.cells, r.at, r.n = cells, -1, int(batch.NumRows())
			return true, nil
		}
		if err := r.reader.Err(); err != nil {
			return false, err
		}
		r.reader.Release()
		r.reader = nil
	}
}

// Next moves to the next row.
func (r *rows) Next() bool {
	if r.err != nil || r.finished.Load() {
		return false
	}
	if r.at+1 >= r.n {
		more, err := r.load()
		if err != nil {
			r.err = r.settle(err)
			r.n = 0
			r.release()
			return false
		}
		if !more {
			r.finish()
			return false
		}
	}
	r.at++
	r.count++
	return true
}

// Values are the current row's values. Bytes that are no Arrow show only when they are read.
func (r *rows) Values() (out []any, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, r.engine.wrap(fmt.Errorf("%w: row %d: %v", errGarbage, r.count, p), &call{}, r.guard)
		}
	}()
	out = make([]any, len(r.cells))
	for i, cell := range r.cells {
		out[i] = cell(r.at)
	}
	return out, nil
}

// Err is what ended the rows before their end.
func (r *rows) Err() error { return r.err }

// finish notes that all rows are read; the run is over at the server.
func (r *rows) finish() {
	r.whole = true
	r.release()
}

// release gives up the connection. What still runs there loses its stream.
func (r *rows) release() {
	if !r.finished.CompareAndSwap(false, true) {
		return
	}
	r.unhook()
	if r.limit != nil {
		r.limit.Stop()
	}
	if r.attempt != "" {
		r.engine.mine.CompareAndDelete(r.attempt, r)
	}
	r.cancel(errLetGo)
	if r.reader != nil {
		r.reader.Release()
		r.reader = nil
	}
	_ = r.conn.Close()
	for _, c := range r.others {
		_ = c.Close()
	}
}

// Close ends the query when it still runs.
func (r *rows) Close() error {
	r.once.Do(func() {
		if !r.finished.Load() {
			r.halt(errLetGo)
			r.release()
		}
	})
	return nil
}

// Stats is what is known of the run: the protocol says nothing of what was read for it.
func (r *rows) Stats() event.Stats {
	var s event.Stats
	if r.whole {
		n := r.count
		s.ResultRows = &n
	}
	return s
}

var _ engine.Rows = (*rows)(nil)
