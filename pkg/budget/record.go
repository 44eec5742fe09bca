package budget

import (
	"encoding/json"
	"fmt"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
)

// The kinds of records in a budget-state partition, besides the ledger's own lease. The first record of a Task counts; its key is
// the session's id.
const (
	// KindReserve admits a Task and charges its session what it is expected to take.
	KindReserve ledger.Kind = "reserve"
	// KindRefuse turns a Task down. Its payload has the answer, so that a repeat gets the same.
	KindRefuse ledger.Kind = "refuse"
	// KindSettle replaces a reservation by what the Task took.
	KindSettle ledger.Kind = "settle"
	// KindBalance is a session's whole account: nothing before it is needed to know the session. Without it a session that never
	// falls silent would make every new owner read the log since the session began.
	KindBalance ledger.Kind = "balance"
	// KindClose drops a session, because there are too many.
	KindClose ledger.Kind = "close"
)

// The reasons why a record of a lease that stands changes nothing. None of them means that the lease is lost.
const (
	ReasonRepeat      ledger.Reason = "task_known"   // the Task was reserved, refused or settled before
	ReasonUnknownTask ledger.Reason = "task_unknown" // a settlement of a Task that no record in reach has reserved
	ReasonSessionOver ledger.Reason = "session_over" // the session has been silent for too long
)

// reserve is the payload of KindReserve.
type reserve struct {
	SessionKey
	Bytes  *int64 `json:"bytes,omitempty"`
	WallMs int64  `json:"wallMs,omitempty"`
	Text   Hash   `json:"text,omitempty"`
	Group  Hash   `json:"group,omitempty"`
	// Before is what the session had used when the Task was admitted: a repeat is decided by it, and so in the same way.
	Before Usage `json:"before"`
}

// refuse is the payload of KindRefuse.
type refuse struct {
	SessionKey
	Rejection event.Rejection `json:"rejection"`
}

// settle is the payload of KindSettle.
type settle struct {
	SessionKey
	Bytes  *int64 `json:"bytes,omitempty"`
	WallMs *int64 `json:"wallMs,omitempty"`
	Void   bool   `json:"void,omitempty"`
}

func record(kind ledger.Kind, k SessionKey, payload any) (ledger.Record, error) {
	b, err := event.Marshal(payload)
	if err != nil {
		return ledger.Record{}, fmt.Errorf("encoding %s of session %s: %w", kind, k.Session, err)
	}
	return ledger.Record{Kind: kind, Key: k.Session, Payload: b}, nil
}

// read decodes a payload; false means that it is of no use.
func read[T any](r ledger.Record) (v T, ok bool) {
	return v, json.Unmarshal(r.Payload, &v) == nil
}
