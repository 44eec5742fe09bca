package rows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
)

// kind is what a column's type means for its encoding. Types are named by the engine: the rules below know the usual names,
// and what they don't know is encoded so that nothing gets lost.
type kind struct {
	// narrow integers have at most 32 bits, which every JSON reader keeps.
	narrow bool
	// dates have no time of day.
	dates bool
}

// ClickHouse counts bits (Int8 has 8), PostgreSQL bytes (int8 has 64): only the capital letter tells them apart.
var (
	narrowType = regexp.MustCompile(`\bU?Int(8|16|32)\b|(?i)\b_?int[24]\b|\b(tiny|small|medium)?int(eger)?\b`)
	wideType   = regexp.MustCompile(`(?i)\bu?int(64|128|256)\b|\b(big|huge)int\b|decimal|numeric`)
	dateType   = regexp.MustCompile(`(?i)\bdate(32)?\b`)
	timeType   = regexp.MustCompile(`(?i)datetime|timestamp|\btime`)
)

func kindOf(typeName string) kind {
	return kind{
		narrow: narrowType.MatchString(typeName) && !wideType.MatchString(typeName),
		dates:  dateType.MatchString(typeName) && !timeType.MatchString(typeName),
	}
}

// Encoder writes rows as JSON arrays.
type Encoder struct {
	kinds []kind
	row   bytes.Buffer
	enc   *json.Encoder
	// digits is room for a number.
	digits [24]byte
}

// NewEncoder makes an encoder for rows with these columns.
func NewEncoder(columns []event.Column) *Encoder {
	e := &Encoder{}
	for _, c := range columns {
		e.kinds = append(e.kinds, kindOf(c.Type))
	}
	e.enc = json.NewEncoder(&e.row)
	e.enc.SetEscapeHTML(false) // < and > are as they are: escaping them would make every reader undo it
	return e
}

// Line is the row as a JSON array with a newline. It is good until the next call.
func (e *Encoder) Line(row []any) ([]byte, error) {
	e.row.Reset()
	e.row.WriteByte('[')
	for i, v := range row {
		if i > 0 {
			e.row.WriteByte(',')
		}
		if err := e.value(e.kind(i), v); err != nil {
			return nil, err
		}
	}
	e.row.WriteString("]\n")
	return e.row.Bytes(), nil
}

func (e *Encoder) kind(i int) kind {
	if i < len(e.kinds) {
		return e.kinds[i]
	}
	return kind{}
}

func (e *Encoder) value(c kind, v any) error {
	switch x := v.(type) {
	case nil:
		e.row.WriteString("null")
	case bool:
		e.row.WriteString(strconv.FormatBool(x))
	case int64:
		e.number(c, strconv.AppendInt(e.digits[:0], x, 10))
	case uint64:
		e.number(c, strconv.AppendUint(e.digits[:0], x, 10))
	case exact: // read from JSON, where it was a number
		e.row.WriteString(string(x))
	case json.Number:
		return e.text(x.String())
	case float64:
		if text, odd := oddFloat(x); odd {
			return e.text(text)
		}
		return e.plain(x)
	case string:
		return e.text(x)
	case time.Time:
		return e.text(timeText(c, x))
	case []any:
		e.row.WriteByte('[')
		for i, el := range x {
			if i > 0 {
				e.row.WriteByte(',')
			}
			if err := e.value(c, el); err != nil {
				return err
			}
		}
		e.row.WriteByte(']')
	case map[string]any:
		return e.object(c, x)
	default:
		return fmt.Errorf("a value of Go type %T is none that an engine may give", v)
	}
	return nil
}

func (e *Encoder) object(c kind, m map[string]any) error {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names) // equal rows are equal bytes
	e.row.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			e.row.WriteByte(',')
		}
		if err := e.text(name); err != nil {
			return err
		}
		e.row.WriteByte(':')
		if err := e.value(c, m[name]); err != nil {
			return err
		}
	}
	e.row.WriteByte('}')
	return nil
}

func (e *Encoder) number(c kind, digits []byte) {
	if c.narrow {
		e.row.Write(digits)
		return
	}
	e.row.WriteByte('"')
	e.row.Write(digits)
	e.row.WriteByte('"')
}

// text writes a text. Most have nothing to be escaped, and are written as they are.
func (e *Encoder) text(s string) error {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b == '"' || b == '\\' || b >= 0x7f {
			return e.plain(s)
		}
	}
	e.row.WriteByte('"')
	e.row.WriteString(s)
	e.row.WriteByte('"')
	return nil
}

// plain writes what encoding/json writes.
func (e *Encoder) plain(v any) error {
	if err := e.enc.Encode(v); err != nil {
		return err
	}
	e.row.Truncate(e.row.Len() - 1) // the encoder's newline
	return nil
}

// oddFloat is the text of a float that JSON has no number for.
func oddFloat(x float64) (text string, odd bool) {
	switch {
	case math.IsNaN(x):
		return "NaN", true
	case math.IsInf(x, 1):
		return "Infinity", true
	case math.IsInf(x, -1):
		return "-Infinity", true
	default:
		return "", false
	}
}

func timeText(c kind, t time.Time) string {
	if c.dates {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.RFC3339Nano)
}

// exact is a JSON number with its own digits, to tell it from a decimal, which JSON has as text.
type exact string

// Read hands over the rows of NDJSON, or of one JSON array of rows, until the end or the first error. Its values are nil, bool,
// string, []any, map[string]any, and numbers that no step has rounded; they suit every Writer.
func Read(r io.Reader, array bool, row func([]any) error) error {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	if array {
		if t, err := dec.Token(); err != nil || t != json.Delim('[') {
			return fmt.Errorf("reading rows: they do not begin with an array: %w", err)
		}
	}
	for n := 1; ; n++ {
		if array && !dec.More() {
			if _, err := dec.Token(); err != nil {
				return fmt.Errorf("reading rows: the array does not end: %w", err)
			}
			return nil
		}
		var values []any
		err := dec.Decode(&values)
		if errors.Is(err, io.EOF) && !array {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading row %d: %w", n, err)
		}
		for i := range values {
			values[i] = keepNumbers(values[i])
		}
		if err := row(values); err != nil {
			return err
		}
	}
}

func keepNumbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		return exact(x)
	case []any:
		for i := range x {
			x[i] = keepNumbers(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = keepNumbers(x[k])
		}
	}
	return v
}
