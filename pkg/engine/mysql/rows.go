package mysql

import (
	"database/sql/driver"
	"errors"
	"io"

	"github.com/pointsman/pointsman/pkg/engine/wire"
	"github.com/pointsman/pointsman/pkg/event"
)

// cursor reads one result.
type cursor struct {
	inner   driver.Rows
	columns []event.Column
	kinds   []kind
	row     []driver.Value
}

var _ wire.Cursor = (*cursor)(nil)

func newCursor(s *session, inner driver.Rows) *cursor {
	c := &cursor{inner: inner}
	names := inner.Columns()
	typed, _ := inner.(driver.RowsColumnTypeDatabaseTypeName)
	for i, name := range names {
		k := kindOf(typed.ColumnTypeDatabaseTypeName(i), s.local)
		c.kinds = append(c.kinds, k)
		c.columns = append(c.columns, event.Column{Name: name, Type: k.name})
	}
	c.row = make([]driver.Value, len(names))
	return c
}

// Columns names the result's columns.
func (c *cursor) Columns() []event.Column { return c.columns }

// Next moves to the next row. Later results of a procedure are not delivered, but their errors are.
func (c *cursor) Next() (bool, error) {
	err := next(c.inner, c.row)
	if errors.Is(err, io.EOF) {
		return false, shut(c.inner)
	}
	return err == nil, err
}

// Values are the current row's values.
func (c *cursor) Values() []any {
	out := make([]any, len(c.row))
	for i, v := range c.row {
		out[i] = c.kinds[i].value(v)
	}
	return out
}

// Close reads up to the server's word that it was stopped, or that it was over before.
func (c *cursor) Close() { _ = shut(c.inner) }
