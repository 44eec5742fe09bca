package event

import (
	"encoding/json"
	"time"

	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Status is how a Task ended.
type Status string

// The ends of a Task.
const (
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Rejected  Status = "rejected"
	Cancelled Status = "cancelled"
	// Expired means that the deadline passed first.
	Expired Status = "expired"
)

// Column is one column of a result.
type Column struct {
	Name string `json:"name"`
	// Type is the engine's own type name.
	Type string `json:"type"`
}

// Result is what the user asked for, or where it lies.
type Result struct {
	Columns []Column `json:"columns,omitempty"`
	Rows    int64    `json:"rows"`
	Bytes   int64    `json:"bytes"`
	// Format is "json" for inline rows; "ndjson", "csv" or "arrow" for a file.
	Format string `json:"format"`
	// Inline holds the rows as arrays, for small results. 64-bit integers and decimals are strings, so that no reader
	// rounds them.
	Inline json.RawMessage `json:"inline,omitempty"`
	// File names the result file, relative to the result folder; intake serves it until ExpiresAt.
	File      string     `json:"file,omitempty"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	// Truncated is true when the size cap cut the rows short.
	Truncated bool `json:"truncated,omitempty"`
}

// Outcome is the end of a Task: exactly one per Task. Its bytes are fixed by the ledger before it is published.
type Outcome struct {
	TaskID string `json:"taskId"`
	Status Status `json:"status"`

	Tenant      string             `json:"tenant,omitempty"`
	User        string             `json:"user,omitempty"`
	SessionID   string             `json:"sessionId,omitempty"`
	Class       query.SessionClass `json:"sessionClass,omitempty"`
	Tags        []string           `json:"tags,omitempty"`
	Dataset     string             `json:"dataset,omitempty"`
	QueryType   string             `json:"queryType,omitempty"`
	Fingerprint string             `json:"fingerprint,omitempty"`
	Bucket      string             `json:"bucket,omitempty"`
	Statement   string             `json:"statement,omitempty"`
	Tables      []string           `json:"tables,omitempty"`

	// Target is where the last attempt ran; empty when none did.
	Target
	Rule       string   `json:"rule,omitempty"`
	Verdict    string   `json:"verdict,omitempty"`
	Reasons    []string `json:"reasons,omitempty"`
	PolicyHash string   `json:"policyHash,omitempty"`
	// Attempts counts the claimed attempts; Rerouted says that the last ran elsewhere than the first.
	Attempts int  `json:"attempts"`
	Rerouted bool `json:"rerouted"`

	SubmittedAt time.Time  `json:"submittedAt"`
	StartedAt   *time.Time `json:"startedAt,omitempty"` // the last attempt's start on its engine
	FinishedAt  time.Time  `json:"finishedAt"`
	TotalMs     int64      `json:"totalMs"`
	Stats       Stats      `json:"stats"`
	SLAMs       int64      `json:"slaMs"`
	// SLAHit counts end to end; whatever did not succeed is a miss.
	SLAHit bool `json:"slaHit"`

	Estimates map[string]signal.Value `json:"estimates,omitempty"`
	Failure   *Failure                `json:"failure,omitempty"`
	Rejection *Rejection              `json:"rejection,omitempty"`
	Result    *Result                 `json:"result,omitempty"`

	Extra query.Extra `json:"-"`
}

type outcomeFields Outcome

// UnmarshalJSON reads an Outcome and keeps unknown fields.
func (o *Outcome) UnmarshalJSON(data []byte) error {
	var f outcomeFields
	extra, err := query.DecodeObject(data, &f)
	if err != nil {
		return err
	}
	*o = Outcome(f)
	o.Extra = extra
	return nil
}

// MarshalJSON writes the Outcome with its unknown fields.
func (o Outcome) MarshalJSON() ([]byte, error) {
	return query.EncodeObject((*outcomeFields)(&o), o.Extra)
}
