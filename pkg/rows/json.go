package rows

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	// openType may hold anything, whatever its name says of a part of it: JSON(a Int32) holds 64-bit integers at other paths.
	openType = regexp.MustCompile(`(?i)\b(json|dynamic)\b`)
)

func kindOf(typeName string) kind {
	if openType.MatchString(typeName) {
		return kind{}
	}
	return kind{
		narrow: narrowType.MatchString(typeName) && !wideType.MatchString(typeName),
		dates:  dateType.MatchString(typeName) && !timeType.MatchString(typeName),
	}
}

// kinds are those of a result's columns.
type kinds []kind

func kindsOf(columns []event.Column) kinds {
	out := make(kinds, len(columns))
	for i, c := range columns {
		out[i] = kindOf(c.Type)
	}
	return out
}

// of is the kind of a column. An engine that names no columns still gives values.
func (k kinds) of(i int) kind {
	if i < len(k) {
		return k[i]
	}
	return kind{}
}

// Encoder writes rows as JSON arrays.
type Encoder struct {
	kinds kinds
	row   []byte
}

// NewEncoder makes an encoder for rows with these columns.
func NewEncoder(columns []event.Column) *Encoder { return &Encoder{kinds: kindsOf(columns)} }

// Line is the row as a JSON array with a newline. It is good until the next call.
func (e *Encoder) Line(row []any) (line []byte, err error) {
	e.row, err = e.kinds.appendLine(e.row[:0], row)
	return e.row, err
}

// appendLine adds the row as a JSON array with a newline, and nothing if a value of it can't be written.
func (k kinds) appendLine(dst []byte, row []any) ([]byte, error) {
	before := len(dst)
	dst = append(dst, '[')
	for i, v := range row {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendValue(dst, k.of(i), v); err != nil {
			return dst[:before], err
		}
	}
	return append(dst, "]\n"...), nil
}

// appendValue adds a value as JSON.
func appendValue(dst []byte, c kind, v any) ([]byte, error) {
	switch x := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, x), nil
	case int64:
		return appendInt(dst, c, x), nil
	case *int64:
		return appendInt(dst, c, *x), nil
	case uint64:
		return appendUint(dst, c, x), nil
	case *uint64:
		return appendUint(dst, c, *x), nil
	case exact: // read from JSON, where it was a number
		return append(dst, x...), nil
	case json.Number:
		return appendQuoted(dst, x.String()), nil
	case float64:
		return appendNumber(dst, x), nil
	case *float64:
		return appendNumber(dst, *x), nil
	case string:
		return appendQuoted(dst, x), nil
	case *string:
		return appendQuoted(dst, *x), nil
	case time.Time:
		return append(appendTime(append(dst, '"'), c, x), '"'), nil
	case *time.Time:
		return append(appendTime(append(dst, '"'), c, *x), '"'), nil
	case []any:
		dst = append(dst, '[')
		for i, el := range x {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = appendValue(dst, c, el); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case map[string]any:
		return appendObject(dst, c, x)
	default:
		return dst, fmt.Errorf("a value of Go type %T is none that an engine may give", v)
	}
}

func appendInt(dst []byte, c kind, x int64) []byte {
	if c.narrow {
		return strconv.AppendInt(dst, x, 10)
	}
	return append(strconv.AppendInt(append(dst, '"'), x, 10), '"')
}

func appendUint(dst []byte, c kind, x uint64) []byte {
	if c.narrow {
		return strconv.AppendUint(dst, x, 10)
	}
	return append(strconv.AppendUint(append(dst, '"'), x, 10), '"')
}

// appendNumber writes a float; what JSON has no number for is a text.
func appendNumber(dst []byte, x float64) []byte {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return append(appendFloat(append(dst, '"'), x), '"')
	}
	return appendFloat(dst, x)
}

func appendObject(dst []byte, c kind, m map[string]any) ([]byte, error) {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(m)) { // equal rows are equal bytes
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendQuoted(dst, name), ':')
		var err error
		if dst, err = appendValue(dst, c, m[name]); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendFloat writes what encoding/json writes: the shortest digits that read back as the same number, with an exponent where it is
// very large or very small. What is no number is a word.
func appendFloat(dst []byte, x float64) []byte {
	switch abs := math.Abs(x); {
	case math.IsInf(x, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(x, -1):
		return append(dst, "-Infinity"...)
	case math.IsNaN(x):
		return append(dst, "NaN"...)
	case abs == 0 || (abs >= 1e-6 && abs < 1e21):
		return strconv.AppendFloat(dst, x, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, x, 'e', -1, 64)
	if n := len(dst); dst[n-3] == '-' && dst[n-2] == '0' { // e-09 is e-9
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

func appendTime(dst []byte, c kind, t time.Time) []byte {
	if c.dates {
		return t.AppendFormat(dst, time.DateOnly)
	}
	return t.AppendFormat(dst, time.RFC3339Nano)
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
