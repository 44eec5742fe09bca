package rows

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/pointsman/pointsman/pkg/event"
)

// A batch is written when it has this many rows, or about this many bytes: what is held back stays small, whatever the rows are.
const (
	batchRows  = 8192
	batchBytes = 1 << 20
)

// arrowWriter writes an Arrow IPC stream.
type arrowWriter struct {
	out   *counter
	kinds kinds
	text  []byte // room for the text of what has no Arrow type of its own
	build *array.RecordBuilder
	w     *ipc.Writer
	rows  int
	held  int64 // about how many bytes are in the builder
	names []string
}

// counter gathers the many small pieces of a batch and counts their bytes.
type counter struct {
	w *bufio.Writer
	n int64
}

// Write counts.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func newArrow(w io.Writer, columns []event.Column) *arrowWriter {
	a := &arrowWriter{out: &counter{w: bufio.NewWriterSize(w, 64<<10)}, kinds: kindsOf(columns)}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = arrow.Field{
			Name: c.Name, Type: arrowType(c.Type), Nullable: true,
			Metadata: arrow.NewMetadata([]string{"engine_type"}, []string{c.Type}),
		}
		a.names = append(a.names, c.Name)
	}
	schema := arrow.NewSchema(fields, nil)
	a.build = array.NewRecordBuilder(memory.DefaultAllocator, schema)
	a.w = ipc.NewWriter(a.out, ipc.WithSchema(schema))
	return a
}

// Write adds a row to the batch. After an error the stream is no good any more.
func (a *arrowWriter) Write(row []any) error {
	if len(row) != len(a.names) {
		return fmt.Errorf("a row of %d values does not fit %d columns", len(row), len(a.names))
	}
	for i, v := range row {
		if err := a.append(a.build.Field(i), a.kinds.of(i), v); err != nil {
			return fmt.Errorf("column %d (%s): %w", i+1, a.names[i], err)
		}
	}
	a.rows++
	if a.rows >= batchRows || a.held >= batchBytes {
		return a.flush()
	}
	return nil
}

func (a *arrowWriter) flush() error {
	batch := a.build.NewRecordBatch()
	defer batch.Release()
	a.rows, a.held = 0, 0
	return a.w.Write(batch)
}

// Size counts what is held back by the size of its values.
func (a *arrowWriter) Size() int64 { return a.out.n + a.held }

// Close writes the last batch and the end of the stream; a stream without rows has its schema.
func (a *arrowWriter) Close() error {
	defer a.build.Release()
	var err error
	if a.rows > 0 {
		err = a.flush()
	}
	return errors.Join(err, a.w.Close(), a.out.w.Flush())
}

// ErrUnfit is a value that the Arrow type of its column can't keep, such as PostgreSQL's infinite dates. Other formats take it.
var ErrUnfit = errors.New("does not fit the Arrow type of its column")

func (a *arrowWriter) append(b array.Builder, k kind, v any) error {
	a.held += 8
	if v == nil {
		b.AppendNull()
		return nil
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		text, err := a.asText(k, v)
		a.held += int64(len(text))
		if !utf8.ValidString(text) { // it is far faster than the one that mends
			text = string([]rune(text)) // each byte that is none, as in JSON
		}
		b.Append(text)
		return err
	case *array.BooleanBuilder:
		x, ok := v.(bool)
		if !ok {
			return unfit(v)
		}
		b.Append(x)
	case *array.Int8Builder:
		return signed(v, 8, func(n int64) { b.Append(int8(n)) })
	case *array.Int16Builder:
		return signed(v, 16, func(n int64) { b.Append(int16(n)) })
	case *array.Int32Builder:
		return signed(v, 32, func(n int64) { b.Append(int32(n)) })
	case *array.Int64Builder:
		return signed(v, 64, b.Append)
	case *array.Uint8Builder:
		return unsigned(v, 8, func(n uint64) { b.Append(uint8(n)) })
	case *array.Uint16Builder:
		return unsigned(v, 16, func(n uint64) { b.Append(uint16(n)) })
	case *array.Uint32Builder:
		return unsigned(v, 32, func(n uint64) { b.Append(uint32(n)) })
	case *array.Uint64Builder:
		return unsigned(v, 64, b.Append)
	case *array.Float32Builder:
		return float(v, 32, func(x float64) { b.Append(float32(x)) })
	case *array.Float64Builder:
		return float(v, 64, b.Append)
	case *array.Date32Builder:
		t, err := instant(v, time.DateOnly)
		if err != nil {
			return err
		}
		b.Append(arrow.Date32FromTime(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)))
	case *array.TimestampBuilder:
		t, err := instant(v, time.RFC3339Nano)
		if err != nil {
			return err
		}
		ts, err := arrow.TimestampFromTime(t, b.Type().(*arrow.TimestampType).Unit)
		if err != nil {
			return fmt.Errorf("%s %w: %w", t.Format(time.RFC3339Nano), ErrUnfit, err)
		}
		b.Append(ts)
	case *array.Decimal128Builder:
		d := b.Type().(*arrow.Decimal128Type)
		n, err := unscaled(v, d.Precision, d.Scale)
		if err != nil {
			return err
		}
		b.Append(decimal128.FromBigInt(n))
	case *array.Decimal256Builder:
		d := b.Type().(*arrow.Decimal256Type)
		n, err := unscaled(v, d.Precision, d.Scale)
		if err != nil {
			return err
		}
		b.Append(decimal256.FromBigInt(n))
	case *array.ListBuilder:
		list, ok := v.([]any)
		if !ok {
			return unfit(v)
		}
		b.Append(true)
		for _, e := range list {
			if err := a.append(b.ValueBuilder(), k, e); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("no value can be written as %s", b.Type())
	}
	return nil
}

