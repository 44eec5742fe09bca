package spark

import (
	"fmt"
	"strings"

	"github.com/pointsman/pointsman/pkg/engine/spark/connect"
)

// typeName is a type as Spark's SQL writes it.
func typeName(t *connect.DataType) string {
	switch k := t.GetKind().(type) {
	case *connect.DataType_Null:
		return "void"
	case *connect.DataType_Binary_:
		return "binary"
	case *connect.DataType_Boolean_:
		return "boolean"
	case *connect.DataType_Byte_:
		return "tinyint"
	case *connect.DataType_Short_:
		return "smallint"
	case *connect.DataType_Integer_:
		return "int"
	case *connect.DataType_Long_:
		return "bigint"
	case *connect.DataType_Float_:
		return "float"
	case *connect.DataType_Double_:
		return "double"
	case *connect.DataType_Decimal_:
		return fmt.Sprintf("decimal(%d,%d)", k.Decimal.GetPrecision(), k.Decimal.GetScale())
	case *connect.DataType_String_:
		return "string"
	case *connect.DataType_Char_:
		return fmt.Sprintf("char(%d)", k.Char.GetLength())
	case *connect.DataType_VarChar_:
		return fmt.Sprintf("varchar(%d)", k.VarChar.GetLength())
	case *connect.DataType_Date_:
		return "date"
	case *connect.DataType_Timestamp_:
		return "timestamp"
	case *connect.DataType_TimestampNtz:
		return "timestamp_ntz"
	case *connect.DataType_Time_:
		if k.Time.Precision == nil {
			return "time"
		}
		return fmt.Sprintf("time(%d)", k.Time.GetPrecision())
	case *connect.DataType_CalendarInterval_:
		return "interval"
	case *connect.DataType_YearMonthInterval_:
		return "interval " + spanName(k.YearMonthInterval.StartField, k.YearMonthInterval.EndField, yearMonth)
	case *connect.DataType_DayTimeInterval_:
		return "interval " + spanName(k.DayTimeInterval.StartField, k.DayTimeInterval.EndField, dayTime)
	case *connect.DataType_Array_:
		return "array<" + typeName(k.Array.GetElementType()) + ">"
	case *connect.DataType_Map_:
		return "map<" + typeName(k.Map.GetKeyType()) + "," + typeName(k.Map.GetValueType()) + ">"
	case *connect.DataType_Struct_:
		fields := make([]string, len(k.Struct.GetFields()))
		for i, f := range k.Struct.GetFields() {
			fields[i] = f.GetName() + ":" + typeName(f.GetDataType())
		}
		return "struct<" + strings.Join(fields, ",") + ">"
	case *connect.DataType_Variant_:
		return "variant"
	case *connect.DataType_Udt:
		return typeName(k.Udt.GetSqlType())
	case *connect.DataType_Geometry_:
		return "geometry"
	case *connect.DataType_Geography_:
		return "geography"
	case *connect.DataType_Unparsed_:
		return k.Unparsed.GetDataTypeString()
	default:
		return "unknown"
	}
}

// The fields of intervals, by their numbers in the protocol.
var (
	yearMonth = []string{"year", "month"}
	dayTime   = []string{"day", "hour", "minute", "second"}
)

// span gives the first and the last field of an interval; without any it has them all.
func span(start, end *int32, fields []string) (first, last int) {
	first, last = 0, len(fields)-1
	if start != nil && int(*start) < len(fields) {
		first, last = int(*start), int(*start)
	}
	if end != nil && int(*end) < len(fields) {
		last = int(*end)
	}
	return max(first, 0), max(last, first)
}

func spanName(start, end *int32, fields []string) string {
	first, last := span(start, end, fields)
	if first == last {
		return fields[first]
	}
	return fields[first] + " to " + fields[last]
}
