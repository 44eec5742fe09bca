package signal

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type wire struct {
	State  State      `json:"state"`
	Value  *float64   `json:"value,omitempty"`
	Unit   Unit       `json:"unit,omitempty"`
	Source string     `json:"source,omitempty"`
	At     *time.Time `json:"at,omitempty"`
}

// MarshalJSON writes an absent Value without a number, and a zero that is known with one. A known number with nothing else to it,
// one that was computed and not observed, is the number alone: a decision has many of them.
func (v Value) MarshalJSON() ([]byte, error) { return v.AppendJSON(make([]byte, 0, 96)) }

// MarshalJSONTo is MarshalJSON for a Value within something else.
func (v Value) MarshalJSONTo(enc *jsontext.Encoder) error {
	b, err := v.AppendJSON(enc.AvailableBuffer())
	if err != nil {
		return err
	}
	return enc.WriteValue(b)
}

// AppendJSON appends what MarshalJSON writes.
func (v Value) AppendJSON(b []byte) ([]byte, error) {
	n, has := v.Last()
	if v.state == Known && v.Unit == "" && v.Source == "" && v.At.IsZero() {
		return appendNumber(b, n), nil
	}
	b = append(b, `{"state":"`...)
	b = append(b, v.State()...)
	b = append(b, '"')
	if has {
		b = appendNumber(append(b, `,"value":`...), n)
	}
	if v.Unit != "" {
		b = appendText(append(b, `,"unit":`...), string(v.Unit))
	}
	if v.Source != "" {
		b = appendText(append(b, `,"source":`...), v.Source)
	}
	if !v.At.IsZero() {
		var err error
		if b, err = v.At.UTC().AppendText(append(b, `,"at":"`...)); err != nil {
			return nil, fmt.Errorf("writing the time of a value: %w", err)
		}
		b = append(b, '"')
	}
	return append(b, '}'), nil
}

// appendNumber writes a number as encoding/json does.
func appendNumber(b []byte, n float64) []byte {
	format := byte('f')
	if abs := math.Abs(n); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	b = strconv.AppendFloat(b, n, format, -1, 64)
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1] // e-09 is e-9
		b = b[:n-1]
	}
	return b
}

// appendText writes a text; nearly all need no escape.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			escaped, _ := json.Marshal(s) // of a string it does not fail
			return append(b, escaped...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// UnmarshalJSON reads a Value; null is absent. A state this version does not know counts as stale when there is a number, else as absent.
func (v *Value) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '{' {
		var n *float64
		if err := json.Unmarshal(data, &n); err != nil {
			return err
		}
		*v = Value{}
		if n != nil {
			v.number, v.state = *n, Known
		}
		return nil
	}
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	v.take(w)
	return nil
}

// UnmarshalJSONFrom is UnmarshalJSON for a Value within something else.
func (v *Value) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '{' {
		var n Number
		if err := n.UnmarshalJSONFrom(dec); err != nil {
			return err
		}
		*v = Value{}
		if n.known {
			v.number, v.state = n.n, Known
		}
		return nil
	}
	var w wire
	if err := jsonv2.UnmarshalDecode(dec, &w); err != nil {
		return err
	}
	v.take(w)
	return nil
}

func (v *Value) take(w wire) {
	*v = Value{Unit: w.Unit, Source: w.Source}
	if w.At != nil {
		v.At = w.At.UTC()
	}
	if w.Value != nil && w.State != Absent {
		v.number, v.state = *w.Value, Stale
		if w.State == Known {
			v.state = Known
		}
	}
}
