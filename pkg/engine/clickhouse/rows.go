package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	rowsdriver "github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
)

// rows is one result. Next, Values and Close belong to one goroutine; abort may come from another.
type rows struct {
	engine  *Engine
	id      string
	inner   rowsdriver.Rows // nil for a statement without a result
	sub     *submission
	profile *profile
	release func()
	unhook  func() bool

	columns  []event.Column
	targets  []target
	dests    []any // the targets'
	values   []any // the current row's
	count    int64
	err      error
	whole    bool // it was read to its end
	finished atomic.Bool
	once     sync.Once
}

func newRows(e *Engine, id string, inner rowsdriver.Rows, sub *submission, p *profile, release func()) *rows {
	r := &rows{engine: e, id: id, inner: inner, sub: sub, profile: p, release: release, unhook: func() bool { return true }}
	if inner == nil {
		return r
	}
	for _, c := range inner.ColumnTypes() {
		r.columns = append(r.columns, event.Column{Name: c.Name(), Type: c.DatabaseTypeName()})
		t := newTarget(c.ScanType(), c.DatabaseTypeName())
		r.targets, r.dests = append(r.targets, t), append(r.dests, t.dest)
	}
	r.values = make([]any, len(r.targets))
	return r
}

// Columns names the result's columns.
func (r *rows) Columns() []event.Column { return r.columns }

// Next moves to the next row.
func (r *rows) Next() bool {
	if r.err != nil || r.finished.Load() {
		return false
	}
	if r.inner != nil && r.inner.Next() {
		r.count++
		return true
	}
	if r.inner != nil {
		if err := r.inner.Err(); err != nil {
			r.err = r.engine.wrap(err, r.sub)
		}
	}
	r.whole = r.err == nil
	r.finish()
	return false
}

// Values are the current row's values.
func (r *rows) Values() ([]any, error) {
	values, err := r.Lent()
	values = slices.Clone(values)
	for i, v := range values {
		values[i] = own(v)
	}
	return values, err
}

// Lent are the current row's values until the next row.
func (r *rows) Lent() (values []any, err error) {
	defer func() { // the driver panics on maps of JSON, for one, and a query must not take the process with it
		if p := recover(); p != nil {
			values, err = nil, unreadable(fmt.Errorf("the driver fails on a value: %v", p))
		}
	}()
	if err := r.inner.Scan(r.dests...); err != nil {
		return nil, unreadable(err)
	}
	for i, t := range r.targets {
		r.values[i] = t.lend()
	}
	return r.values, nil
}

// Err is what ended the rows before their end.
func (r *rows) Err() error { return r.err }

// finish gives the connection back; the query is over at the engine.
func (r *rows) finish() {
	if r.finished.CompareAndSwap(false, true) {
		r.unhook()
		r.release()
	}
}

// abort kills the query when its context ends.
func (r *rows) abort() {
	if r.finished.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(r.engine.life, stopWithin)
	defer cancel()
	_, _ = r.engine.Kill(ctx, r.id) // an engine that can't be reached is told by the dropped connection
	r.release()
}

// Close ends the query when it still runs.
func (r *rows) Close() error {
	r.once.Do(func() {
		if !r.finished.Load() {
			r.unhook()
			r.abort()
			r.finished.Store(true)
		}
		if r.inner != nil {
			_ = r.inner.Close() // the error is that of the dropped connection, or was told by Err
		}
	})
	return nil
}

// Stats is what the engine said of the run.
func (r *rows) Stats() event.Stats {
	s := r.profile.stats()
	if r.finished.Load() {
		if header, ok := r.sub.header("X-ClickHouse-Summary"); ok {
			s = summaryStats(header, r.count)
		}
	}
	if r.whole {
		n := r.count
		s.ResultRows = &n
	}
	return s
}

// summaryStats reads the summary header of a query that is over. A server without trailers writes it with the first bytes of
// the answer: that is the end for a small result, but somewhere in the middle for one that streams. Its own count of result
// rows tells the two apart, and what is known to be incomplete is not reported.
func summaryStats(header string, rows int64) event.Stats {
	var s event.Stats
	fields := map[string]json.RawMessage{}
	if header == "" || json.Unmarshal([]byte(header), &fields) != nil {
		return s
	}
	number := func(names ...string) *int64 {
		for _, name := range names {
			text := string(fields[name])
			if unquoted, err := strconv.Unquote(text); err == nil {
				text = unquoted
			}
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				return &n
			}
		}
		return nil
	}
	if said := number("result_rows"); said != nil && *said != rows {
		return s
	}
	s.ReadRows, s.ReadBytes = number("read_rows"), number("read_bytes")
	s.ResultBytes = number("result_bytes")
	s.PeakMemoryBytes = number("peak_memory_usage", "memory_usage")
	return s
}

var (
	_ engine.Rows   = (*rows)(nil)
	_ engine.Lender = (*rows)(nil)
)
