package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind says what a record is. A kind that a reader does not know changes nothing and is not an error, so that newer writers may add
// kinds. Those of budgets (reserve, refuse, settle, balance, close) are pkg/budget's.
type Kind string

// The kinds of records of the lease and of attempts.
const (
	// KindLease takes the partition over: it stands if its epoch is the present one plus one.
	KindLease Kind = "lease"
	// KindClaim announces that the owner is about to submit an attempt.
	KindClaim Kind = "claim"
	// KindSubmitted notes where a claimed attempt went and the engine's own id for it. It informs and decides nothing.
	KindSubmitted Kind = "submitted"
	// KindEnd ends an attempt; with Final set it ends the Task, and its payload is the Outcome.
	KindEnd Kind = "end"
)

const leasePrefix = "lease/"

// Record is one value of a ledger topic. Its position is its offset and its time the broker's append time; neither is in the value.
type Record struct {
	Kind  Kind   `json:"kind"`
	Epoch int64  `json:"epoch"`
	Owner string `json:"owner"` // unique per process start
	Key   string `json:"key"`   // the record key: attempt id, session id, or lease/<partition>
	// Seq numbers an owner's records, so that it tells its own apart when it reads them back. The fold does not look at it.
	Seq int64 `json:"seq,omitempty"`

	TaskID   string    `json:"taskId,omitempty"`
	Attempt  int       `json:"attempt,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"` // when the Task may be forgotten and nothing of it may start any more
	Final    bool      `json:"final,omitempty"`

	// Prev is set in a lease: a position at or before it from which a fold can start. It lets a reader find its feet in the
	// middle of a log.
	Prev *Anchor `json:"prev,omitempty"`

	Payload json.RawMessage `json:"payload,omitempty"` // opaque to the ledger
}

// Anchor is a position in the log together with the lease that held there, just before the record at Offset was applied.
type Anchor struct {
	Offset int64  `json:"offset"`
	Epoch  int64  `json:"epoch"`
	Owner  string `json:"owner,omitempty"`
	// Inferred marks a start whose lease is not known for sure, because retention took the records that would prove it. Epoch is
	// then a lower bound, and the fold corrects itself by what it reads.
	Inferred bool `json:"inferred,omitempty"`
}

// LeaseKey returns the record key of the leases of one partition.
func LeaseKey(partition int32) string { return leasePrefix + strconv.FormatInt(int64(partition), 10) }

// AttemptKey returns the id of a Task's nth attempt.
func AttemptKey(taskID string, n int) string { return taskID + "/" + strconv.Itoa(n) }

// SplitAttemptKey takes an attempt id apart. ok is false if the key is not one.
func SplitAttemptKey(key string) (taskID string, n int, ok bool) {
	i := strings.LastIndexByte(key, '/')
	if i <= 0 || strings.HasPrefix(key, leasePrefix) {
		return "", 0, false
	}
	n, err := strconv.Atoi(key[i+1:])
	if err != nil || n < 1 || AttemptKey(key[:i], n) != key {
		return "", 0, false
	}
	return key[:i], n, true
}

// Encode returns the record's JSON. The payload's bytes are compacted but otherwise kept, no character of them is escaped anew:
// what an owner publishes must equal what a later owner reads here.
func (r Record) Encode() ([]byte, error) {
	if err := r.validate(); err != nil {
		return nil, fmt.Errorf("encoding ledger record: %w", err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, fmt.Errorf("encoding ledger record: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Decode reads a record's JSON. Unknown fields are ignored.
func Decode(b []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return Record{}, fmt.Errorf("decoding ledger record: %w", err)
	}
	return r, nil
}

var (
	errNoOwner    = errors.New("no owner")
	errNoEpoch    = errors.New("epoch below 1")
	errNoKey      = errors.New("no key")
	errNoTask     = errors.New("no task id")
	errNoDeadline = errors.New("no deadline")
)

// validate holds what a record needs to be folded. A claim or an end without a deadline would either be kept for ever or
// forgotten at once; neither is a choice to make silently.
func (r Record) validate() error {
	switch {
	case r.Owner == "":
		return errNoOwner
	case r.Epoch < 1:
		return errNoEpoch
	case r.Key == "":
		return errNoKey
	case r.Kind != KindClaim && r.Kind != KindSubmitted && r.Kind != KindEnd:
		return nil // what else a kind needs is for its State to say
	case r.TaskID == "":
		return errNoTask
	case r.Kind != KindSubmitted && r.Deadline.IsZero():
		return errNoDeadline
	}
	return nil
}
