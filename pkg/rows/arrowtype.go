package rows

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// arrowType is the Arrow type that keeps every value of a column exactly. What an engine means by a type is known of the usual
// names; everything else, and what Arrow has no exact type for, is text: as JSON writes it.
//
// ClickHouse's names begin with a capital letter and PostgreSQL's do not, which tells Int8 (8 bits) from int8 (64 bits).
func arrowType(name string) arrow.DataType {
	name = strings.TrimSpace(name)
	for _, wrapper := range []string{"Nullable", "LowCardinality"} {
		if inner, ok := within(name, wrapper); ok {
			return arrowType(inner)
		}
	}
	for _, list := range []string{"Array", "array"} { // ClickHouse's and Trino's
		if inner, ok := within(name, list); ok {
			return arrow.ListOf(arrowType(inner))
		}
	}
	if inner, ok := strings.CutSuffix(name, "[]"); ok { // PostgreSQL's
		return arrow.ListOf(arrowType(inner))
	}
	if t, ok := plainTypes[name]; ok {
		return t
	}
	if t, ok := plainTypes[strings.ToLower(name)]; ok {
		return t
	}
	if m := decimalType.FindStringSubmatch(name); m != nil {
		p, _ := strconv.Atoi(m[1])
		s, _ := strconv.Atoi(m[2])
		return decimalOf(p, s)
	}
	if m := instantType.FindStringSubmatch(name); m != nil {
		digits := 0
		if m[1] != "" {
			digits, _ = strconv.Atoi(m[1])
		}
		zone := m[2]
		if zone == "" {
			zone = "UTC"
		}
		return &arrow.TimestampType{Unit: unitOf(digits), TimeZone: zone}
	}
	if m := zonedType.FindStringSubmatch(name); m != nil {
		digits := 6
		if m[1] != "" {
			digits, _ = strconv.Atoi(m[1])
		}
		if digits <= 9 { // Trino has up to 12, which no Arrow type keeps
			return &arrow.TimestampType{Unit: unitOf(digits), TimeZone: "UTC"}
		}
	}
	return arrow.BinaryTypes.String
}

var (
	// zonedType is PostgreSQL's and Trino's.
	zonedType   = regexp.MustCompile(`^timestamp(?:\((\d+)\))? with time zone$`)
	decimalType = regexp.MustCompile(`(?i)^(?:decimal|numeric) ?\((\d+), ?(\d+)\)$`)
	// instantType is ClickHouse's: it means an instant, whatever zone it is shown in.
	instantType = regexp.MustCompile(`^DateTime(?:64)?(?:\((\d+)?(?:, )?(?:'([^']+)')?\))?$`)
)

var plainTypes = map[string]arrow.DataType{
	"Int8": arrow.PrimitiveTypes.Int8, "Int16": arrow.PrimitiveTypes.Int16, "Int32": arrow.PrimitiveTypes.Int32, "Int64": arrow.PrimitiveTypes.Int64,
	"UInt8": arrow.PrimitiveTypes.Uint8, "UInt16": arrow.PrimitiveTypes.Uint16, "UInt32": arrow.PrimitiveTypes.Uint32, "UInt64": arrow.PrimitiveTypes.Uint64,
	"Float32": arrow.PrimitiveTypes.Float32, "Float64": arrow.PrimitiveTypes.Float64, "Bool": arrow.FixedWidthTypes.Boolean,
	"Date": arrow.FixedWidthTypes.Date32, "Date32": arrow.FixedWidthTypes.Date32,

	"tinyint": arrow.PrimitiveTypes.Int16, "smallint": arrow.PrimitiveTypes.Int16, "int2": arrow.PrimitiveTypes.Int16,
	"mediumint": arrow.PrimitiveTypes.Int32, "int": arrow.PrimitiveTypes.Int32, "integer": arrow.PrimitiveTypes.Int32, "int4": arrow.PrimitiveTypes.Int32,
	"int8": arrow.PrimitiveTypes.Int64, "bigint": arrow.PrimitiveTypes.Int64,
	"unsigned tinyint": arrow.PrimitiveTypes.Uint16, "unsigned smallint": arrow.PrimitiveTypes.Uint16,
	"unsigned mediumint": arrow.PrimitiveTypes.Uint32, "unsigned int": arrow.PrimitiveTypes.Uint32, "unsigned bigint": arrow.PrimitiveTypes.Uint64,
	"real": arrow.PrimitiveTypes.Float32, "float4": arrow.PrimitiveTypes.Float32, "float8": arrow.PrimitiveTypes.Float64,
	"double": arrow.PrimitiveTypes.Float64, "double precision": arrow.PrimitiveTypes.Float64,
	"bool": arrow.FixedWidthTypes.Boolean, "boolean": arrow.FixedWidthTypes.Boolean, "date": arrow.FixedWidthTypes.Date32,
	"timestamptz": &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
}

// within gives what stands in a wrapper's brackets.
func within(name, wrapper string) (inner string, ok bool) {
	inner, ok = strings.CutPrefix(name, wrapper+"(")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(inner, ")")
}

func decimalOf(precision, scale int) arrow.DataType {
	switch {
	case precision < 1 || scale > precision:
		return arrow.BinaryTypes.String
	case precision <= 38:
		return &arrow.Decimal128Type{Precision: int32(precision), Scale: int32(scale)}
	case precision <= 76:
		return &arrow.Decimal256Type{Precision: int32(precision), Scale: int32(scale)}
	default:
		return arrow.BinaryTypes.String
	}
}

func unitOf(digits int) arrow.TimeUnit {
	switch {
	case digits == 0:
		return arrow.Second
	case digits <= 3:
		return arrow.Millisecond
	case digits <= 6:
		return arrow.Microsecond
	default:
		return arrow.Nanosecond
	}
}
