package clickhouse

import (
	"reflect"
	"time"

	"github.com/shopspring/decimal"
)

// target is where a column's values are scanned to, row after row, and how the one that lies there becomes the port's value, lent
// (engine.Lender) where that saves an allocation.
type target struct {
	dest any
	lend func() any
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
		return bind(nullable, lent(func(v string) string { return v }))
	case reflect.TypeFor[bool]():
		return bind(nullable, func(v bool) any { return v })
	case reflect.TypeFor[int8]():
		return bind(nullable, lent(func(v int8) int64 { return int64(v) }))
	case reflect.TypeFor[int16]():
		return bind(nullable, lent(func(v int16) int64 { return int64(v) }))
	case reflect.TypeFor[int32]():
		return bind(nullable, lent(func(v int32) int64 { return int64(v) }))
	case reflect.TypeFor[int64]():
		return bind(nullable, lent(func(v int64) int64 { return v }))
	case reflect.TypeFor[uint8]():
		return bind(nullable, lent(func(v uint8) uint64 { return uint64(v) }))
	case reflect.TypeFor[uint16]():
		return bind(nullable, lent(func(v uint16) uint64 { return uint64(v) }))
	case reflect.TypeFor[uint32]():
		return bind(nullable, lent(func(v uint32) uint64 { return uint64(v) }))
	case reflect.TypeFor[uint64]():
		return bind(nullable, lent(func(v uint64) uint64 { return v }))
	case reflect.TypeFor[float32]():
		return bind(nullable, lent(shortest))
	case reflect.TypeFor[float64]():
		return bind(nullable, lent(func(v float64) float64 { return v }))
	case reflect.TypeFor[decimal.Decimal]():
		return bind(nullable, func(v decimal.Decimal) any { return digits(v) })
	case reflect.TypeFor[time.Time]():
		return bind(nullable, lent(times.of))
	}
	ptr := reflect.New(kind)
	return target{dest: ptr.Interface(), lend: func() any {
		defer ptr.Elem().SetZero() // nothing of a row is found by the next
		return times.convert(ptr.Elem())
	}}
}

func bind[T any](nullable bool, convert func(T) any) target {
	if !nullable {
		dest := new(T)
		return target{dest: dest, lend: func() any { return convert(*dest) }}
	}
	dest := new(*T)
	return target{dest: dest, lend: func() any {
		if *dest == nil {
			return nil
		}
		return convert(**dest)
	}}
}

// lent makes a value that is lent of what was scanned.
func lent[T, V any](convert func(T) V) func(T) any {
	value := new(V)
	return func(v T) any {
		*value = convert(v)
		return value
	}
}

// own is a value that may be kept, of one that may be lent.
func own(v any) any {
	switch x := v.(type) {
	case *string:
		return *x
	case *int64:
		return *x
	case *uint64:
		return *x
	case *float64:
		return *x
	case *time.Time:
		return *x
	default:
		return v
	}
}
