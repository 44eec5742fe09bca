package shape

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Op compares a column with a constant.
type Op string

// The comparisons that a scan can prune by.
const (
	Eq         Op = "="
	Ne         Op = "!="
	Lt         Op = "<"
	Le         Op = "<="
	Gt         Op = ">"
	Ge         Op = ">="
	In         Op = "in"
	NotIn      Op = "not_in"
	StartsWith Op = "starts_with"
	IsNull     Op = "is_null"
	IsNotNull  Op = "is_not_null"
	Like       Op = "like" // in templates only: the pattern says what it comes to
)

// mirrored and negated hold the comparisons that Mirror and negate change.
var (
	mirrored = map[Op]Op{Lt: Gt, Le: Ge, Gt: Lt, Ge: Le}
	negated  = map[Op]Op{Eq: Ne, Ne: Eq, Lt: Ge, Le: Gt, Gt: Le, Ge: Lt, In: NotIn, NotIn: In, IsNull: IsNotNull, IsNotNull: IsNull}
)

// Mirror is the comparison with its sides swapped.
func (o Op) Mirror() Op {
	if m, ok := mirrored[o]; ok {
		return m
	}
	return o
}

// negate is the comparison that holds, of non-null values, exactly where this one does not; empty if there is none.
func (o Op) negate() Op { return negated[o] }

// Value is a constant of a text. Numbers keep their digits, so that 64-bit integers stay exact.
type Value struct {
	kind valueKind
	text string
	list []Value
}

type valueKind uint8

const (
	noValue valueKind = iota
	numberValue
	stringValue
	boolValue
	listValue
)

// NumberValue is a number by its JSON spelling.
func NumberValue(text string) Value { return Value{kind: numberValue, text: text} }

// StringValue is a string, or a date or time as it was written.
func StringValue(text string) Value { return Value{kind: stringValue, text: text} }

// BoolValue is true or false.
func BoolValue(b bool) Value { return Value{kind: boolValue, text: strconv.FormatBool(b)} }

// ListValue is the constants of IN.
func ListValue(list []Value) Value { return Value{kind: listValue, list: list} }

// List are the constants of a list.
func (v Value) List() []Value { return v.list }

// String is the value as text.
func (v Value) String() string { return v.text }

// Int is the value as a 64-bit integer, if it is one.
func (v Value) Int() (int64, bool) {
	if v.kind != numberValue {
		return 0, false
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	return n, err == nil
}

// IsZero says that there is no value.
func (v Value) IsZero() bool { return v.kind == noValue }

// IsText says that the value is a string.
func (v Value) IsText() bool { return v.kind == stringValue }

// IsNumber says that the value is a number.
func (v Value) IsNumber() bool { return v.kind == numberValue }

// MarshalJSON writes a number, a string, a boolean or a list of them.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.kind {
	case numberValue, boolValue:
		return []byte(v.text), nil
	case stringValue:
		return json.Marshal(v.text)
	case listValue:
		return json.Marshal(v.list)
	case noValue:
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(b []byte) error {
	switch {
	case len(b) == 0 || string(b) == "null":
		*v = Value{}
	case b[0] == '[':
		*v = Value{kind: listValue}
		return json.Unmarshal(b, &v.list)
	case b[0] == '"':
		v.kind = stringValue
		return json.Unmarshal(b, &v.text)
	case string(b) == "true" || string(b) == "false":
		*v = Value{kind: boolValue, text: string(b)}
	case json.Valid(b):
		*v = Value{kind: numberValue, text: string(b)}
	default:
		return fmt.Errorf("predicate value %q: want a number, a string, a boolean or a list of them", b)
	}
	return nil
}

// Predicate holds for every row that a statement needs of a table.
type Predicate struct {
	Table  Table  `json:"table"`
	Column string `json:"column"`
	Op     Op     `json:"op"`
	// Value is the constant, or the list of them behind IN; it is absent for tests for null.
	Value Value `json:"value,omitzero"`
}
