// Package event holds the payloads that travel over the topics, their CloudEvents types, and pure builders of ids.
//
// It is core: it knows what is said, not how it travels. Headers, keys and partitions are pkg/stream's; what a topic holds
// is data in topics/. Contracts only grow: a new optional field or a new version of a type, never a changed meaning, and
// fields this version does not know survive a round trip in Extra.
package event

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pointsman/pointsman/pkg/query"
)

// Topic names, without the configured prefix.
const (
	TopicRequests     = "requests"
	TopicDecisions    = "decisions"
	TopicInputs       = "inputs"
	TopicPolicies     = "policies"
	TopicAttempts     = "attempts"
	TopicOutcomes     = "outcomes"
	TopicAttemptState = "attempt-state"
	TopicBudgetState  = "budget-state"
	TopicSlots        = "slots"
	TopicSignals      = "signals"
	TopicDeadLetter   = "deadletter"
)

// Type is a CloudEvents type: pointsman.<subject>.<past participle>.v<N>.
type Type string

// The event types. The topic that carries each, its schema and its samples are in topics/.
const (
	QueryRequested   Type = "pointsman.query.requested.v1"
	CancelRequested  Type = "pointsman.query.cancel_requested.v1"
	DecisionRouted   Type = "pointsman.decision.routed.v1"
	DecisionRejected Type = "pointsman.decision.rejected.v1"
	DecisionCancel   Type = "pointsman.decision.cancel_passed.v1"
	InputRecorded    Type = "pointsman.input.recorded.v1"
	PolicyLoaded     Type = "pointsman.policy.loaded.v1"
	TaskEnded        Type = "pointsman.task.ended.v1"
	ClusterObserved  Type = "pointsman.cluster.observed.v1"
	LedgerRecorded   Type = "pointsman.ledger.recorded.v1"
	SlotRecorded     Type = "pointsman.slot.recorded.v1"

	attemptPrefix = "pointsman.attempt."
)

// AttemptType is the type of an attempt's change to a state, e.g. pointsman.attempt.failed.v1.
func AttemptType(state string) Type { return Type(attemptPrefix + state + ".v1") }

// IsAttempt reports whether a type is an attempt's change of state, of any state, known to this version or not.
func (t Type) IsAttempt() bool { return strings.HasPrefix(string(t), attemptPrefix) }

// Cancel is a wish to cancel a Task. It travels under the Task's own key, so that it stays behind the Task it means.
type Cancel struct {
	TaskID string `json:"taskId"`
	Tenant string `json:"tenant,omitempty"`
	User   string `json:"user,omitempty"`
	Reason string `json:"reason,omitempty"`

	Extra query.Extra `json:"-"`
}

// Target is one place that can run an attempt: (engine, cluster, queue, resource profile).
type Target struct {
	Engine   string `json:"engine"`
	Cluster  string `json:"cluster"`
	Queue    string `json:"queue,omitempty"`
	Resource string `json:"resource,omitempty"`
}

// String renders the target as engine/cluster/queue/resource.
func (t Target) String() string {
	s := t.Engine + "/" + t.Cluster
	if t.Queue != "" {
		s += "/" + t.Queue
	}
	if t.Resource != "" {
		s += "/" + t.Resource
	}
	return s
}

// Marshal encodes a payload the one way every writer uses: no HTML escaping, fixed field order.
func Marshal(v any) ([]byte, error) {
	write := func() ([]byte, error) { return query.EncodeObject(v, nil) }
	if m, ok := v.(json.Marshaler); ok {
		write = m.MarshalJSON // in the same way; encoding/json would go over its bytes once more
	}
	data, err := write()
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, err)
	}
	return data, nil
}

type cancelFields Cancel

// UnmarshalJSON reads a Cancel and keeps unknown fields.
func (c *Cancel) UnmarshalJSON(data []byte) error {
	var f cancelFields
	extra, err := query.DecodeObject(data, &f)
	if err != nil {
		return err
	}
	*c = Cancel(f)
	c.Extra = extra
	return nil
}

// MarshalJSON writes a Cancel with its unknown fields.
func (c Cancel) MarshalJSON() ([]byte, error) {
	return query.EncodeObject((*cancelFields)(&c), c.Extra)
}

var (
	_ json.Marshaler   = Cancel{}
	_ json.Unmarshaler = (*Cancel)(nil)
)
