package event

import (
	"time"

	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
)

// DecisionKind is what a decision asks of the executor.
type DecisionKind string

// The decision kinds.
const (
	Route  DecisionKind = "route"
	Reject DecisionKind = "reject"
	// PassCancel passes a wish to cancel on to the executor.
	PassCancel DecisionKind = "cancel"
)

// Reason is why something was decided: a code of a closed list, its arguments, and the text rendered from both.
type Reason struct {
	Code string            `json:"code"`
	Args map[string]string `json:"args,omitempty"`
	Text string            `json:"text,omitempty"`
}

// Filtered says which hard filter removed a candidate, and whether waiting or scaling would help.
type Filtered struct {
	Reason
	WaitHelps  bool `json:"waitHelps,omitempty"`
	ScaleHelps bool `json:"scaleHelps,omitempty"`
}

// Factor is one ordered factor of the ranking, as it came out for a candidate.
type Factor struct {
	Name string `json:"name"`
	// Value is what was compared; it is left out where the candidate's estimate has it: slaProbability is pHit, completion is
	// totalMs, cost is cost.
	Value signal.Number `json:"value,omitzero"`
	// Band is the class the value falls into; candidates of one band are equal in this factor, lower is better.
	Band int `json:"band"`
}

// Loss is the factor that decided against a candidate.
type Loss struct {
	// Code is the factor's reason.
	Code string `json:"code"`
	// Gap is how far the candidate's value lies from the winner's, in the factor's own unit; absent where it has none.
	Gap signal.Number `json:"gap,omitzero"`
	// Flip is the smallest change that would have put it level with the winner in this factor; absent where none does.
	Flip *Flip `json:"flip,omitempty"`
}

// Flip is one change of what a decision depended on.
type Flip struct {
	// What is to change: queueMs, slaMs, runMs, successRate, costPerSecond, load, engineHint, healthy.
	What string `json:"what"`
	// To is the value at which the candidate draws level.
	To signal.Number `json:"to,omitzero"`
}

// Exploration says that a target was chosen by lot, and not by its rank.
type Exploration struct {
	// ExtraMs is how much longer it is expected to run than the ranking's first, 0 when it is not longer.
	ExtraMs float64 `json:"extraMs"`
}

// Evidence is where an estimate came from and how much there was to go on.
type Evidence struct {
	// Level is the rung of the ladder: bucket, fingerprint, engine, prior, guess.
	Level string `json:"level"`
	// N is the sample size; 0 means "no history".
	N      int64  `json:"n"`
	Window string `json:"window,omitempty"`
}

// CandidateEstimate is what a candidate is expected to take, in milliseconds.
type CandidateEstimate struct {
	QueueMs   signal.Number `json:"queueMs"`
	AcquireMs signal.Number `json:"acquireMs"`
	ExecMs    signal.Number `json:"execMs"`
	// DeliverMs is left out where delivery is part of the execution.
	DeliverMs signal.Number `json:"deliverMs,omitzero"`
	TotalMs   signal.Number `json:"totalMs"`
	// PHit is the probability that the result is delivered within the SLA.
	PHit     signal.Number `json:"pHit"`
	Cost     signal.Number `json:"cost"`
	Evidence Evidence      `json:"evidence"`
}

// Candidate is one target that was looked at, with the filter that removed it or the factors that ranked it.
type Candidate struct {
	Target
	// Rank is the candidate's place in the ranking, from 1; 0 for one that a filter removed. The target is the first, unless
	// the decision explores.
	Rank     int                `json:"rank"`
	Filtered *Filtered          `json:"filtered,omitempty"`
	Estimate *CandidateEstimate `json:"estimate,omitempty"`
	Factors  []Factor           `json:"factors,omitempty"`
	// LostBy is the factor that decided against this candidate, with the gap and the smallest change that flips it.
	LostBy *Loss `json:"lostBy,omitempty"`
	// Propensity is the probability with which this candidate was going to be chosen.
	Propensity float64 `json:"propensity"`
}

