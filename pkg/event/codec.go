package event

import (
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
)

// codec reads and writes all payloads. A decision holds some forty signal values, each of which would write itself.
var codec = query.NewCodec(query.Via(valueToWire, wireToValue))

// wireValue is the JSON of a signal.Value.
type wireValue struct {
	State  signal.State `json:"state"`
	Value  *float64     `json:"value,omitempty"`
	Unit   signal.Unit  `json:"unit,omitempty"`
	Source string       `json:"source,omitempty"`
	At     time.Time    `json:"at,omitzero"`

	number float64
}

// escaped are the characters that a signal.Value writes in another way than the events around it.
const escaped = "<>&\u2028\u2029"

func valueToWire(v *signal.Value, w *wireValue) bool {
	w.State, w.Unit, w.Source = v.State(), v.Unit, v.Source
	var ok bool
	if w.number, ok = v.Last(); ok {
		w.Value = &w.number
	}
	if !v.At.IsZero() {
		w.At = v.At.UTC()
	}
	return !strings.ContainsAny(w.Source, escaped) && !strings.ContainsAny(string(w.Unit), escaped)
}

func wireToValue(w *wireValue, v *signal.Value) bool {
	if !w.At.IsZero() {
		w.At = w.At.UTC()
	}
	switch {
	case w.Value == nil || w.State == signal.Absent:
		*v = signal.Value{Unit: w.Unit, Source: w.Source, At: w.At}
	case w.State == signal.Known:
		*v = signal.Of(*w.Value, w.Unit, w.Source, w.At)
	case w.At.IsZero():
		return false // nothing but the value itself can make itself stale without a time
	default:
		*v = signal.Of(*w.Value, w.Unit, w.Source, w.At).Aged(w.At.Add(2), 1)
	}
	return true
}
