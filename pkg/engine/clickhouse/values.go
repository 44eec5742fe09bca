package clickhouse

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/chcol"
	"github.com/shopspring/decimal"
)

// times says what the times of a column mean. The driver gives a plain date as midnight in the server's zone: moving it
// to UTC would give another day.
type times int

const (
	instants times = iota // only instants: they are given in UTC
	days                  // only dates: they are given as midnight in UTC
	mixed                 // both, in one tuple: they keep their zone
	dayTexts              // only dates, in a column whose type does not say so: they are given as text
)

// ClickHouse has no time before 1900. The driver counts the nanoseconds of a DateTime64 in 64 bits, so that those behind April 2262 come as
// such: they are that many nanoseconds too early.
const (
	earliest = 1800
	nanos    = 1_000_000_000
	span     = 1 << 64
)

// inside are the times of a value whose type is its own, and not its column's.
func (t times) inside() times {
	if t == days {
		return dayTexts
	}
	return t
}

func timesOf(typeName string) times {
	withoutInstants := strings.ReplaceAll(typeName, "DateTime", "")
	switch {
	case !strings.Contains(withoutInstants, "Date"):
		return instants
	case withoutInstants == typeName:
		return days
	default:
		return mixed
	}
}

func (t times) of(v time.Time) time.Time {
	if v.Year() < earliest {
		v = time.Unix(v.Unix()+span/nanos, int64(v.Nanosecond())+span%nanos).In(v.Location())
	}
	switch t {
	case days:
		return time.Date(v.Year(), v.Month(), v.Day(), 0, 0, 0, 0, time.UTC)
	case mixed:
		return v
	default:
		return v.UTC()
	}
}

// convert gives nil, bool, string, int64, uint64, float64, json.Number, time.Time, []any or map[string]any.
func (t times) convert(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
	}
	switch x := v.Interface().(type) {
	case time.Time:
		if t == dayTexts {
			return x.Format(time.DateOnly)
		}
		return t.of(x)
	case decimal.Decimal:
		return digits(x)
	case *big.Int:
		return json.Number(x.String())
	case big.Int:
		return json.Number(x.String())
	case time.Duration:
		return clock(x)
	case json.RawMessage:
		return string(x)
	case chcol.Variant: // what lies there says itself what it is, which the paths of a JSON column that have a type say nothing of
		return timesOf(x.Type()).inside().convert(reflect.ValueOf(x.Any()))
	case *chcol.JSON:
		return t.inside().convert(reflect.ValueOf(x.NestedMap()))
	case chcol.JSON:
		return t.inside().convert(reflect.ValueOf(x.NestedMap()))
	case fmt.Stringer: // UUIDs and IP addresses
		if v.Kind() != reflect.Pointer {
			return x.String()
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return t.convert(v.Elem())
	case reflect.Bool:
		return v.Bool()
	case reflect.String:
		return v.String()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint()
	case reflect.Float32:
		// The shortest text that reads back as the same Float32: 0.1 stays 0.1 and does not become 0.10000000149011612.
		return shortest(float32(v.Float()))
	case reflect.Float64:
		return v.Float()
	case reflect.Slice, reflect.Array:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = t.convert(v.Index(i))
		}
		return out
	case reflect.Map:
		out := make(map[string]any, v.Len())
		for _, key := range v.MapKeys() {
			out[t.name(key)] = t.convert(v.MapIndex(key))
		}
		return out
	default:
		return fmt.Sprint(v.Interface())
	}
}

// name is the key of a map: JSON has texts only.
func (t times) name(key reflect.Value) string {
	switch at := t.convert(key).(type) {
	case time.Time:
		if t == days {
			return at.Format(time.DateOnly)
		}
		return at.Format(time.RFC3339Nano)
	default:
		return fmt.Sprint(at)
	}
}

// digits is a decimal with all places of its type, as every other engine gives it: 1.50 of a Decimal(9, 2), which the driver would
// write as 1.5.
func digits(d decimal.Decimal) json.Number {
	if places := -d.Exponent(); places > 0 {
		return json.Number(d.StringFixed(places))
	}
	return json.Number(d.String())
}