// Rejection is an answer that a person or an agent can act on.
type Rejection struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Estimate, Left and Suggestion name what was asked, what is left, and the smallest change that fits.
	Estimate          map[string]signal.Value `json:"estimate,omitempty"`
	Left              map[string]signal.Value `json:"left,omitempty"`
	Suggestion        string                  `json:"suggestion,omitempty"`
	RetryAfterSeconds *int64                  `json:"retryAfterSeconds,omitempty"`
}

// RouteDecision is where an attempt goes and why. It carries the Task, so that its readers need no other topic.
type RouteDecision struct {
	DecisionID string       `json:"decisionId"`
	TaskID     string       `json:"taskId"`
	Attempt    int          `json:"attempt"`
	Kind       DecisionKind `json:"kind"`
	// Task as it came in, stamped with id, submission time, SLA and timeout. Absent on a passed cancel.
	Task *query.Task `json:"task,omitempty"`
	// TaskDigest tells a repeat of the same Task from another Task under the same id.
	TaskDigest string    `json:"taskDigest,omitempty"`
	DecidedAt  time.Time `json:"decidedAt"`
	// Deadline is the moment past which the executor starts nothing of the Task.
	Deadline time.Time `json:"deadline"`

	Target
	Reasons []Reason `json:"reasons,omitempty"`
	Rule    string   `json:"rule,omitempty"`
	// RuleTags are the tags that rules have set.
	RuleTags   []string    `json:"ruleTags,omitempty"`
	Verdict    string      `json:"verdict,omitempty"`
	PolicyHash string      `json:"policyHash,omitempty"`
	Candidates []Candidate `json:"candidates,omitempty"`
	// Exploration is set when the target was chosen by lot.
	Exploration *Exploration `json:"exploration,omitempty"`
	// Fallbacks are pre-approved for instant failover, best first.
	Fallbacks []Target `json:"fallbacks,omitempty"`
	// Excluded are targets that failed before in this Task.
	Excluded  []Target   `json:"excluded,omitempty"`
	Rejection *Rejection `json:"rejection,omitempty"`
	// Cancel is set on a passed cancel.
	Cancel *Cancel `json:"cancel,omitempty"`

	Fingerprint string `json:"fingerprint,omitempty"`
	// Bucket is the size class of the query's parameters; empty when it has none.
	Bucket    string   `json:"bucket,omitempty"`
	Statement string   `json:"statement,omitempty"`
	ReadOnly  bool     `json:"readOnly,omitempty"`
	Tables    []string `json:"tables,omitempty"`
	// Estimates of the query itself, by name: scanBytes, memoryBytes.
	Estimates map[string]signal.Value `json:"estimates,omitempty"`
	// Signals are the facts about clusters that the decision used, as they counted then.
	Signals signal.Seen `json:"signals,omitempty"`
	// Unknown names what could not be known when it was decided.
	Unknown []string `json:"unknown,omitempty"`
	Notify  bool     `json:"notify,omitempty"`

	Extra query.Extra `json:"-"`
}

// Type is the CloudEvents type of the decision.
func (d RouteDecision) Type() Type {
	switch d.Kind {
	case Reject:
		return DecisionRejected
	case PassCancel:
		return DecisionCancel
	default:
		return DecisionRouted
	}
}

type decisionFields RouteDecision

// UnmarshalJSON reads a decision and keeps unknown fields.
func (d *RouteDecision) UnmarshalJSON(data []byte) error {
	var f decisionFields
	extra, err := query.DecodeObject(data, &f)
	if err != nil {
		return err
	}
	*d = RouteDecision(f)
	d.Extra = extra
	return nil
}

// MarshalJSON writes the decision with its unknown fields.
func (d RouteDecision) MarshalJSON() ([]byte, error) {
	return query.EncodeObject((*decisionFields)(&d), d.Extra)
}
