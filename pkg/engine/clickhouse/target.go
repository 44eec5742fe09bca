package clickhouse

import (
	"reflect"
	"time"

	"github.com/shopspring/decimal"
)

// target is where a column's values are scanned to, row after row, and how the one that lies there becomes the port's value.
type target struct {
	dest  any
	value func() any
}

// newTarget binds a column by the driver's type for it: the usual ones to code of their own, all others to reflection.
func newTarget(kind reflect.Type, typeName string) target {
	times := timesOf(typeName)
	nullable := kind.Kind() == reflect.Pointer
	base := kind
	if nullable {
		base = kind.Elem()
	}
	switch base {
	case reflect.TypeFor[string]():
		return bind(nullable, func(v string) any { return v })
	case reflect.TypeFor[bool]():
		return bind(nullable, func(v bool) any { return v })
	case reflect.TypeFor[int8]():
		return bind(nullable, func(v int8) any { return int64(v) })
	case reflect.TypeFor[int16]():
		return bind(nullable, func(v int16) any { return int64(v) })
	case reflect.TypeFor[int32]():
		return bind(nullable, func(v int32) any { return int64(v) })
	case reflect.TypeFor[int64]():
		return bind(nullable, func(v int64) any { return v })
	case reflect.TypeFor[uint8]():
		return bind(nullable, func(v uint8) any { return uint64(v) })
	case reflect.TypeFor[uint16]():
		return bind(nullable, func(v uint16) any { return uint64(v) })
	case reflect.TypeFor[uint32]():
		return bind(nullable, func(v uint32) any { return uint64(v) })
	case reflect.TypeFor[uint64]():
		return bind(nullable, func(v uint64) any { return v })
	case reflect.TypeFor[float32]():
		return bind(nullable, func(v float32) any { return shortest(v) })
	case reflect.TypeFor[float64]():
		return bind(nullable, func(v float64) any { return v })
	case reflect.TypeFor[decimal.Decimal]():
		return bind(nullable, func(v decimal.Decimal) any { return digits(v) })
	case reflect.TypeFor[time.Time]():
		return bind(nullable, func(v time.Time) any { return times.of(v) })
	}
	ptr := reflect.New(kind)
	return target{dest: ptr.Interface(), value: func() any {
		defer ptr.Elem().SetZero() // nothing of a row is found by the next
		return times.convert(ptr.Elem())
	}}
}

func bind[T any](nullable bool, convert func(T) any) target {
	if !nullable {
		dest := new(T)
		return target{dest: dest, value: func() any { return convert(*dest) }}
	}
	dest := new(*T)
	return target{dest: dest, value: func() any {
		if *dest == nil {
			return nil
		}
		return convert(**dest)
	}}
}
