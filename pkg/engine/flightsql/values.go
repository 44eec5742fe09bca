package flightsql

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// cell gives a column's value of a row of the batch.
type cell func(row int) any

// cellsOf reads the columns of a batch.
func cellsOf(batch arrow.RecordBatch, want int) (out []cell, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("%w: %v", errGarbage, p)
		}
	}()
	if int(batch.NumCols()) != want {
		return nil, fmt.Errorf("%w: a batch of %d columns in a result of %d", errGarbage, batch.NumCols(), want)
	}
	out = make([]cell, want)
	for i, column := range batch.Columns() {
		c, err := cellOf(column)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", batch.ColumnName(i), err)
		}
		out[i] = c
	}
	return out, nil
}

// cellOf is a cell that knows NULL.
func cellOf(a arrow.Array) (cell, error) {
	read, err := reader(a)
	if err != nil {
		return nil, err
	}
	if _, own := a.(array.Union); own { // its NULLs are those of its children
		return read, nil
	}
	return func(i int) any {
		if a.IsNull(i) {
			return nil
		}
		return read(i)
	}, nil
}

// reader reads values that are not NULL.
func reader(a arrow.Array) (cell, error) {
	switch a := a.(type) {
	case *array.Null:
		return func(int) any { return nil }, nil
	case *array.Boolean:
		return func(i int) any { return a.Value(i) }, nil
	case *array.Int8:
		return func(i int) any { return int64(a.Value(i)) }, nil
	case *array.Int16:
		return func(i int) any { return int64(a.Value(i)) }, nil
	case *array.Int32:
		return func(i int) any { return int64(a.Value(i)) }, nil
	case *array.Int64:
		return func(i int) any { return a.Value(i) }, nil
	case *array.Uint8:
		return func(i int) any { return uint64(a.Value(i)) }, nil
	case *array.Uint16:
		return func(i int) any { return uint64(a.Value(i)) }, nil
	case *array.Uint32:
		return func(i int) any { return uint64(a.Value(i)) }, nil
	case *array.Uint64:
		return func(i int) any { return a.Value(i) }, nil
	case *array.Float16:
		return func(i int) any { return shortest(a.Value(i).Float32()) }, nil
	case *array.Float32:
		return func(i int) any { return shortest(a.Value(i)) }, nil
	case *array.Float64:
		return func(i int) any { return a.Value(i) }, nil
	case *array.Decimal32:
		scale := a.DataType().(*arrow.Decimal32Type).Scale
		return func(i int) any { return scaled(big.NewInt(int64(a.Value(i))), scale) }, nil
	case *array.Decimal64:
		scale := a.DataType().(*arrow.Decimal64Type).Scale
		return func(i int) any { return scaled(big.NewInt(int64(a.Value(i))), scale) }, nil
	case *array.Decimal128:
		scale := a.DataType().(*arrow.Decimal128Type).Scale
		return func(i int) any { return scaled(a.Value(i).BigInt(), scale) }, nil
	case *array.Decimal256:
		scale := a.DataType().(*arrow.Decimal256Type).Scale
		return func(i int) any { return scaled(a.Value(i).BigInt(), scale) }, nil
	case *array.String:
		return func(i int) any { return text(a.Value(i)) }, nil
	case *array.LargeString:
		return func(i int) any { return text(a.Value(i)) }, nil
	case *array.StringView:
		return func(i int) any { return text(a.Value(i)) }, nil
	case *array.Binary:
		return func(i int) any { return digits(a.Value(i)) }, nil
	case *array.LargeBinary:
		return func(i int) any { return digits(a.Value(i)) }, nil
	case *array.BinaryView:
		return func(i int) any { return digits(a.Value(i)) }, nil
	case *array.FixedSizeBinary:
		return func(i int) any { return digits(a.Value(i)) }, nil
	default:
		return timeReader(a)
	}
}

// shortest is the decimal that reads back as the same float: 0.1 stays 0.1 and does not become 0.10000000149011612.
func shortest(f float32) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return float64(f)
	}
	return out
}

// text copies a text out of the batch, whose memory is the next one's. Bytes that are none are hexadecimal digits.
func text(s string) any {
	if !utf8.ValidString(s) {
		return digits([]byte(s))
	}
	return string([]byte(s))
}

func digits(b []byte) any { return "0x" + hex.EncodeToString(b) }

// scaled keeps every digit of a decimal.
func scaled(n fmt.Stringer, scale int32) any {
	digits, sign := n.String(), ""
	if digits[0] == '-' {
		digits, sign = digits[1:], "-"
	}
	switch {
	case scale < 0 && digits != "0":
		digits += zeros(int(-scale))
	case scale > 0:
		if missing := int(scale) + 1 - len(digits); missing > 0 {
			digits = zeros(missing) + digits
		}
		point := len(digits) - int(scale)
		digits = digits[:point] + "." + digits[point:]
	}
	return json.Number(sign + digits)
}

func zeros(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0'
	}
	return string(b)
}

func timeReader(a arrow.Array) (cell, error) {
	switch a := a.(type) {
	case *array.Date32:
		return func(i int) any { return day(a.Value(i).ToTime()) }, nil
	case *array.Date64:
		return func(i int) any { return day(a.Value(i).ToTime()) }, nil
	case *array.Timestamp:
		t := a.DataType().(*arrow.TimestampType)
		if t.TimeZone == "" {
			return func(i int) any { return a.Value(i).ToTime(t.Unit).UTC().Format("2006-01-02T15:04:05.999999999") }, nil
		}
		return func(i int) any { return a.Value(i).ToTime(t.Unit).UTC() }, nil
	case *array.Time32:
		unit := a.DataType().(*arrow.Time32Type).Unit
		return func(i int) any { return clock(int64(a.Value(i)), unit) }, nil
	case *array.Time64:
		unit := a.DataType().(*arrow.Time64Type).Unit
		return func(i int) any { return clock(int64(a.Value(i)), unit) }, nil
	case *array.Duration:
		unit := a.DataType().(*arrow.DurationType).Unit
		return func(i int) any { return fmt.Sprintf("%d %s", a.Value(i), unit) }, nil
	case *array.MonthInterval:
		return func(i int) any { return fmt.Sprintf("%d months", a.Value(i)) }, nil
	case *array.DayTimeInterval:
		return func(i int) any { v := a.Value(i); return fmt.Sprintf("%d days %d ms", v.Days, v.Milliseconds) }, nil
	case *array.MonthDayNanoInterval:
		return func(i int) any {
			v := a.Value(i)
			return fmt.Sprintf("%d months %d days %d ns", v.Months, v.Days, v.Nanoseconds)
		}, nil
	default:
		return nested(a)
	}
}

// day is midnight in UTC, or the text of a day that no calendar of four digits has.
func day(t time.Time) any {
	t = t.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		return t.Format(time.DateOnly)
	}
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

func clock(n int64, unit arrow.TimeUnit) any {
	return time.Unix(0, 0).UTC().Add(time.Duration(n) * unit.Multiplier()).Format("15:04:05.999999999")
}
