package executor

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/event"
)

// The payloads of ledger records. They are what the next owner needs to go on; the payload of a final end is the Outcome.

// claimNote says where an attempt goes.
type claimNote struct {
	Target event.Target `json:"target"`
	// Tenant is for whoever counts slots.
	Tenant string `json:"tenant,omitempty"`
	// Fallbacks are those of the decision that the attempt came from. They are kept here because that decision may lie far
	// behind in the log.
	Fallbacks []event.Target `json:"fallbacks,omitempty"`
}

// submittedNote says that the engine had it.
type submittedNote struct {
	StartedAt time.Time `json:"startedAt"`
}

// ending is how an attempt ended whose Task goes on.
type ending struct {
	State     attempt.State  `json:"state"`
	Prev      attempt.State  `json:"prev,omitempty"`
	At        time.Time      `json:"at"`
	Target    event.Target   `json:"target"`
	Failure   *event.Failure `json:"failure,omitempty"`
	Remedy    event.Remedy   `json:"remedy"`
	Why       string         `json:"why,omitempty"`
	Next      *event.Target  `json:"next,omitempty"`
	DelayMs   int64          `json:"delayMs,omitempty"`
	Fallbacks []event.Target `json:"fallbacks,omitempty"`
	Stats     *event.Stats   `json:"stats,omitempty"`
	Claimed   bool           `json:"claimed"`
	// TakenOver means that it ended only because its owner changed, and does not count.
	TakenOver bool `json:"takenOver,omitempty"`
}

func encodeNote(v any) (json.RawMessage, error) { return event.Marshal(v) }

func decodeNote[T any](payload json.RawMessage) (T, error) {
	var note T
	if err := json.Unmarshal(payload, &note); err != nil {
		return note, fmt.Errorf("reading a note of the ledger: %w", err)
	}
	return note, nil
}
