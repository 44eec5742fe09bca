package trino

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// signature is a type as the server describes it beside its name.
type signature struct {
	Raw       string     `json:"rawType"`
	Arguments []argument `json:"arguments"`
}

// argument is a parameter of a type: a type, a field of a row, or a number.
type argument struct {
	field string
	typ   *signature
}

// UnmarshalJSON reads the three kinds.
func (a *argument) UnmarshalJSON(raw []byte) error {
	var tagged struct {
		Kind  string          `json:"kind"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(raw, &tagged); err != nil {
		return err
	}
	switch tagged.Kind {
	case "TYPE":
		a.typ = &signature{}
		return json.Unmarshal(tagged.Value, a.typ)
	case "NAMED_TYPE":
		var named struct {
			FieldName *struct {
				Name string `json:"name"`
			} `json:"fieldName"`
			TypeSignature *signature `json:"typeSignature"`
		}
		if err := json.Unmarshal(tagged.Value, &named); err != nil {
			return err
		}
		if named.FieldName != nil {
			a.field = named.FieldName.Name
		}
		a.typ = named.TypeSignature
	}
	return nil
}

var (
	errRagged = errors.New("the server sent a row with another number of values than there are columns")
	errValue  = errors.New("the server sent a value that is none of its column's type")
)

// value turns what the JSON holds into the port's value. Whatever the port has no exact value for stays the text that Trino
// writes for it.
func (s signature) value(v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch s.Raw {
	case "tinyint", "smallint", "integer", "bigint":
		if n, ok := v.(json.Number); ok {
			return n.Int64()
		}
	case "real", "double":
		return float(v)
	case "decimal":
		if text, ok := v.(string); ok {
			return json.Number(text), nil
		}
	case "varbinary":
		if text, ok := v.(string); ok {
			bytes, err := base64.StdEncoding.DecodeString(text)
			return "0x" + hex.EncodeToString(bytes), err
		}
	case "date":
		if text, ok := v.(string); ok {
			return date(text), nil
		}
	case "timestamp":
		if text, ok := v.(string); ok {
			return wallClock(text), nil
		}
	case "timestamp with time zone":
		if text, ok := v.(string); ok {
			return instant(text), nil
		}
	case "array":
		return s.array(v)
	case "map":
		return s.object(v)
	case "row":
		return s.row(v)
	default: // boolean, varchar, char, json, uuid, ipaddress, time, interval, and what a plugin may add
		return other(v), nil
	}
	return nil, s.mismatch(v)
}

func (s signature) mismatch(v any) error { return fmt.Errorf("%w (%s, a JSON %T)", errValue, s.Raw, v) }

func float(v any) (any, error) {
	switch x := v.(type) {
	case json.Number:
		return x.Float64()
	case string:
		switch x {
		case "NaN":
			return math.NaN(), nil
		case "Infinity", "+Infinity":
			return math.Inf(1), nil
		case "-Infinity":
			return math.Inf(-1), nil
		}
	}
	return nil, fmt.Errorf("%w (a number, a JSON %T)", errValue, v)
}

func (s signature) element(i int) signature {
	if i < len(s.Arguments) && s.Arguments[i].typ != nil {
		return *s.Arguments[i].typ
	}
	return signature{}
}

func (s signature) array(v any) (any, error) {
	in, ok := v.([]any)
	if !ok {
		return nil, s.mismatch(v)
	}
	element := s.element(0)
	out := make([]any, len(in))
	for i, e := range in {
		var err error
		if out[i], err = element.value(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// object is a map. Its keys are texts in JSON, whatever their type is.
func (s signature) object(v any) (any, error) {
	in, ok := v.(map[string]any)
	if !ok {
		return nil, s.mismatch(v)
	}
	element := s.element(1)
	out := make(map[string]any, len(in))
	for k, e := range in {
		var err error
		if out[k], err = element.value(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// row is an object when all its fields have names of their own, and a list otherwise.
func (s signature) row(v any) (any, error) {
	in, ok := v.([]any)
	if !ok || len(in) != len(s.Arguments) {
		return nil, s.mismatch(v)
	}
	list := make([]any, len(in))
	named := make(map[string]any, len(in))
	for i, e := range in {
		var err error
		if list[i], err = s.element(i).value(e); err != nil {
			return nil, err
		}
		if name := s.Arguments[i].field; name != "" {
			named[name] = list[i]
		}
	}
	if len(named) < len(list) || len(list) == 0 {
		return list, nil
	}
	return named, nil
}

// other is a value of a type that the adapter knows nothing of: exact, in the form that the server gave it.
func other(v any) any {
	switch x := v.(type) {
	case []any:
		for i := range x {
			x[i] = other(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = other(x[k])
		}
	case json.Number:
		if n, err := strconv.ParseInt(x.String(), 10, 64); err == nil {
			return n
		}
	}
	return v
}
