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
	pieces
	kinds  kinds
	nested []byte // room for arrays and objects, which are JSON within a field
}

func newCSV(w io.Writer, columns []event.Column) *csvWriter {
	c := &csvWriter{pieces: pieces{w: w}, kinds: kindsOf(columns)}
	for i, col := range columns {
		c.sep(i)
		c.text(col.Name)
	}
	c.held = append(c.held, "\r\n"...)
	return c
}

// Write writes one record.
func (c *csvWriter) Write(row []any) error {
	before := len(c.held)
	for i, v := range row {
		c.sep(i)
		if err := c.value(c.kinds.of(i), v); err != nil {
			c.held = c.held[:before]
			return err
		}
	}
	c.held = append(c.held, "\r\n"...)
	return c.rowDone()
}

func (c *csvWriter) sep(i int) {
	if i > 0 {
		c.held = append(c.held, ',')
	}
}

func (c *csvWriter) value(k kind, v any) (err error) {
	switch x := v.(type) {
	case nil: // nothing
	case bool:
		c.held = strconv.AppendBool(c.held, x)
	case int64:
		c.held = strconv.AppendInt(c.held, x, 10)
	case *int64:
		c.held = strconv.AppendInt(c.held, *x, 10)
	case uint64:
		c.held = strconv.AppendUint(c.held, x, 10)
	case *uint64:
		c.held = strconv.AppendUint(c.held, *x, 10)
	case float64:
		c.held = appendFloat(c.held, x)
	case *float64:
		c.held = appendFloat(c.held, *x)
	case time.Time:
		c.held = appendTime(c.held, k, x)
	case *time.Time:
		c.held = appendTime(c.held, k, *x)
	case exact:
		c.held = append(c.held, x...)
	case json.Number:
		c.text(x.String())
	case string:
		c.text(x)
	case *string:
		c.text(*x)
	default: // as JSON writes it
		if c.nested, err = appendValue(c.nested[:0], k, v); err == nil {
			c.text(string(c.nested))
		}
	}
	return err
}

func (c *csvWriter) text(s string) {
	if s != "" && !special(s) {
		c.held = append(c.held, s...)
		return
	}
	c.held = append(c.held, '"')
	for {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			break
		}
		c.held = append(append(c.held, s[:i+1]...), '"')
		s = s[i+1:]
	}
	c.held = append(append(c.held, s...), '"')
}

// special says that a text must be quoted. One look for each byte is faster than one look for all of them.
func special(s string) bool {
	return s[0] == ' ' || s[len(s)-1] == ' ' || strings.IndexByte(s, '"') >= 0 || strings.IndexByte(s, ',') >= 0 ||
		strings.IndexByte(s, '\n') >= 0 || strings.IndexByte(s, '\r') >= 0
}
