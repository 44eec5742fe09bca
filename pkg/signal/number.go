package signal

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Number is a number that was computed, or that could not be: it has no age, and its name says its unit and its origin. The zero
// Number is unknown, which is not zero. In JSON it is a number or null.
type Number struct {
	n     float64
	known bool
}

// Num makes a known Number. One that is no number (NaN, infinite) is unknown.
func Num(n float64) Number {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return Number{}
	}
	return Number{n: n, known: true}
}

// Get returns the number, or false when it is unknown.
func (x Number) Get() (float64, bool) { return x.n, x.known }

// Or returns the number, or def.
func (x Number) Or(def float64) float64 {
	if !x.known {
		return def
	}
	return x.n
}

// Value is the Number as a Value of a unit.
func (x Number) Value(u Unit) Value {
	if !x.known {
		return Value{Unit: u}
	}
	return Of(x.n, u, "", time.Time{})
}

// String renders the Number as it is.
func (x Number) String() string {
	if !x.known {
		return "unknown"
	}
	return strconv.FormatFloat(x.n, 'f', -1, 64)
}

// MarshalJSON writes a number or null.
func (x Number) MarshalJSON() ([]byte, error) {
	if !x.known {
		return []byte("null"), nil
	}
	return appendNumber(make([]byte, 0, 24), x.n), nil
}

// MarshalJSONTo is MarshalJSON for a Number within something else.
func (x Number) MarshalJSONTo(enc *jsontext.Encoder) error {
	if !x.known {
		return enc.WriteToken(jsontext.Null)
	}
	return enc.WriteToken(jsontext.Float(x.n))
}

// UnmarshalJSONFrom is UnmarshalJSON for a Number within something else.
func (x *Number) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '{':
		var v Value
		if err := v.UnmarshalJSONFrom(dec); err != nil {
			return err
		}
		n, known := v.Get()
		*x = Number{}
		if known {
			*x = Num(n)
		}
	case 'n':
		*x = Number{}
		return dec.SkipValue()
	default:
		var n float64
		if err := jsonv2.UnmarshalDecode(dec, &n); err != nil {
			return err
		}
		*x = Num(n)
	}
	return nil
}

// UnmarshalJSON reads a number or null, and what a Value writes: of that only a number that was known.
func (x *Number) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var v Value
		if err := v.UnmarshalJSON(data); err != nil {
			return err
		}
		n, known := v.Get()
		*x = Number{}
		if known {
			*x = Num(n)
		}
		return nil
	}
	var n *float64
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	*x = Number{}
	if n != nil {
		*x = Num(*n)
	}
	return nil
}
