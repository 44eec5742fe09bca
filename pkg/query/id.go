package query

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// IDFromKey derives the Task id from the tenant and the producer's idempotency key: whatever is sent again is the same Task.
func IDFromKey(tenant, key string) string { return derive("key", tenant, key) }

// IDFromRecord derives the id of a Task that came without one from its record's coordinates, so that a reader who meets
// the record again after a crash gives it the same id.
func IDFromRecord(topic string, partition int32, offset int64) string {
	return derive("record", topic, strconv.Itoa(int(partition)), strconv.FormatInt(offset, 10))
}

// Origin is where a request was read: the CloudEvent it came in, if it was one, and its record.
type Origin struct {
	EventSource, EventID string
	Topic                string // without prefix
	Partition            int32
	Offset               int64
}

// IDIn is the Task's own id, or one derived from what makes the request the same request when it is sent or read again: the
// producer's key, the CloudEvent's source and id (which together name an event), or the record's place. Every reader of a
// request must come to the same id.
func (t Task) IDIn(o Origin) string {
	switch {
	case t.ID != "":
		return t.ID
	case t.IdempotencyKey != "":
		return IDFromKey(t.Tenant, t.IdempotencyKey)
	case o.EventID != "" && o.EventSource != "":
		return IDFromKey("ce:"+o.EventSource, o.EventID)
	default:
		return IDFromRecord(o.Topic, o.Partition, o.Offset)
	}
}

// AttemptID names attempt n of a Task.
func AttemptID(taskID string, n int) string { return taskID + "/" + strconv.Itoa(n) }

// SplitAttemptID is the inverse of AttemptID.
func SplitAttemptID(attemptID string) (taskID string, n int, err error) {
	i := strings.LastIndexByte(attemptID, '/')
	if i < 0 {
		return "", 0, fmt.Errorf("attempt id %q has no number", attemptID)
	}
	n, err = strconv.Atoi(attemptID[i+1:])
	if err != nil || n < 0 {
		return "", 0, fmt.Errorf("attempt id %q has no number", attemptID)
	}
	return attemptID[:i], n, nil
}

// Digest is a short hash of what a Task asks for, without its id and time stamps: two records with one id and different
// digests are a conflict, two with equal digests a repeat.
func (t Task) Digest() string {
	t.ID, t.SubmittedAt, t.IdempotencyKey = "", nil, ""
	data, err := t.MarshalJSON()
	if err != nil {
		// Only a RawMessage that is no JSON can fail here, and such a Task cannot have been decoded.
		data = []byte(t.SQL)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// derive hashes the parts with their lengths, so that ("a","bc") and ("ab","c") differ.
func derive(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s;", len(p), p)
	}
	return "t-" + hex.EncodeToString(h.Sum(nil)[:16])
}
