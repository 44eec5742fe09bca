// Package query holds what a user asks for: the Task, its SLA, its session, and the rules a Task must meet to be taken in.
//
// It is core: pure values and pure functions. How a Task reaches a topic is pkg/stream's, what it costs is pkg/estimate's.
package query

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Consistency is how fresh the data that a Task reads must be.
type Consistency string

// The consistency levels; the empty value means Eventual.
const (
	Eventual       Consistency = "eventual"
	ReadYourWrites Consistency = "read_your_writes"
	Strong         Consistency = "strong"
)

// SessionClass says what kind of principal drives a session.
type SessionClass string

// The session classes; the empty value is unknown, and no budget of a class applies to it.
const (
	Human SessionClass = "human"
	Batch SessionClass = "batch"
	Agent SessionClass = "agent"
)

// Session groups the queries of one conversation, notebook, dashboard load or agent loop. Budgets hang on it.
type Session struct {
	ID    string       `json:"id,omitempty"`
	Class SessionClass `json:"class,omitempty"`
}

// Task is what the user asked for. It never changes, however often it is tried.
// The smallest Task in JSON has `sql` and `tenant`; everything else is optional.
type Task struct {
	// ID names the Task; empty means that the router derives one from the record's coordinates.
	ID string `json:"id,omitempty"`
	// Dataset is the logical data set asked about; it may be empty when the SQL names its tables.
	Dataset   string `json:"dataset,omitempty"`
	QueryType string `json:"queryType,omitempty"`
	SQL       string `json:"sql,omitempty"`
	// Intent is a logical plan instead of SQL, kept as it came.
	Intent json.RawMessage `json:"intent,omitempty"`
	// Dialect of the SQL text; empty means "auto".
	Dialect string `json:"dialect,omitempty"`
	Catalog string `json:"catalog,omitempty"`
	Schema  string `json:"schema,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	User    string `json:"user,omitempty"`
	// SLASeconds is the time from submission to delivered result; nil means the policy's default.
	SLASeconds *float64 `json:"slaSeconds,omitempty"`
	// TimeoutSeconds ends the Task; nil means the policy's default. The Task's deadline is SubmittedAt plus this.
	TimeoutSeconds *float64    `json:"timeoutSeconds,omitempty"`
	Session        *Session    `json:"session,omitempty"`
	Tags           []string    `json:"tags,omitempty"`
	Consistency    Consistency `json:"consistency,omitempty"`
	// CommitTS is the commit timestamp that a read_your_writes read must see, in the source's own unit.
	CommitTS *int64 `json:"commitTs,omitempty"`
	// ResourceHint and EngineHint are wishes: filters, rules and the SLA come before them, and the decision says so then.
	ResourceHint string `json:"resourceHint,omitempty"`
	EngineHint   string `json:"engineHint,omitempty"`
	// Priority orders Tasks that wait for the same slot: higher first, 0 when absent.
	Priority int `json:"priority,omitempty"`
	// ResultFormat is how the result is wanted: json, ndjson, csv or arrow; empty leaves it to the reader. A small result is
	// carried as JSON whatever is wanted, and written in the format when it is fetched.
	ResultFormat string `json:"resultFormat,omitempty"`
	// SubmittedAt is when the user handed the Task in, in UTC; nil until intake or the router stamps it.
	SubmittedAt *time.Time `json:"submittedAt,omitempty"`
	// IdempotencyKey is the producer's own key; with the tenant it fixes the Task's ID.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`

	// Extra keeps fields this version does not know, so that they survive a round trip.
	Extra Extra `json:"-"`
}

type taskFields Task

// UnmarshalJSON reads a Task and keeps unknown fields in Extra.
func (t *Task) UnmarshalJSON(data []byte) error {
	var f taskFields
	extra, err := DecodeObject(data, &f)
	if err != nil {
		return err
	}
	*t = Task(f)
	t.Extra = extra
	return nil
}

// MarshalJSON writes the Task and its unknown fields in a fixed order.
func (t Task) MarshalJSON() ([]byte, error) {
	return EncodeObject((*taskFields)(&t), t.Extra)
}

// MarshalJSONTo is MarshalJSON for a Task within another event.
func (t Task) MarshalJSONTo(enc *jsontext.Encoder) error {
	return EncodeObjectTo(enc, (*taskFields)(&t), t.Extra)
}

// SessionID is the session's id, or "" when the Task has none.
func (t Task) SessionID() string {
	if t.Session == nil {
		return ""
	}
	return t.Session.ID
}

// SessionClass is the session's class, or "" when it is unknown.
func (t Task) SessionClass() SessionClass {
	if t.Session == nil {
		return ""
	}
	return t.Session.Class
}

// SLA is the Task's SLA, or def when the Task names none.
func (t Task) SLA(def time.Duration) time.Duration { return seconds(t.SLASeconds, def) }

// Timeout is the Task's timeout, or def when the Task names none.
func (t Task) Timeout(def time.Duration) time.Duration { return seconds(t.TimeoutSeconds, def) }

// Deadline is the moment past which nothing of the Task is started, or false when the Task is not stamped yet.
func (t Task) Deadline(defaultTimeout time.Duration) (time.Time, bool) {
	if t.SubmittedAt == nil {
		return time.Time{}, false
	}
	return t.SubmittedAt.Add(t.Timeout(defaultTimeout)), true
}

// Key is the record key of the Task on the requests topic: the session keeps its queries in order, else the Task stands alone.
func (t Task) Key() string {
	if id := t.SessionID(); id != "" {
		return id
	}
	return t.ID
}

// HasTag reports whether the Task carries the tag.
func (t Task) HasTag(tag string) bool {
	return slices.Contains(t.Tags, tag)
}

func seconds(s *float64, def time.Duration) time.Duration {
	if s == nil {
		return def
	}
	return time.Duration(*s * float64(time.Second))
}
