package result

import (
	"bytes"
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/rows"
)

// Sink takes the rows of one result. It belongs to one goroutine.
type Sink struct {
	store   *Store
	name    string // of the file, without its ending
	format  rows.Format
	columns []event.Column
	inline  int64

	line      *rows.Encoder
	held      bytes.Buffer // rows as lines of JSON, as long as they may fit into the Outcome
	file      *file
	out       rows.Writer // into the file
	rows      int64
	truncated bool
}

// Add takes a row, whose values may be lent (engine.Lender). full means that the size cap is reached: this row and all that follow are cut off.
func (k *Sink) Add(values []any) (full bool, err error) {
	if k.file == nil {
		line, err := k.line.Line(values)
		if err != nil {
			return false, fmt.Errorf("encoding row %d: %w", k.rows+1, err)
		}
		size := int64(k.held.Len() + len(line))
		if k.over(size) {
			k.truncated = true
			return true, nil
		}
		if size+2 <= k.inline { // two brackets
			k.held.Write(line)
			k.rows++
			return false, nil
		}
		if err := k.spill(); err != nil {
			return false, err
		}
	}
	if k.full() {
		k.truncated = true
		return true, nil
	}
	if err := k.out.Write(values); err != nil {
		return false, fmt.Errorf("writing row %d: %w", k.rows+1, err)
	}
	k.rows++
	return false, nil
}

// full says that the file has no place for a row of average size, so that the cap is not overstepped by more than what one row
// differs from the others.
func (k *Sink) full() bool {
	size := k.out.Size()
	if !k.over(2*size) || k.rows == 0 { // no row on average is larger than all of them
		return k.over(size)
	}
	return k.over(size + size/k.rows)
}

func (k *Sink) over(size int64) bool {
	return k.store.cfg.MaxBytes > 0 && size > k.store.cfg.MaxBytes
}

// spill moves what was held into a file.
func (k *Sink) spill() error {
	f, err := k.store.create()
	if err != nil {
		return fmt.Errorf("making a result file: %w", err)
	}
	k.file = f
	if k.out, err = rows.NewWriter(k.format, f, k.columns); err != nil {
		return fmt.Errorf("making a result file: %w", err)
	}
	if err := rows.Read(&k.held, false, k.out.Write); err != nil {
		return fmt.Errorf("writing a result file: %w", err)
	}
	k.held = bytes.Buffer{}
	return nil
}

// Finish ends the result. It is nil for a statement that has none.
func (k *Sink) Finish(now time.Time) (*event.Result, error) {
	if len(k.columns) == 0 && k.rows == 0 {
		return nil, nil
	}
	r := &event.Result{Columns: k.columns, Rows: k.rows, Bytes: int64(k.held.Len()), Truncated: k.truncated}
	if k.file == nil {
		r.Format = string(rows.JSON)
		r.Inline = inline(k.held.Bytes())
		return r, nil
	}
	return r, k.finishFile(r, now)
}

// ToFile moves a finished inline result into a file, for an Outcome that turned out too large for its topic.
func (k *Sink) ToFile(r *event.Result, now time.Time) error {
	if r == nil || r.Format != string(rows.JSON) {
		return nil
	}
	err := k.spill()
	if err == nil {
		err = k.finishFile(r, now)
	}
	if err != nil {
		k.Discard()
	}
	return err
}

func (k *Sink) finishFile(r *event.Result, now time.Time) error {
	if err := k.out.Close(); err != nil {
		return fmt.Errorf("writing a result file: %w", err)
	}
	name, f := k.name+endings[k.format], k.file
	k.file = nil
	if err := k.store.publish(f, name); err != nil {
		return fmt.Errorf("finishing a result file: %w", err)
	}
	expires := now.Add(k.store.cfg.Keep).UTC().Truncate(time.Millisecond)
	r.Format, r.Inline, r.File, r.ExpiresAt, r.Bytes = string(k.format), nil, name, &expires, k.out.Size()
	return nil
}

// Discard drops an unfinished result.
func (k *Sink) Discard() {
	if k.file != nil {
		k.file.discard()
		k.file = nil
	}
	k.held = bytes.Buffer{}
}

// inline turns lines into one array.
func inline(lines []byte) []byte {
	out := make([]byte, 0, len(lines)+2)
	out = append(out, '[')
	for len(lines) > 0 {
		i := bytes.IndexByte(lines, '\n')
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, lines[:i]...)
		lines = lines[i+1:]
	}
	return append(out, ']')
}
