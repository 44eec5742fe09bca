package querylog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fastjson"
)

// object is what a line of JSON says of a statement. It is used for one line after the other.
type object struct {
	id      []byte // raw JSON, or nothing
	sql     string
	dialect string

	parser fastjson.Parser
	found  bool
	odd    bool
	visit  func(key []byte, v *fastjson.Value)
}

// parse reads a line. Almost all of them are read by fastjson, in a fifth of the time that encoding/json takes; whatever that
// finds odd, and whatever is wrong, encoding/json has the last word on. An escape that JSON does not know, as in
// {"sql":"a rlike '\d'"}, is taken as it stands: so the log's writer meant it.
func (o *object) parse(line string) error {
	o.id, o.sql, o.dialect, o.found, o.odd = o.id[:0], "", "", false, false
	if v, err := o.parser.Parse(line); err == nil && v.Type() == fastjson.TypeObject {
		if o.visit == nil {
			o.visit = o.field
		}
		v.GetObject().Visit(o.visit)
		if o.found && !o.odd {
			return nil
		}
	}
	return o.strict(line)
}

// field takes a field of the object. As with encoding/json the last of a name counts, in whatever case it is spelt.
func (o *object) field(key []byte, v *fastjson.Value) {
	switch name := string(key); {
	case strings.EqualFold(name, "sql"):
		o.sql, o.found = o.text(v), true
	case strings.EqualFold(name, "dialect"):
		o.dialect = o.text(v)
	case strings.EqualFold(name, "id"):
		o.id = v.MarshalTo(o.id[:0]) // as it was written
		o.odd = o.odd || !json.Valid(o.id) || !utf8.Valid(o.id)
	}
}

func (o *object) text(v *fastjson.Value) string {
	s, err := v.StringBytes()
	o.odd = o.odd || err != nil
	return string(s)
}

// strict reads a line with encoding/json, for its word on what is odd or wrong.
func (o *object) strict(line string) error {
	var full struct {
		ID      json.RawMessage `json:"id"`
		SQL     *string         `json:"sql"`
		Dialect string          `json:"dialect"`
	}
	o.id, o.sql, o.dialect = o.id[:0], "", ""
	if err := json.Unmarshal([]byte(line), &full); err != nil {
		return unread(err)
	}
	if full.SQL == nil {
		return errNoSQL
	}
	o.id, o.sql, o.dialect = append(o.id, full.ID...), *full.SQL, full.Dialect
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
