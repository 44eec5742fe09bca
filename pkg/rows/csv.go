package rows

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
)

// csvWriter writes CSV. encoding/csv can't tell NULL from an empty text, so the quoting is done here.
type csvWriter struct {
	w      io.Writer
	nested *Encoder // for arrays and objects, which are JSON within a field
	line   []byte
	size   int64
}

func newCSV(w io.Writer, columns []event.Column) (*csvWriter, error) {
	c := &csvWriter{w: w, nested: NewEncoder(columns)}
	for i, col := range columns {
		c.sep(i)
		c.text(col.Name)
	}
	return c, c.end()
}

// Write writes one record.
func (c *csvWriter) Write(row []any) error {
	for i, v := range row {
		c.sep(i)
		if err := c.value(i, v); err != nil {
			c.line = c.line[:0]
			return err
		}
	}
	return c.end()
}

// Size is exact.
func (c *csvWriter) Size() int64 { return c.size }

// Close has nothing to write.
func (c *csvWriter) Close() error { return nil }

func (c *csvWriter) sep(i int) {
	if i > 0 {
		c.line = append(c.line, ',')
	}
}

func (c *csvWriter) end() error {
	c.line = append(c.line, '\r', '\n')
	_, err := c.w.Write(c.line)
	c.size += int64(len(c.line))
	c.line = c.line[:0]
	return err
}

func (c *csvWriter) value(i int, v any) error {
	switch x := v.(type) {
	case nil: // nothing
	case bool:
		c.line = strconv.AppendBool(c.line, x)
	case int64:
		c.line = strconv.AppendInt(c.line, x, 10)
	case uint64:
		c.line = strconv.AppendUint(c.line, x, 10)
	case exact:
		c.line = append(c.line, x...)
	case json.Number:
		c.text(x.String())
	case string:
		c.text(x)
	case time.Time:
		c.text(timeText(c.nested.kind(i), x))
	case float64:
		if text, odd := oddFloat(x); odd {
			c.text(text)
			return nil
		}
		return c.json(i, v)
	default:
		return c.json(i, v)
	}
	return nil
}

// json writes a value as JSON writes it.
func (c *csvWriter) json(i int, v any) error {
	c.nested.row.Reset()
	if err := c.nested.value(c.nested.kind(i), v); err != nil {
		return err
	}
	c.text(c.nested.row.String())
	return nil
}

func (c *csvWriter) text(s string) {
	if s != "" && !strings.ContainsAny(s, "\",\r\n") && s[0] != ' ' && s[len(s)-1] != ' ' {
		c.line = append(c.line, s...)
		return
	}
	c.line = append(c.line, '"')
	for {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			break
		}
		c.line = append(append(c.line, s[:i+1]...), '"')
		s = s[i+1:]
	}
	c.line = append(append(c.line, s...), '"')
}
