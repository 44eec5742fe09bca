package mysql

import (
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// kind is a column's type: its name as SQL writes it, and how the driver's value becomes one of the port.
type kind struct {
	name string
	read func(text []byte) any
}

// kindOf knows a type by the name that the driver gives it. local says that TIMESTAMP values are in a zone that is not known.
func kindOf(name string, local bool) kind {
	k := kind{name: name}
	if plain, ok := strings.CutPrefix(name, "UNSIGNED "); ok {
		k.name = plain + " UNSIGNED"
	}
	switch name {
	case "DECIMAL":
		k.read = func(b []byte) any { return json.Number(b) }
	case "BIT":
		k.read = readBits
	case "DATE":
		k.read = readDate
	case "DATETIME":
		k.read = readLocal
	case "TIMESTAMP":
		k.read = readInstant
		if local {
			k.read = readLocal
		}
	case "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "GEOMETRY", "VECTOR":
		k.read = func(b []byte) any { return "0x" + hex.EncodeToString(b) }
	}
	return k
}

// value is a value of the port. The driver gives integers and floats as numbers and all else as the server's text, which is exact.
func (k kind) value(v driver.Value) any {
	switch x := v.(type) {
	case []byte:
		if k.read != nil {
			return k.read(x)
		}
		return string(x)
	case float32:
		// The shortest text that reads back as the same FLOAT: 0.1 stays 0.1 and does not become 0.10000000149011612.
		if wide, err := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64); err == nil {
			return wide
		}
		return float64(x)
	case int64, uint64, float64, bool, string, nil:
		return x
	default:
		return text(v)
	}
}

// readBits gives a BIT column, of at most 64 bits, as a number.
func readBits(b []byte) any {
	if len(b) > 8 {
		return "0x" + hex.EncodeToString(b)
	}
	var n uint64
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

// readDate gives a day as its midnight in UTC. A date that is none, such as 0000-00-00, is text.
func readDate(b []byte) any {
	t, err := time.Parse(time.DateOnly, string(b))
	if err != nil {
		return string(b)
	}
	return t
}

// readLocal keeps a time without a zone as it is: no instant can be told from it.
func readLocal(b []byte) any {
	if _, err := time.Parse(time.DateTime, string(b)); err != nil {
		return string(b)
	}
	return strings.Replace(string(b), " ", "T", 1)
}

// readInstant reads a TIMESTAMP, which the session shows in UTC.
func readInstant(b []byte) any {
	t, err := time.Parse(time.DateTime, string(b))
	if err != nil {
		return string(b)
	}
	return t
}
