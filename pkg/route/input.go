// Package route decides where an attempt goes, and says why.
//
// Decide is pure: the Task, what is known of it, the signals, the policy, the clock and the seed are fields of Input, so
// that an Input reproduces its decision bit for bit. Live routing, explain and replay all call it. Gathering the Input and
// publishing the decision are the router's.
package route

import (
	"time"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// The names of estimates.
const (
	// ScanBytes are the bytes to scan.
	ScanBytes = "scanBytes"
	// MemoryBytes is the memory that the query needs.
	MemoryBytes = "memoryBytes"
)

// Input is everything a decision depends on.
type Input struct {
	// Task is stamped: it has an id and a submission time.
	Task query.Task `json:"task"`
	// TaskDigest is that of the Task as it came in; a later attempt keeps the first one's. Empty means the Task's own.
	TaskDigest string `json:"taskDigest,omitempty"`
	// Attempt is the number of the attempt to decide, from 1. Excluded are the targets of earlier ones that failed, and
	// LastFailure is how the last one ended.
	Attempt     int            `json:"attempt"`
	Excluded    []event.Target `json:"excluded,omitempty"`
	LastFailure *event.Failure `json:"lastFailure,omitempty"`

	Fingerprint string `json:"fingerprint"`
	// Bucket is the size class of the query's parameters; empty when it has none, or they can't be read.
	Bucket string      `json:"bucket,omitempty"`
	Shape  shape.Shape `json:"shape"`
	// Estimates of the query by name; see ScanBytes.
	Estimates map[string]signal.Value `json:"estimates,omitempty"`
	// SummaryBytes is what the summary tables of the query's tables scan, by name, as far as it is known.
	SummaryBytes map[string]signal.Value `json:"summaryBytes,omitempty"`
	History      profile.Lookup          `json:"history"`
	Signals      signal.Snapshot         `json:"signals,omitempty"`
	// Latches are the states of the policy's latches, by name; one that is not there is not known.
	Latches map[string]policy.Latch `json:"latches,omitempty"`
	// Inflight counts, per cluster, the Tasks this router has sent there that the signals can't show yet.
	Inflight map[string]int `json:"inflight,omitempty"`
	// Session is the account of the Task's session, nil when it has none.
	Session *SessionAccount `json:"session,omitempty"`
	// Tenant is what the Task's tenant has used, nil when the policy counts nothing of it.
	Tenant *TenantAccount `json:"tenant,omitempty"`

	Policy *policy.Policy `json:"-"`
	// PolicyHash names the policy in JSON; Decide looks at Policy alone.
	PolicyHash string    `json:"policyHash,omitempty"`
	Now        time.Time `json:"now"`
	// Seed is what exploration draws from, derived from the Task's id.
	Seed uint64 `json:"seed"`

	Extra query.Extra `json:"-"`
}

// SessionAccount is what a session has used when the Task came.
type SessionAccount = budget.Account

// TenantAccount is what a tenant has used when the Task came.
type TenantAccount = budget.TenantAccount

// limits returns the session limits that apply to the Task, or nil.
func (in *Input) limits() *budget.Limits {
	if in.Session == nil {
		return nil
	}
	return in.Policy.Budgets.OfSession(in.Task)
}

func (in *Input) sla() time.Duration { return in.Task.SLA(in.Policy.Defaults.SLA) }

// slaLeftMs is what is left of the SLA: time spent before the decision counts too.
func (in *Input) slaLeftMs() float64 {
	left := in.sla()
	if in.Task.SubmittedAt != nil {
		left -= in.Now.Sub(*in.Task.SubmittedAt)
	}
	return float64(left.Milliseconds())
}

func (in *Input) deadline() time.Time {
	at, ok := in.Task.Deadline(in.Policy.Defaults.Timeout)
	if !ok {
		return in.Now.Add(in.Task.Timeout(in.Policy.Defaults.Timeout)).UTC()
	}
	return at.UTC()
}

func (in *Input) signal(cluster string, name signal.Name) signal.Value {
	return in.Signals.Get(cluster, name, in.Now, in.Policy.Defaults.SignalMaxAge).Amount()
}

func (in *Input) scanBytes() signal.Value { return in.Estimates[ScanBytes] }

func (in *Input) profile(p *policy.Pool) (profile.Profile, bool) {
	prof, ok := in.History.Found[profile.Key{Fingerprint: in.Fingerprint, Engine: p.Kind, Cluster: p.Name}]
	return prof, ok
}
