// Package signal holds facts that may be missing: a Value is known, stale or absent, and absent is never zero.
//
// It is core: ages are computed from a clock that is handed in. Who observes clusters and publishes the facts is the
// profiler's and the scaler's business.
package signal

import (
	"fmt"
	"math"
	"time"
)

// State says how far a Value can be trusted. The zero State is Absent's meaning too: nothing is known.
type State string

// The three states.
const (
	Absent State = "absent"
	Known  State = "known"
	Stale  State = "stale"
)

// Unit is the unit of a Value.
type Unit string

// The units in use.
const (
	Count       Unit = "count"
	Millis      Unit = "ms"
	Bytes       Unit = "bytes"
	PerSecond   Unit = "1/s"
	Flag        Unit = "flag" // 1 true, 0 false
	Probability Unit = "probability"
)

// Value is a number with its trust, age and origin. The zero Value is absent.
type Value struct {
	state  State
	number float64

	Unit   Unit
	Source string
	// At is when the number was observed, in UTC; zero when that is unknown.
	At time.Time
}

// Of makes a known Value. A number that is no number (NaN, infinite) is absent: engines print such things for "unknown".
func Of(number float64, unit Unit, source string, at time.Time) Value {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return Value{Unit: unit, Source: source, At: at.UTC()}
	}
	return Value{state: Known, number: number, Unit: unit, Source: source, At: at.UTC()}
}

// OfFlag makes a known Value of a truth value.
func OfFlag(is bool, source string, at time.Time) Value {
	n := 0.0
	if is {
		n = 1
	}
	return Of(n, Flag, source, at)
}

// Missing makes an absent Value that says who should have known it.
func Missing(source string) Value { return Value{Source: source} }

// State is the Value's trust.
func (v Value) State() State {
	if v.state == "" {
		return Absent
	}
	return v.state
}

// Get returns the number when it is known and fresh. Stale and absent give false: each caller says what that means.
func (v Value) Get() (float64, bool) { return v.number, v.state == Known }

// Last returns the number when there is one, fresh or stale.
func (v Value) Last() (float64, bool) { return v.number, v.state == Known || v.state == Stale }

// Or returns the fresh number, or def.
func (v Value) Or(def float64) float64 {
	if v.state == Known {
		return v.number
	}
	return def
}

// Aged returns the Value as it counts at now: a known number older than most is stale, and so is one that is as far ahead of now,
// since by a clock that is wrong nobody can tell how old it is. most <= 0 never ages.
func (v Value) Aged(now time.Time, most time.Duration) Value {
	if v.state == Known && most > 0 && !v.At.IsZero() && now.Sub(v.At).Abs() > most {
		v.state = Stale
	}
	return v
}

// most is more than anything that is measured here: an exbibyte, or thirty million years.
const most = 1 << 60

// Amount is the Value as an amount of something: one below zero, or beyond all measure, is absent, since engines print such numbers for
// what they don't know.
func (v Value) Amount() Value {
	if n, ok := v.Last(); ok && (n < 0 || n > most) {
		return Missing(v.Source)
	}
	return v
}

// Age is how old the Value is at now, or false when it has no time.
func (v Value) Age(now time.Time) (time.Duration, bool) {
	if v.At.IsZero() {
		return 0, false
	}
	return now.Sub(v.At), true
}

// String renders the Value for people.
func (v Value) String() string {
	switch v.State() {
	case Known:
		return v.Unit.format(v.number)
	case Stale:
		return v.Unit.format(v.number) + " (stale)"
	default:
		return "unknown"
	}
}

// format writes a number for people: sizes and durations with three digits and a fitting unit.
func (u Unit) format(n float64) string {
	switch {
	case u == Bytes && math.Abs(n) >= 1000:
		i := min(int(math.Log10(math.Abs(n))/3), len(sizePrefixes))
		return fmt.Sprintf("%.3g %cB", n/math.Pow(1000, float64(i)), sizePrefixes[i-1])
	case u == Bytes:
		return fmt.Sprintf("%.0f B", n)
	case u == Millis && math.Abs(n) >= 1000:
		return fmt.Sprintf("%.3g s", n/1000)
	case u == Millis:
		return fmt.Sprintf("%.3g ms", n)
	case u == Flag:
		return map[bool]string{true: "yes", false: "no"}[n != 0]
	case u == Count || u == "":
		return fmt.Sprintf("%g", n)
	default:
		return fmt.Sprintf("%.3g %s", n, u)
	}
}

const sizePrefixes = "kMGTPE"
