package flightsql

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/pointsman/pointsman/pkg/event"
)

// columnsOf names the columns of a result. Arrow has no SQL names for its types: these are those that results are written by, so
// that the same type comes out of a file of Arrow again.
func columnsOf(schema *arrow.Schema) []event.Column {
	out := make([]event.Column, 0, schema.NumFields())
	for _, f := range schema.Fields() {
		out = append(out, event.Column{Name: f.Name, Type: typeName(f.Type)})
	}
	return out
}

var plainNames = map[arrow.Type]string{
	arrow.NULL: "Null", arrow.BOOL: "Bool",
	arrow.INT8: "Int8", arrow.INT16: "Int16", arrow.INT32: "Int32", arrow.INT64: "Int64",
	arrow.UINT8: "UInt8", arrow.UINT16: "UInt16", arrow.UINT32: "UInt32", arrow.UINT64: "UInt64",
	arrow.FLOAT16: "Float32", arrow.FLOAT32: "Float32", arrow.FLOAT64: "Float64",
	arrow.STRING: "String", arrow.LARGE_STRING: "String", arrow.STRING_VIEW: "String",
	arrow.BINARY: "Binary", arrow.LARGE_BINARY: "Binary", arrow.BINARY_VIEW: "Binary", arrow.FIXED_SIZE_BINARY: "Binary",
	arrow.DATE32: "Date", arrow.DATE64: "Date",
	arrow.DURATION: "Duration", arrow.INTERVAL_MONTHS: "Interval", arrow.INTERVAL_DAY_TIME: "Interval", arrow.INTERVAL_MONTH_DAY_NANO: "Interval",
}

func typeName(t arrow.DataType) string {
	if name, ok := plainNames[t.ID()]; ok {
		return name
	}
	switch t := t.(type) {
	case arrow.DecimalType:
		return fmt.Sprintf("decimal(%d, %d)", t.GetPrecision(), t.GetScale())
	case *arrow.TimestampType:
		name := fmt.Sprintf("timestamp(%d)", 3*int(t.Unit))
		if t.TimeZone != "" {
			name += " with time zone"
		}
		return name
	case *arrow.Time32Type:
		return fmt.Sprintf("time(%d)", 3*int(t.Unit))
	case *arrow.Time64Type:
		return fmt.Sprintf("time(%d)", 3*int(t.Unit))
	case *arrow.DictionaryType:
		return typeName(t.ValueType)
	case *arrow.RunEndEncodedType:
		return typeName(t.Encoded())
	case *arrow.MapType:
		return fmt.Sprintf("map(%s, %s)", typeName(t.KeyType()), typeName(t.ItemType()))
	case arrow.ListLikeType:
		return fmt.Sprintf("array(%s)", typeName(t.Elem()))
	case *arrow.StructType:
		fields := make([]string, t.NumFields())
		for i, f := range t.Fields() {
			fields[i] = strings.TrimSpace(f.Name + " " + typeName(f.Type))
		}
		return "row(" + strings.Join(fields, ", ") + ")"
	case arrow.ExtensionType:
		if t.ExtensionName() == uuidName {
			return "UUID"
		}
		return typeName(t.StorageType())
	default:
		return t.Name()
	}
}
