package querylog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// object is what a line of JSON says of a statement.
type object struct {
	id      string // raw JSON, or nothing
	sql     string
	dialect string
	found   bool
}

// parse reads a line. Lines that are as plain as most are read by hand, since the statement inside is read much faster than
// encoding/json would hand it over; whatever is less plain, and whatever is wrong, goes there.
func (o *object) parse(line string) error {
	*o = object{}
	if o.plain(line) {
		return nil
	}
	var full struct {
		ID      json.RawMessage `json:"id"`
		SQL     *string         `json:"sql"`
		Dialect string          `json:"dialect"`
	}
	if err := json.Unmarshal([]byte(line), &full); err != nil {
		return unread(err)
	}
	if full.SQL == nil {
		return errNoSQL
	}
	*o = object{id: string(full.ID), sql: *full.SQL, dialect: full.Dialect, found: true}
	return nil
}

// unread says in plain words why a line is no statement.
func unread(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("the line is not a JSON object with a statement: %w", err)
	}
	kind, _, _ := strings.Cut(wrong.Value, " ") // a number's value follows
	if wrong.Field == "" {
		return fmt.Errorf("the line must hold a JSON object, but holds a JSON %s", kind)
	}
	return fmt.Errorf("%s must be a JSON string, but is a JSON %s", wrong.Field, kind)
}

var errNoSQL = fmt.Errorf("no sql in the object")

// plain reads an object of strings and plain values; it gives up on anything else.
func (o *object) plain(line string) bool {
	i := blanks(line, 0)
	if i >= len(line) || line[i] != '{' {
		return false
	}
	for i++; ; i++ {
		key, next, ok := text(line, blanks(line, i))
		if !ok {
			return false
		}
		i = blanks(line, next)
		if i >= len(line) || line[i] != ':' {
			return false
		}
		i = blanks(line, i+1)
		switch key {
		case "sql", "dialect":
			var s string
			if s, next, ok = text(line, i); !ok {
				return false
			}
			if key == "sql" {
				o.sql, o.found = s, true
			} else {
				o.dialect = s
			}
		default:
			var raw string
			if raw, next, ok = value(line, i); !ok {
				return false
			}
			if key == "id" {
				o.id = raw
			} else if strings.EqualFold(key, "sql") || strings.EqualFold(key, "id") || strings.EqualFold(key, "dialect") {
				return false // encoding/json takes other spellings, and so do we
			}
		}
		i = blanks(line, next)
		if i >= len(line) {
			return false
		}
		if line[i] == '}' {
			return o.found && blanks(line, i+1) == len(line)
		}
		if line[i] != ',' {
			return false
		}
	}
}

func blanks(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

// value is the raw text of a string, a number or a word at i.
func value(s string, i int) (raw string, next int, ok bool) {
	if i >= len(s) {
		return "", 0, false
	}
	if s[i] == '"' {
		_, next, ok = quoted(s, i)
		if !ok {
			return "", 0, false
		}
		return s[i:next], next, utf8.ValidString(s[i:next])
	}
	j := i
	for j < len(s) && (s[j] >= '0' && s[j] <= '9' || s[j] >= 'a' && s[j] <= 'z' || s[j] == '-' || s[j] == '+' || s[j] == '.' || s[j] == 'E') {
		j++
	}
	return s[i:j], j, j > i && json.Valid([]byte(s[i:j]))
}

// text reads a string at i.
func text(s string, i int) (out string, next int, ok bool) {
	escaped, next, ok := quoted(s, i)
	if !ok {
		return "", 0, false
	}
	if !escaped {
		return s[i+1 : next-1], next, true
	}
	raw, ok := unescape(make([]byte, 0, next-i), s[i+1:next-1])
	return string(raw), next, ok
}

// quoted finds the end of a string at i and whether it has escapes.
func quoted(s string, i int) (escaped bool, next int, ok bool) {
	if i >= len(s) || s[i] != '"' {
		return false, 0, false
	}
	for j, end := i+1, -1; j < len(s); {
		if end < j {
			k := strings.IndexByte(s[j:], '"')
			if k < 0 {
				return false, 0, false
			}
			end = j + k
		}
		b := strings.IndexByte(s[j:end], '\\')
		if b < 0 {
			return escaped, end + 1, true
		}
		escaped = true
		j += b + 2
	}
	return false, 0, false
}
