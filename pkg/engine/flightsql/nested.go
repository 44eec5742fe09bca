package flightsql

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/google/uuid"
)

// nested reads values that are made of others.
func nested(a arrow.Array) (cell, error) {
	switch a := a.(type) {
	case *array.Dictionary:
		value, err := cellOf(a.Dictionary())
		if err != nil {
			return nil, err
		}
		return func(i int) any { return value(a.GetValueIndex(i)) }, nil
	case *array.RunEndEncoded:
		value, err := cellOf(a.Values())
		if err != nil {
			return nil, err
		}
		return func(i int) any { return value(a.GetPhysicalIndex(i)) }, nil
	case *array.Map: // before lists, of which it is one
		return mapReader(a)
	case array.ListLike:
		value, err := cellOf(a.ListValues())
		if err != nil {
			return nil, err
		}
		return func(i int) any {
			begin, end := a.ValueOffsets(i)
			out := make([]any, 0, end-begin)
			for at := begin; at < end; at++ {
				out = append(out, value(int(at)))
			}
			return out
		}, nil
	case *array.Struct:
		return structReader(a)
	case array.Union:
		return unionReader(a)
	case array.ExtensionArray:
		return extensionReader(a)
	default:
		return nil, fmt.Errorf("%w: the type %s is not known", errGarbage, a.DataType())
	}
}

// uuidName is the name of an extension whose values have a text of their own; all others are what they are stored as.
const uuidName = "arrow.uuid"

func extensionReader(a array.ExtensionArray) (cell, error) {
	stored, ok := a.Storage().(*array.FixedSizeBinary)
	if a.ExtensionType().ExtensionName() != uuidName || !ok {
		return cellOf(a.Storage())
	}
	return func(i int) any {
		id, err := uuid.FromBytes(stored.Value(i))
		if err != nil {
			return digits(stored.Value(i))
		}
		return id.String()
	}, nil
}

// mapReader gives an object, with its keys as text.
func mapReader(a *array.Map) (cell, error) {
	key, err := cellOf(a.Keys())
	if err != nil {
		return nil, err
	}
	value, err := cellOf(a.Items())
	if err != nil {
		return nil, err
	}
	layout := time.RFC3339Nano
	switch a.Keys().(type) {
	case *array.Date32, *array.Date64:
		layout = time.DateOnly
	}
	return func(i int) any {
		begin, end := a.ValueOffsets(i)
		out := make(map[string]any, end-begin)
		for at := begin; at < end; at++ {
			out[keyText(key(int(at)), layout)] = value(int(at))
		}
		return out
	}, nil
}

// keyText is a map's key as text, a time in its layout.
func keyText(key any, layout string) string {
	if at, ok := key.(time.Time); ok {
		return at.Format(layout)
	}
	return fmt.Sprint(key)
}

// structReader gives an object if all fields have names of their own, and an array otherwise.
func structReader(a *array.Struct) (cell, error) {
	fields := make([]cell, a.NumField())
	names := make([]string, len(fields))
	seen := map[string]bool{"": true}
	named := true
	for i := range fields {
		var err error
		if fields[i], err = cellOf(a.Field(i)); err != nil {
			return nil, err
		}
		names[i] = a.DataType().(*arrow.StructType).Field(i).Name
		named = named && !seen[names[i]]
		seen[names[i]] = true
	}
	if !named {
		return func(i int) any {
			out := make([]any, len(fields))
			for f, field := range fields {
				out[f] = field(i)
			}
			return out
		}, nil
	}
	return func(i int) any {
		out := make(map[string]any, len(fields))
		for f, field := range fields {
			out[names[f]] = field(i)
		}
		return out
	}, nil
}

func unionReader(a array.Union) (cell, error) {
	fields := make([]cell, a.NumFields())
	for i := range fields {
		var err error
		if fields[i], err = cellOf(a.Field(i)); err != nil {
			return nil, err
		}
	}
	dense, _ := a.(*array.DenseUnion)
	return func(i int) any {
		at := i
		if dense != nil {
			at = int(dense.ValueOffset(i))
		}
		return fields[a.ChildID(i)](at)
	}, nil
}
