package spark

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/pointsman/pointsman/pkg/engine/spark/connect"
)

// batch is the part of the result that is here and was not read yet.
type batch struct {
	records []arrow.RecordBatch
	at      int // the current row of the first one; -1 is before it
}

var errBatch = errors.New("the batch is not what the server says of it")

// load takes a batch, which is a whole stream of Arrow's IPC format.
func (b *batch) load(m *connect.ExecutePlanResponse_ArrowBatch, columns int) (err error) {
	defer func() { // the library panics on some of what is no Arrow
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errBatch, p)
		}
	}()
	reader, err := ipc.NewReader(bytes.NewReader(m.GetData()))
	if err != nil {
		return err
	}
	defer reader.Release()
	var rows int64
	for reader.Next() {
		record := reader.RecordBatch()
		if record.NumCols() != int64(columns) {
			return fmt.Errorf("%w: it has %d columns, and the result %d", errBatch, record.NumCols(), columns)
		}
		if record.NumRows() == 0 {
			continue
		}
		record.Retain()
		if len(b.records) == 0 {
			b.at = -1
		}
		b.records = append(b.records, record)
		rows += record.NumRows()
	}
	if err := reader.Err(); err != nil {
		return err
	}
	if rows != m.GetRowCount() {
		return fmt.Errorf("%w: it has %d rows and should have %d", errBatch, rows, m.GetRowCount())
	}
	return nil
}

// more says that there is a row behind the current one.
func (b *batch) more() bool {
	return len(b.records) > 1 || len(b.records) == 1 && int64(b.at+1) < b.records[0].NumRows()
}

// next moves to the next row, if it is here.
func (b *batch) next() bool {
	for len(b.records) > 0 {
		if b.at++; int64(b.at) < b.records[0].NumRows() {
			return true
		}
		b.records[0].Release()
		b.records, b.at = b.records[1:], -1
	}
	return false
}

// values are the current row.
func (b *batch) values(types []*connect.DataType) (row []any, err error) {
	if len(b.records) == 0 || b.at < 0 {
		return nil, errors.New("there is no current row")
	}
	defer func() {
		if p := recover(); p != nil {
			row, err = nil, fmt.Errorf("%w: %v", errBatch, p)
		}
	}()
	row = make([]any, len(types))
	for i, t := range types {
		if row[i], err = value(b.records[0].Column(i), b.at, t); err != nil {
			return nil, fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return row, nil
}
