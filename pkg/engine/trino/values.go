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
	errNoRow  = errors.New("there is no row to be read")
	errRagged = errors.New("the server sent a row with another number of values than there are columns")
	errValue  = errors.New("the server sent a value that is none of its column's type")
)

// value reads one value and turns it into the port's. Whatever the port has no exact value for stays the text that Trino writes
// for it.
func (s signature) value(in *scanner) (any, error) {
	if in.null() {
		return nil, nil
	}
	switch s.Raw {
	case "tinyint", "smallint", "integer", "bigint":
		text, ok := in.number()
		n, err := strconv.ParseInt(string(text), 10, 64)
		if !ok || err != nil {
			return nil, s.mismatch()
		}
		return n, nil
	case "real", "double":
		return s.float(in)
	case "array":
		return s.array(in)
	case "map":
		return s.object(in)
	case "row":
		return s.row(in)
	case "decimal", "varbinary", "date", "timestamp", "timestamp with time zone":
		if in.peek() != '"' {
			return nil, s.mismatch()
		}
		text, err := in.str()
		if err != nil {
			return nil, err
		}
		return s.fromText(text)
	default: // boolean, varchar, char, json, uuid, ipaddress, time, interval, and what a plugin may add
		return in.any()
	}
}

// fromText is a value of a type that JSON has no form for.
func (s signature) fromText(text string) (any, error) {
	switch s.Raw {
	case "decimal":
		return json.Number(text), nil
	case "varbinary":
		bytes, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, s.mismatch()
		}
		return "0x" + hex.EncodeToString(bytes), nil
	case "date":
		return date(text), nil
	case "timestamp":
		return wallClock(text), nil
	default:
		return instant(text), nil
	}
}

func (s signature) mismatch() error { return fmt.Errorf("%w (%s)", errValue, s.Raw) }

func (s signature) float(in *scanner) (any, error) {
	if in.peek() != '"' {
		text, ok := in.number()
		f, err := strconv.ParseFloat(string(text), 64)
		if !ok || err != nil {
			return nil, s.mismatch()
		}
		return f, nil
	}
	text, err := in.str()
	if err != nil {
		return nil, err
	}
	switch text {
	case "NaN":
		return math.NaN(), nil
	case "Infinity", "+Infinity":
		return math.Inf(1), nil
	case "-Infinity":
		return math.Inf(-1), nil
	}
	return nil, s.mismatch()
}

func (s signature) element(i int) signature {
	if i < len(s.Arguments) && s.Arguments[i].typ != nil {
		return *s.Arguments[i].typ
	}
	return signature{}
}

func (s signature) array(in *scanner) (any, error) {
	if in.peek() != '[' {
		return nil, s.mismatch()
	}
	in.at++
	element, out := s.element(0), []any{}
	for first := true; ; first = false {
		more, err := in.more(first, ']')
		if err != nil || !more {
			return out, err
		}
		v, err := element.value(in)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
}

// object is a map. Its keys are texts in JSON, whatever their type is.
func (s signature) object(in *scanner) (any, error) {
	if in.peek() != '{' {
		return nil, s.mismatch()
	}
	in.at++
	element, out := s.element(1), map[string]any{}
	for first := true; ; first = false {
		more, err := in.more(first, '}')
		if err != nil || !more {
			return out, err
		}
		key, err := in.str()
		if err == nil {
			err = in.take(':')
		}
		if err != nil {
			return nil, err
		}
		if out[key], err = element.value(in); err != nil {
			return nil, err
		}
	}
}

// row is an object when all its fields have names of their own, and a list otherwise.
func (s signature) row(in *scanner) (any, error) {
	if in.peek() != '[' {
		return nil, s.mismatch()
	}
	in.at++
	list := make([]any, len(s.Arguments))
	named := make(map[string]any, len(s.Arguments))
	for i := 0; ; i++ {
		more, err := in.more(i == 0, ']')
		switch {
		case err != nil:
			return nil, err
		case more != (i < len(list)):
			return nil, s.mismatch()
		case !more && (len(named) < len(list) || len(list) == 0):
			return list, nil
		case !more:
			return named, nil
		}
		if list[i], err = s.element(i).value(in); err != nil {
			return nil, err
		}
		if name := s.Arguments[i].field; name != "" {
			named[name] = list[i]
		}
	}
}
