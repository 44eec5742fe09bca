package stream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
)

// Header names of CloudEvents in binary mode.
const (
	headerPrefix      = "ce_"
	headerContentType = "content-type"
	headerSpecVersion = "ce_specversion"
	headerID          = "ce_id"
	headerSource      = "ce_source"
	headerType        = "ce_type"
	headerTime        = "ce_time"
	headerSubject     = "ce_subject"

	specVersion    = "1.0"
	structuredType = "application/cloudevents+json"
)

// Mode is how an event lay in its record.
type Mode string

// The modes.
const (
	ModeBinary     Mode = "binary"     // attributes in headers, data in the value
	ModeStructured Mode = "structured" // one JSON object with both
	ModeBare       Mode = "bare"       // data alone, from a producer that knows no CloudEvents
)

// Envelope is what surrounds an event's data. Fields that were not given are empty: a missing id stays missing, it is the reader's to
// derive one.
type Envelope struct {
	Mode        Mode
	ID          string
	Type        event.Type
	Source      string
	Subject     string
	Time        time.Time
	ContentType string
	Extensions  map[string]string
	Data        json.RawMessage
	// Tombstone: the record has no value. On a compacted topic it says that the key is gone.
	Tombstone bool
}

// Rules say what a topic takes besides complete CloudEvents.
type Rules struct {
	BareType   event.Type // the type of values that come without one; empty: such a record can't be read
	Tombstones bool       // the topic is compacted, null values mean something
}

// RulesFor returns the rules of a topic (without prefix).
func RulesFor(topic string) Rules {
	switch topic {
	case event.TopicRequests:
		return Rules{BareType: event.QueryRequested}
	case event.TopicSignals, event.TopicPolicies:
		return Rules{Tombstones: true}
	default:
		return Rules{}
	}
}

// FaultClass says what is wrong with a record that can't be read. It is a metric label, so the list is closed.
type FaultClass string

// The classes. The readers of payloads add FaultSchema.
const (
	FaultNullValue   FaultClass = "null_value"
	FaultNotJSON     FaultClass = "not_json"
	FaultEnvelope    FaultClass = "bad_envelope"
	FaultMissingType FaultClass = "missing_type"
	FaultUnknownType FaultClass = "unknown_type"
	FaultSchema      FaultClass = "bad_payload"
	FaultInternal    FaultClass = "internal"
)

// Fault is the error of a record that can't be read, now or ever. It belongs into the dead letter topic.
type Fault struct {
	Class FaultClass
	Err   error
}

// Error says the class and the cause.
func (f *Fault) Error() string { return fmt.Sprintf("%s: %v", f.Class, f.Err) }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// FaultOf is the class of what a record could not be read for. What has none is a payload that is none of its topic's.
func FaultOf(err error) FaultClass {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f.Class
	}
	return FaultSchema
}

func fault(class FaultClass, format string, args ...any) *Fault {
	return &Fault{Class: class, Err: fmt.Errorf(format, args...)}
}

// Decode reads a record's envelope, and checks that its data is JSON, no more. It never panics, whatever the headers hold. Trace
// headers are not looked at here: a malformed one is the tracer's to ignore.
func Decode(rec *kgo.Record, rules Rules) (Envelope, error) {
	headers := make(map[string]string, len(rec.Headers))
	for _, h := range rec.Headers {
		if key := strings.ToLower(h.Key); utf8.Valid(h.Value) {
			headers[key] = string(h.Value) // the last one wins, as in Kafka's own lastHeader
		}
	}
	contentType := headers[headerContentType]
	media, _, _ := mime.ParseMediaType(contentType)
	if strings.EqualFold(media, structuredType) {
		return decodeStructured(rec, rules)
	}
	e := Envelope{Mode: ModeBinary, ContentType: contentType}
	if headers[headerType] == "" {
		e.Mode = ModeBare
	}
	for name, value := range headers {
		if after0, ok := strings.CutPrefix(name, headerPrefix); ok {
			if err := e.set(after0, value); err != nil {
				return e, err
			}
		}
	}
	if rec.Value == nil {
		e.Tombstone = true
		if !rules.Tombstones {
			return e, fault(FaultNullValue, "the record has no value")
		}
		return e, nil
	}
	if e.Type == "" {
		if rules.BareType == "" {
			return e, fault(FaultMissingType, "no %s header, and this topic takes no bare values", headerType)
		}
		e.Type = rules.BareType
	}
	return withData(e, rec.Value)
}

// set takes one attribute. Only what a later reader would trip over is refused: another major version of the specification, and a
// time that is none.
func (e *Envelope) set(name, value string) error {
	switch name {
	case "specversion":
		if value != "" && !strings.HasPrefix(value, "1.") {
			return fault(FaultEnvelope, "specversion %q is not 1.x", bounded(value, 40))
		}
	case "id":
		e.ID = value
	case "type":
		e.Type = event.Type(value)
	case "source":
		e.Source = value
	case "subject":
		e.Subject = value
	case "datacontenttype":
		e.ContentType = value
	case "time":
		if value == "" {
			return nil
		}
		t, err := time.Parse(time.RFC3339Nano, value)
		if err != nil {
			return fault(FaultEnvelope, "time %q is not in RFC 3339 form", bounded(value, 60))
		}
		e.Time = t.UTC()
	default:
		if e.Extensions == nil {
			e.Extensions = map[string]string{}
		}
		e.Extensions[name] = value
	}
	return nil
}

func withData(e Envelope, data []byte) (Envelope, error) {
	data = bytes.TrimSpace(data)
	if !isJSON(data) {
		return e, fault(FaultNotJSON, "the value is not JSON (%d bytes)", len(data))
	}
	e.Data = data
	return e, nil
}

// anything is all that encoding/json calls valid.
var anything = jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func isJSON(data []byte) bool { return jsontext.Value(data).IsValid(anything) }

func decodeStructured(rec *kgo.Record, rules Rules) (Envelope, error) {
	e := Envelope{Mode: ModeStructured}
	if rec.Value == nil {
		e.Tombstone = true
		if !rules.Tombstones {
			return e, fault(FaultNullValue, "the record has no value")
		}
		return e, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(rec.Value, &fields); err != nil {
		return e, fault(FaultNotJSON, "the value is not a CloudEvents object: %w", err)
	}
	data, hasData := fields["data"]
	encoded, hasEncoded := fields["data_base64"]
	for name, raw := range fields {
		if name == "data" || name == "data_base64" {
			continue
		}
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			if name == "id" || name == "type" || name == "source" || name == "specversion" {
				return e, fault(FaultEnvelope, "attribute %q is not a string", name)
			}
			text = string(raw) // an extension may be a number or a boolean
		}
		if err := e.set(strings.ToLower(name), text); err != nil {
			return e, err
		}
	}
	switch {
	case hasEncoded && !hasData:
		var b []byte
		var text string
		err := json.Unmarshal(encoded, &text)
		if err == nil {
			b, err = base64.StdEncoding.DecodeString(text)
		}
		if err != nil {
			return e, fault(FaultEnvelope, "data_base64: %w", err)
		}
		data = b
	case !hasData:
		return e, fault(FaultNullValue, "the event has no data")
	}
	if e.Type == "" {
		return e, fault(FaultMissingType, "the event has no type")
	}
	return withData(e, data)
}

// bounded cuts a text for a message. It cuts between characters.
func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := n
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