func unfit(v any) error { return fmt.Errorf("a value of Go type %T %w", v, ErrUnfit) }

// asText is the value as it stands in a line of JSON, a text without its quotes.
func (a *arrowWriter) asText(k kind, v any) (text string, err error) {
	if text, ok := asWritten(v); ok {
		return text, nil
	}
	switch x := v.(type) {
	case int64:
		a.text = strconv.AppendInt(a.text[:0], x, 10)
	case *int64:
		a.text = strconv.AppendInt(a.text[:0], *x, 10)
	case uint64:
		a.text = strconv.AppendUint(a.text[:0], x, 10)
	case *uint64:
		a.text = strconv.AppendUint(a.text[:0], *x, 10)
	case float64:
		a.text = appendFloat(a.text[:0], x)
	case *float64:
		a.text = appendFloat(a.text[:0], *x)
	case time.Time:
		a.text = appendTime(a.text[:0], k, x)
	case *time.Time:
		a.text = appendTime(a.text[:0], k, *x)
	default:
		a.text, err = appendValue(a.text[:0], k, v)
	}
	return string(a.text), err
}

// asWritten is a value that has its own text, which may be that of a number.
func asWritten(v any) (string, bool) {
	switch x := v.(type) {
	case string:
		return x, true
	case *string:
		return *x, true
	case exact:
		return string(x), true
	case json.Number:
		return x.String(), true
	default:
		return "", false
	}
}

func signed(v any, bits int, add func(int64)) error {
	var n int64
	ok := true
	switch x := v.(type) {
	case int64:
		n = x
	case *int64:
		n = *x
	case uint64:
		n, ok = int64(x), x <= math.MaxInt64
	case *uint64:
		n, ok = int64(*x), *x <= math.MaxInt64
	default:
		text, is := asWritten(v)
		parsed, err := strconv.ParseInt(text, 10, bits)
		n, ok = parsed, is && err == nil
	}
	if !ok || n > 1<<(bits-1)-1 || n < -1<<(bits-1) {
		return unfit(v)
	}
	add(n)
	return nil
}

func unsigned(v any, bits int, add func(uint64)) error {
	var n uint64
	ok := true
	switch x := v.(type) {
	case uint64:
		n = x
	case *uint64:
		n = *x
	case int64:
		n, ok = uint64(x), x >= 0
	case *int64:
		n, ok = uint64(*x), *x >= 0
	default:
		text, is := asWritten(v)
		parsed, err := strconv.ParseUint(text, 10, bits)
		n, ok = parsed, is && err == nil
	}
	if !ok || (bits < 64 && n >= 1<<bits) {
		return unfit(v)
	}
	add(n)
	return nil
}

func float(v any, bits int, add func(float64)) error {
	var x float64
	ok := true
	switch f := v.(type) {
	case float64:
		x = f
	case *float64:
		x = *f
	default:
		text, is := asWritten(v)
		parsed, err := strconv.ParseFloat(text, bits) // it knows NaN and Infinity too
		x, ok = parsed, is && err == nil
	}
	if !ok {
		return unfit(v)
	}
	add(x)
	return nil
}

func instant(v any, layout string) (time.Time, error) {
	switch x := v.(type) {
	case time.Time:
		return x, nil
	case *time.Time:
		return *x, nil
	}
	text, ok := asWritten(v)
	t, err := time.Parse(layout, text)
	if !ok || err != nil {
		return t, unfit(v)
	}
	return t, nil
}

// unscaled is a decimal's digits at a scale. A digit that the scale has no place for is an error and not rounded away.
func unscaled(v any, precision, scale int32) (*big.Int, error) {
	text, ok := asWritten(v)
	if !ok {
		return nil, unfit(v)
	}
	whole, fraction, _ := strings.Cut(text, ".")
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > int(scale) {
		return nil, unfit(v)
	}
	n, ok := new(big.Int).SetString(whole+fraction+strings.Repeat("0", int(scale)-len(fraction)), 10)
	if !ok || n.CmpAbs(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)) >= 0 {
		return nil, unfit(v)
	}
	return n, nil
}
