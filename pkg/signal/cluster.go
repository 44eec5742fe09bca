package signal

import (
	"maps"
	"time"
)

// Name is the name of a fact about a cluster.
type Name string

// The facts about a cluster that sources may report.
const (
	// Healthy is 1 when the engine answered its last check.
	Healthy Name = "healthy"
	// Ready is 1 when control plane, backends and canary all say that the cluster can run a query now.
	Ready Name = "ready"
	// Replicas and ReadyReplicas are the wanted and the live compute nodes; a pool asleep has 0.
	Replicas      Name = "replicas"
	ReadyReplicas Name = "readyReplicas"
	// WakeMs is how long a sleeping cluster needs to become ready.
	WakeMs Name = "wakeMs"
	// Queued and Running count queries; Slots is the most that run at once.
	Queued  Name = "queued"
	Running Name = "running"
	Slots   Name = "slots"
	// EstWaitMs is the predicted wait of a query that arrives now.
	EstWaitMs Name = "estWaitMs"
	// OldestQueuedMs is the age of the query that has waited longest.
	OldestQueuedMs Name = "oldestQueuedMs"
	// DonePerSecond is the recent completion rate.
	DonePerSecond Name = "donePerSecond"
	// MemoryUsedBytes is the engine's memory now.
	MemoryUsedBytes Name = "memoryUsedBytes"
	// SlowDown is how many times as long as usual queries take there now; 1 is as usual.
	SlowDown Name = "slowDown"
	// LagMs is how far a copy is behind its source, AppliedTS the newest commit of the source that it has applied, in the
	// source's own unit.
	LagMs     Name = "lagMs"
	AppliedTS Name = "appliedTs"
	// Connections are the open sessions of everybody; MaxConnections is the engine's limit on them, past which it refuses more.
	Connections    Name = "connections"
	MaxConnections Name = "maxConnections"
)

// Observation is what one source saw of one cluster at one moment.
type Observation struct {
	Cluster string         `json:"cluster"`
	Source  string         `json:"source"`
	At      time.Time      `json:"at"`
	Values  map[Name]Value `json:"values"`
}

// Snapshot is everything known of all clusters: per cluster and fact the newest Value over all sources.
type Snapshot map[string]map[Name]Value

// Merge folds an observation in. The newer Value wins; an absent one never hides a known one of another source, but the
// same source may take its own fact back.
func (s Snapshot) Merge(o Observation) {
	facts := s[o.Cluster]
	if facts == nil {
		facts = map[Name]Value{}
		s[o.Cluster] = facts
	}
	for name, v := range o.Values {
		if v.Source == "" {
			v.Source = o.Source
		}
		if v.At.IsZero() {
			v.At = o.At.UTC()
		}
		have, ok := facts[name]
		switch {
		case !ok:
		case v.State() == Absent && have.State() != Absent && have.Source != v.Source:
			continue
		case v.At.Before(have.At):
			continue
		}
		facts[name] = v
	}
}

// Get returns a fact as it counts at now; facts older than most are stale, facts nobody reported absent.
func (s Snapshot) Get(cluster string, name Name, now time.Time, most time.Duration) Value {
	v, ok := s[cluster][name]
	if !ok {
		return Value{}
	}
	return v.Aged(now, most)
}

// Clone copies the snapshot, so that a decision keeps what it saw.
func (s Snapshot) Clone() Snapshot {
	out := make(Snapshot, len(s))
	for cluster, facts := range s {
		c := make(map[Name]Value, len(facts))
		maps.Copy(c, facts)
		out[cluster] = c
	}
	return out
}
