package event

import (
	"time"

	"github.com/pointsman/pointsman/pkg/query"
)

// Remedy is what follows a failed attempt.
type Remedy string

// The remedies; the empty value means that the attempt has not failed.
const (
	// RemedyFail ends the Task.
	RemedyFail Remedy = "fail"
	// RemedyRetry tries the same target again, after a back-off.
	RemedyRetry Remedy = "retry"
	// RemedyEnlarge tries the same cluster again with the next larger resource profile.
	RemedyEnlarge Remedy = "enlarge"
	// RemedyFailover goes to the next pre-approved fallback of the decision.
	RemedyFailover Remedy = "failover"
	// RemedyReroute asks the router for a new decision without what failed.
	RemedyReroute Remedy = "reroute"
)

// Failure is an engine's error with the class it was given.
type Failure struct {
	// Class is one of the closed list of pkg/failure.
	Class   string `json:"class"`
	Code    string `json:"code,omitempty"`
	Name    string `json:"name,omitempty"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// Stats are what an attempt took. A nil field is unknown, never zero.
type Stats struct {
	// QueueMs is from the decision seen to the slot had, AcquireMs from there to the engine's start (waking a pool
	// included), ExecMs to the first full result at the engine, DeliverMs to the result stored.
	QueueMs   *int64 `json:"queueMs,omitempty"`
	AcquireMs *int64 `json:"acquireMs,omitempty"`
	ExecMs    *int64 `json:"execMs,omitempty"`
	DeliverMs *int64 `json:"deliverMs,omitempty"`

	ReadRows        *int64 `json:"readRows,omitempty"`
	ReadBytes       *int64 `json:"readBytes,omitempty"`
	ResultRows      *int64 `json:"resultRows,omitempty"`
	ResultBytes     *int64 `json:"resultBytes,omitempty"`
	PeakMemoryBytes *int64 `json:"peakMemoryBytes,omitempty"`
}

// Attempt is one change of state of one try of a Task.
type Attempt struct {
	AttemptID string `json:"attemptId"`
	TaskID    string `json:"taskId"`
	Number    int    `json:"number"`
	// Seq counts the changes of an attempt from 1; (attemptId, seq) is the event's natural key, the first in the log wins.
	Seq   int       `json:"seq"`
	State string    `json:"state"`
	Prev  string    `json:"prev,omitempty"`
	At    time.Time `json:"at"`

	Target
	Tenant      string `json:"tenant,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Bucket      string `json:"bucket,omitempty"`
	Executor    string `json:"executor,omitempty"`
	Epoch       int64  `json:"epoch,omitempty"`
	// ExternalID is the engine's own name of the run.
	ExternalID string `json:"externalId,omitempty"`
	// QueuePosition is the place of an attempt that waits in the line of its executor, from 1.
	QueuePosition int `json:"queuePosition,omitempty"`
	// WaitsFor says which caps that executors share an attempt waits for, in words.
	WaitsFor string `json:"waitsFor,omitempty"`

	Failure *Failure `json:"failure,omitempty"`
	Remedy  Remedy   `json:"remedy,omitempty"`
	// Next is where a failover goes, or an attempt with more resources.
	Next  *Target `json:"next,omitempty"`
	Stats *Stats  `json:"stats,omitempty"`

	// Decision and Excluded come with remedy reroute: all that the router needs to decide again.
	Decision *RouteDecision `json:"decision,omitempty"`
	Excluded []Target       `json:"excluded,omitempty"`

	Extra query.Extra `json:"-"`
}

// Type is the CloudEvents type of the change.
func (a Attempt) Type() Type { return AttemptType(a.State) }

type attemptFields Attempt

// UnmarshalJSON reads an attempt's change and keeps unknown fields.
func (a *Attempt) UnmarshalJSON(data []byte) error {
	var f attemptFields
	extra, err := query.DecodeObject(data, &f)
	if err != nil {
		return err
	}
	*a = Attempt(f)
	a.Extra = extra
	return nil
}

// MarshalJSON writes the change with its unknown fields.
func (a Attempt) MarshalJSON() ([]byte, error) {
	return query.EncodeObject((*attemptFields)(&a), a.Extra)
}
