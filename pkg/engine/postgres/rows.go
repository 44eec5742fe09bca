package postgres

import (
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pointsman/pointsman/pkg/engine/wire"
	"github.com/pointsman/pointsman/pkg/event"
)

// cursor reads one result.
type cursor struct {
	engine  *Engine
	reader  *pgconn.ResultReader
	columns []event.Column
	kinds   []*kind
}

var _ wire.Cursor = (*cursor)(nil)

// Next moves to the next row.
func (c *cursor) Next() (bool, error) {
	row := c.reader.NextRow()
	if c.columns == nil {
		c.describe()
	}
	if row {
		return true, nil
	}
	_, err := c.reader.Close()
	return false, err
}

func (c *cursor) describe() {
	for _, f := range c.reader.FieldDescriptions() {
		k := c.engine.kindOf(f.DataTypeOID)
		c.columns = append(c.columns, event.Column{Name: f.Name, Type: k.typeName(f.TypeModifier)})
		c.kinds = append(c.kinds, k)
	}
}

// Columns names the result's columns.
func (c *cursor) Columns() []event.Column { return c.columns }

// Values are the current row's values.
func (c *cursor) Values() []any {
	raw := c.reader.Values()
	out := make([]any, len(raw))
	for i, text := range raw {
		if text != nil {
			out[i] = c.kinds[i].value(string(text))
		}
	}
	return out
}

// Close reads up to the server's word that it was stopped, or that it was over before.
func (c *cursor) Close() { _, _ = c.reader.Close() }
