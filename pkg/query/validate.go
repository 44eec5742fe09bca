package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits bound what a Task may ask for. Zero fields fall back to DefaultLimits.
type Limits struct {
	MaxSQLBytes int           `yaml:"max_sql_bytes"`
	MaxSLA      time.Duration `yaml:"max_sla"`
	MaxTimeout  time.Duration `yaml:"max_timeout"`
}

// DefaultLimits are the limits of a platform that sets none: 1 MiB of SQL, a day of SLA, a day of timeout.
var DefaultLimits = Limits{MaxSQLBytes: 1 << 20, MaxSLA: 24 * time.Hour, MaxTimeout: 24 * time.Hour}

// MaxIDBytes bounds ids, so that they fit keys, headers and engine-side query ids.
const MaxIDBytes = 128

const (
	maxNameBytes = 256
	maxTags      = 32
)

// ErrTooLarge marks a Task whose SQL is over the limit; intake answers it with 413.
var ErrTooLarge = errors.New("the SQL text is too large")

// FieldError is one fault of a Task, with the JSON field that has it.
type FieldError struct {
	Field   string
	Message string
	Err     error
}

// Error says which field is wrong and what is expected of it.
func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// Unwrap gives the sentinel behind the fault, if there is one.
func (e *FieldError) Unwrap() error { return e.Err }

// Validate returns every fault of a Task, joined, or nil. Each joined error is a *FieldError.
func (t Task) Validate(l Limits) error {
	l = l.withDefaults()
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if t.ID != "" && !ValidID(t.ID) {
		bad("id", "must be 1 to %d characters of A-Z a-z 0-9 . _ : -", MaxIDBytes)
	}
	intent := bytes.TrimSpace(t.Intent)
	hasIntent := len(intent) > 0 && !bytes.Equal(intent, []byte("null"))
	if strings.TrimSpace(t.SQL) == "" && !hasIntent {
		bad("sql", "give the query as `sql` (or as `intent`); both are missing")
	}
	if len(t.SQL) > l.MaxSQLBytes {
		errs = append(errs, &FieldError{Field: "sql", Message: fmt.Sprintf("%d bytes are over the limit of %d; "+
			"load long value lists into a table and join it", len(t.SQL), l.MaxSQLBytes), Err: ErrTooLarge})
	}
	if t.Tenant == "" {
		bad("tenant", "is missing")
	}
	for _, f := range []struct{ name, value string }{
		{"tenant", t.Tenant},
		{"user", t.User},
		{"dataset", t.Dataset},
		{"queryType", t.QueryType},
		{"dialect", t.Dialect},
		{"catalog", t.Catalog},
		{"schema", t.Schema},
		{"resourceHint", t.ResourceHint},
		{"engineHint", t.EngineHint},
		{"idempotencyKey", t.IdempotencyKey},
		{"session.id", t.SessionID()},
		{"session.class", string(t.SessionClass())},
	} {
		if len(f.value) > maxNameBytes || !utf8.ValidString(f.value) || strings.ContainsAny(f.value, "\x00\n\r") {
			bad(f.name, "must be at most %d bytes of valid UTF-8 on one line", maxNameBytes)
		}
	}
	checkSeconds(bad, "slaSeconds", t.SLASeconds, l.MaxSLA)
	checkSeconds(bad, "timeoutSeconds", t.TimeoutSeconds, l.MaxTimeout)
	if len(t.Tags) > maxTags {
		bad("tags", "%d tags are over the limit of %d", len(t.Tags), maxTags)
	}
	switch t.Consistency {
	case "", Eventual, ReadYourWrites, Strong:
	default:
		bad("consistency", "%q is not one of eventual, read_your_writes, strong", t.Consistency)
	}
	switch t.ResultFormat {
	case "", "json", "ndjson", "csv", "arrow":
	default:
		bad("resultFormat", "%q is not one of json, ndjson, csv, arrow", t.ResultFormat)
	}
	return errors.Join(errs...)
}

func (l Limits) withDefaults() Limits {
	if l.MaxSQLBytes == 0 {
		l.MaxSQLBytes = DefaultLimits.MaxSQLBytes
	}
	if l.MaxSLA == 0 {
		l.MaxSLA = DefaultLimits.MaxSLA
	}
	if l.MaxTimeout == 0 {
		l.MaxTimeout = DefaultLimits.MaxTimeout
	}
	return l
}

func checkSeconds(bad func(string, string, ...any), field string, s *float64, most time.Duration) {
	if s == nil {
		return
	}
	if *s <= 0 || *s > most.Seconds() || *s != *s {
		bad(field, "%v is outside the range above 0 and up to %v seconds", *s, most.Seconds())
	}
}

// ValidID reports whether an id may be used as a Task id.
func ValidID(id string) bool {
	if id == "" || len(id) > MaxIDBytes {
		return false
	}
	for i := range len(id) {
		c := id[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == ':', c == '-':
		default:
			return false
		}
	}
	return true
}

// DescribeJSONError turns a decoding error into a sentence that names the field and the type that is expected.
func DescribeJSONError(err error) string {
	if typeErr, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := typeErr.Field
		if field == "" {
			field = "the document"
		}
		return fmt.Sprintf("%s: a JSON %s was given where %s is expected", field, typeErr.Value, jsonKind(typeErr.Type.Kind().String()))
	}
	if syntaxErr, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("not JSON: %s at byte %d", syntaxErr.Error(), syntaxErr.Offset)
	}
	if errors.Is(err, ErrNotObject) {
		return "the document must be a JSON object"
	}
	return "not a valid request: " + err.Error()
}

func jsonKind(goKind string) string {
	switch {
	case strings.HasPrefix(goKind, "int"), strings.HasPrefix(goKind, "uint"), strings.HasPrefix(goKind, "float"):
		return "a number"
	case goKind == "slice", goKind == "array":
		return "an array"
	case goKind == "struct", goKind == "map", goKind == "ptr":
		return "an object"
	case goKind == "bool":
		return "true or false"
	default:
		return "a " + goKind
	}
}
