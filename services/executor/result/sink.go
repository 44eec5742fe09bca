package result

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
)

// Formats of results.
const (
	FormatJSON   = "json"
	FormatNDJSON = "ndjson"
)

// Sink takes the rows of one result. It belongs to one goroutine.
type Sink struct {
	store   *Store
	name    string
	columns []event.Column
	kinds   []kind
	inline  int64

	held      bytes.Buffer // rows, each with its newline, as long as they may fit into the Outcome
	file      *os.File
	out       *bufio.Writer
	rows      int64
	bytes     int64
	truncated bool
	row       bytes.Buffer
}

// Add takes a row. full means that the size cap is reached: this row and all that follow are cut off.
func (k *Sink) Add(values []any) (full bool, err error) {
	k.row.Reset()
	if err := k.encode(values); err != nil {
		return false, fmt.Errorf("encoding row %d: %w", k.rows+1, err)
	}
	size := int64(k.row.Len())
	if k.store.cfg.MaxBytes > 0 && k.bytes+size > k.store.cfg.MaxBytes {
		k.truncated = true
		return true, nil
	}
	if k.file == nil && k.bytes+size+2 > k.inline { // two brackets
		if err := k.spill(); err != nil {
			return false, err
		}
	}
	if k.file == nil {
		k.held.Write(k.row.Bytes())
	} else if _, err := k.out.Write(k.row.Bytes()); err != nil {
		return false, fmt.Errorf("writing a result file: %w", err)
	}
	k.rows++
	k.bytes += size
	return false, nil
}

// spill moves what is held into a file.
func (k *Sink) spill() error {
	f, err := k.store.create()
	if err != nil {
		return fmt.Errorf("making a result file: %w", err)
	}
	k.file, k.out = f, bufio.NewWriterSize(f, 64<<10)
	if _, err := k.out.Write(k.held.Bytes()); err != nil {
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
	r := &event.Result{Columns: k.columns, Rows: k.rows, Bytes: k.bytes, Truncated: k.truncated}
	if k.file == nil {
		r.Format = FormatJSON
		r.Inline = inline(k.held.Bytes())
		return r, nil
	}
	return r, k.finishFile(r, now)
}

// ToFile moves a finished inline result into a file, for an Outcome that turned out too large for its topic.
func (k *Sink) ToFile(r *event.Result, now time.Time) error {
	if r == nil || r.Format != FormatJSON {
		return nil
	}
	if err := k.spill(); err != nil {
		return err
	}
	return k.finishFile(r, now)
}

func (k *Sink) finishFile(r *event.Result, now time.Time) error {
	if err := k.out.Flush(); err != nil {
		return errors.Join(fmt.Errorf("writing a result file: %w", err), k.file.Close())
	}
	if err := k.store.publish(k.file, k.name); err != nil {
		return fmt.Errorf("finishing a result file: %w", err)
	}
	k.file = nil
	expires := now.Add(k.store.cfg.Keep).UTC().Truncate(time.Millisecond)
	r.Format, r.Inline, r.File, r.ExpiresAt = FormatNDJSON, nil, k.name, &expires
	return nil
}

// Discard drops an unfinished result.
func (k *Sink) Discard() {
	if k.file != nil {
		_ = k.file.Close()
		_ = os.Remove(k.file.Name())
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
