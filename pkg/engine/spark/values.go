package spark

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/pointsman/pointsman/pkg/engine/spark/connect"
)

var errType = errors.New("a value is not of the type that the server says")

// value is one value of a column, in the kinds that the port has.
func value(column arrow.Array, i int, t *connect.DataType) (any, error) {
	if column.IsNull(i) {
		return nil, nil
	}
	switch a := column.(type) {
	case *array.Null:
		return nil, nil
	case *array.Boolean:
		return a.Value(i), nil
	case *array.Int8:
		return int64(a.Value(i)), nil
	case *array.Int16:
		return int64(a.Value(i)), nil
	case *array.Int32:
		return int64(a.Value(i)), nil
	case *array.Int64:
		return a.Value(i), nil
	case *array.Float32:
		// The shortest decimal that reads back the same, not the digits that the wider type adds.
		return strconv.ParseFloat(strconv.FormatFloat(float64(a.Value(i)), 'g', -1, 32), 64)
	case *array.Float64:
		return a.Value(i), nil
	case *array.Decimal128:
		d, ok := a.DataType().(*arrow.Decimal128Type)
		if !ok {
			return nil, errType
		}
		return json.Number(a.Value(i).ToString(d.Scale)), nil
	case *array.String:
		return a.Value(i), nil
	case *array.LargeString:
		return a.Value(i), nil
	case *array.Binary:
		return "0x" + hex.EncodeToString(a.Value(i)), nil
	case *array.LargeBinary:
		return "0x" + hex.EncodeToString(a.Value(i)), nil
	case *array.Date32:
		return day(a.Value(i)), nil
	case *array.Timestamp:
		return timestamp(a, i)
	case *array.Time64:
		return clock(a, i)
	case *array.MonthInterval:
		var start, end *int32
		if of := t.GetYearMonthInterval(); of != nil {
			start, end = of.StartField, of.EndField
		}
		return yearMonthText(int64(a.Value(i)), start, end), nil
	case *array.Duration:
		var start, end *int32
		if of := t.GetDayTimeInterval(); of != nil {
			start, end = of.StartField, of.EndField
		}
		return dayTimeText(int64(a.Value(i)), start, end), nil
	case *array.MonthDayNanoInterval:
		return calendarText(a.Value(i)), nil
	case *array.Map:
		return mapping(a, i, t)
	case array.ListLike:
		start, end := a.ValueOffsets(i)
		return list(a.ListValues(), int(start), int(end), t.GetArray().GetElementType())
	case *array.Struct:
		return structure(a, i, t)
	default:
		return nil, fmt.Errorf("no value of the type %s is known", column.DataType())
	}
}

// inCalendar says that a year is one that an instant of the port has.
func inCalendar(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 }

// day is a date as its midnight. What no calendar has is a text, as Spark writes it.
func day(d arrow.Date32) any {
	t := time.Unix(int64(d)*86400, 0).UTC()
	if inCalendar(t) {
		return t
	}
	return yearText(t) + t.Format("-01-02")
}

func yearText(t time.Time) string {
	if y := t.Year(); y > 9999 {
		return fmt.Sprintf("+%d", y)
	} else if y < 0 {
		return fmt.Sprintf("-%04d", -y)
	}
	return fmt.Sprintf("%04d", t.Year())
}

// timestamp is an instant when its type has a zone, and else a text.
func timestamp(a *array.Timestamp, i int) (any, error) {
	unit, ok := a.DataType().(*arrow.TimestampType)
	if !ok || unit.Unit != arrow.Microsecond {
		return nil, errType
	}
	t := time.UnixMicro(int64(a.Value(i))).UTC()
	switch {
	case unit.TimeZone == "":
		return yearText(t) + t.Format("-01-02T15:04:05.999999"), nil
	case inCalendar(t):
		return t, nil
	default:
		return yearText(t) + t.Format("-01-02T15:04:05.999999Z"), nil
	}
}

// clock is a time of the day as a text.
func clock(a *array.Time64, i int) (any, error) {
	unit, ok := a.DataType().(*arrow.Time64Type)
	if !ok {
		return nil, errType
	}
	return a.Value(i).ToTime(unit.Unit).Format("15:04:05.999999999"), nil
}

func list(values arrow.Array, start, end int, t *connect.DataType) (any, error) {
	out := make([]any, 0, end-start)
	for j := start; j < end; j++ {
		v, err := value(values, j, t)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// mapping is a map with its keys as text.
func mapping(a *array.Map, i int, t *connect.DataType) (any, error) {
	start, end := a.ValueOffsets(i)
	out := make(map[string]any, end-start)
	for j := int(start); j < int(end); j++ {
		key, err := value(a.Keys(), j, t.GetMap().GetKeyType())
		if err != nil {
			return nil, err
		}
		v, err := value(a.Items(), j, t.GetMap().GetValueType())
		if err != nil {
			return nil, err
		}
		text, err := keyText(key)
		if err != nil {
			return nil, err
		}
		out[text] = v
	}
	return out, nil
}

func keyText(key any) (string, error) {
	switch k := key.(type) {
	case string:
		return k, nil
	case time.Time:
		if k.Equal(k.Truncate(24 * time.Hour)) {
			return k.Format(time.DateOnly), nil
		}
		return k.Format(time.RFC3339Nano), nil
	case []any, map[string]any:
		text, err := json.Marshal(k)
		return string(text), err
	default:
		return fmt.Sprint(k), nil
	}
}

// structure is an object when all its fields have names of their own, and a list otherwise.
func structure(a *array.Struct, i int, t *connect.DataType) (any, error) {
	fields := t.GetStruct().GetFields()
	kind, ok := a.DataType().(*arrow.StructType)
	if !ok {
		return nil, errType
	}
	list := make([]any, a.NumField())
	named := make(map[string]any, a.NumField())
	for j := range list {
		var of *connect.DataType
		if j < len(fields) {
			of = fields[j].GetDataType()
		}
		v, err := value(a.Field(j), i, of)
		if err != nil {
			return nil, err
		}
		list[j] = v
		named[kind.Field(j).Name] = v
	}
	if len(named) < len(list) || len(list) == 0 {
		return list, nil
	}
	return named, nil
}
