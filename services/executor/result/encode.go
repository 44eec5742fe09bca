package result

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// kind is what a column's type means for its encoding. Types are named by the engine: the rules below know the usual names,
// and what they don't know is encoded so that nothing gets lost.
type kind struct {
	// narrow integers have at most 32 bits, which every JSON reader keeps.
	narrow bool
	// dates have no time of day.
	dates bool
}

var (
	narrowType = regexp.MustCompile(`(?i)\bu?int(8|16|32)\b|\b(tiny|small|medium)?int(eger)?\b`)
	wideType   = regexp.MustCompile(`(?i)\bu?int(64|128|256)\b|\b(big|huge)int\b|decimal|numeric`)
	dateType   = regexp.MustCompile(`(?i)\bdate(32)?\b`)
	timeType   = regexp.MustCompile(`(?i)datetime|timestamp|\btime`)
)

func kindOf(typeName string) kind {
	return kind{
		narrow: narrowType.MatchString(typeName) && !wideType.MatchString(typeName),
		dates:  dateType.MatchString(typeName) && !timeType.MatchString(typeName),
	}
}

// encode writes a row as a JSON array and a newline.
func (k *Sink) encode(values []any) error {
	k.row.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			k.row.WriteByte(',')
		}
		var c kind
		if i < len(k.kinds) {
			c = k.kinds[i]
		}
		if err := k.value(c, v); err != nil {
			return err
		}
	}
	k.row.WriteString("]\n")
	return nil
}

func (k *Sink) value(c kind, v any) error {
	switch x := v.(type) {
	case nil:
		k.row.WriteString("null")
	case bool:
		k.row.WriteString(strconv.FormatBool(x))
	case int64:
		k.number(c, strconv.FormatInt(x, 10))
	case uint64:
		k.number(c, strconv.FormatUint(x, 10))
	case json.Number:
		return k.text(x.String())
	case float64:
		switch {
		case math.IsNaN(x):
			k.row.WriteString(`"NaN"`)
		case math.IsInf(x, 1):
			k.row.WriteString(`"Infinity"`)
		case math.IsInf(x, -1):
			k.row.WriteString(`"-Infinity"`)
		default:
			return k.plain(x)
		}
	case string:
		return k.text(x)
	case time.Time:
		if c.dates {
			return k.text(x.Format(time.DateOnly))
		}
		return k.text(x.Format(time.RFC3339Nano))
	case []any:
		k.row.WriteByte('[')
		for i, e := range x {
			if i > 0 {
				k.row.WriteByte(',')
			}
			if err := k.value(c, e); err != nil {
				return err
			}
		}
		k.row.WriteByte(']')
	case map[string]any:
		return k.object(c, x)
	default:
		return fmt.Errorf("a value of Go type %T is none that an engine may give", v)
	}
	return nil
}

func (k *Sink) object(c kind, m map[string]any) error {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names) // equal rows are equal bytes
	k.row.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			k.row.WriteByte(',')
		}
		if err := k.text(name); err != nil {
			return err
		}
		k.row.WriteByte(':')
		if err := k.value(c, m[name]); err != nil {
			return err
		}
	}
	k.row.WriteByte('}')
	return nil
}

func (k *Sink) number(c kind, digits string) {
	if c.narrow {
		k.row.WriteString(digits)
		return
	}
	k.row.WriteByte('"')
	k.row.WriteString(digits)
	k.row.WriteByte('"')
}

func (k *Sink) text(s string) error { return k.plain(s) }

// plain writes what encoding/json writes, without escaping < and >, which would make every reader undo it.
func (k *Sink) plain(v any) error {
	enc := json.NewEncoder(&k.row)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	k.row.Truncate(k.row.Len() - 1) // the encoder's newline
	return nil
}
