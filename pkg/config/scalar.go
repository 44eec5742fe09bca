package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
	sizeType     = reflect.TypeFor[ByteSize]()
	secretType   = reflect.TypeFor[Secret]()

	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
)

// isScalar says whether a type is written as one text. Pointers are looked through by the callers.
func isScalar(t reflect.Type) bool {
	switch {
	case t == durationType, t == timeType, t == secretType, reflect.PointerTo(t).Implements(textUnmarshaler):
		return true
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	default:
		return false
	}
}

// decodeScalar reads a text into a new value of the type. Its errors say what was wanted, not how it was parsed.
func decodeScalar(t reflect.Type, text string) (reflect.Value, error) {
	v := reflect.New(t).Elem()
	switch {
	case t == durationType:
		d, err := parseDuration(text)
		v.SetInt(int64(d))
		return v, err
	case t == timeType:
		at, err := parseTime(text)
		v.Set(reflect.ValueOf(at))
		return v, err
	case t == secretType:
		v.SetString(text)
		return v, nil
	case reflect.PointerTo(t).Implements(textUnmarshaler):
		err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
		return v, err
	}
	switch t.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return v, fmt.Errorf("must be true or false, is %q", text)
		}
		v.SetBool(text == "true")
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(text, t.Bits())
		if err != nil {
			return v, numberError("a number", text, err)
		}
		v.SetFloat(f)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, t.Bits())
		if err != nil {
			return v, numberError("a whole number", text, err)
		}
		v.SetInt(n)
	default:
		n, err := strconv.ParseUint(text, 10, t.Bits())
		if err != nil {
			return v, numberError("a whole number that is not negative", text, err)
		}
		v.SetUint(n)
	}
	return v, nil
}

func numberError(want, text string, err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("must be %s, %s is out of range", want, text)
	}
	return fmt.Errorf("must be %s, is %q", want, text)
}

// encodeScalar writes a value as decodeScalar reads it.
func encodeScalar(v reflect.Value) string {
	switch t := v.Type(); {
	case t == durationType:
		return formatDuration(time.Duration(v.Int()))
	case t == timeType:
		return v.Interface().(time.Time).UTC().Format(time.RFC3339Nano)
	case t == secretType:
		return v.String()
	case t.Implements(textMarshaler):
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			panic(fmt.Sprintf("config: a default of type %s cannot be written: %v", t, err))
		}
		return string(text)
	case reflect.PointerTo(t).Implements(textUnmarshaler):
		panic(fmt.Sprintf("config: %s reads text but does not write it (MarshalText is missing)", t))
	}
	return fmt.Sprint(v.Interface())
}

// parseDuration is time.ParseDuration with days in front, because retention and windows are counted in days.
func parseDuration(text string) (time.Duration, error) {
	s := strings.ReplaceAll(strings.TrimSpace(text), " ", "")
	var days time.Duration
	if number, rest, found := strings.Cut(s, "d"); found {
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n > 100_000 || n < -100_000 {
			return 0, fmt.Errorf("%q is no duration: write for example 250ms, 5s, 1h30m or 7d", text)
		}
		if days = time.Duration(n) * 24 * time.Hour; rest == "" {
			return days, nil
		}
		s = rest
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		if _, numErr := strconv.ParseFloat(s, 64); numErr == nil {
			return 0, fmt.Errorf("%q has no unit: write for example 250ms, 5s, 1h30m or 7d", text)
		}
		return 0, fmt.Errorf("%q is no duration: write for example 250ms, 5s, 1h30m or 7d", text)
	}
	if days < 0 {
		d = -d
	}
	return days + d, nil
}

// formatDuration drops the zero parts that time.Duration writes: 1h, not 1h0m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: write for example 2026-11-30T07:00:00Z or 2026-11-30", text)
}
