// Package policy holds the routing policy: which pools there are, the ordered rules, the budgets, the thresholds.
//
// It is core: a policy is compiled from YAML bytes to typed predicates, and evaluating a rule is a pure function of facts.
// Reading files and reloading them is the router's business; filters and ranking are pkg/route's.
package policy

import "time"

// Policy is a compiled routing policy. It is immutable: a reload makes a new one.
type Policy struct {
	// Hash identifies the policy's text, which is Source; every decision carries it.
	Hash     string
	Source   string
	Pools    []Pool
	Rules    []Rule
	Budgets  Budgets
	Defaults Defaults
	// Thresholds are the named numbers that verdicts and ranking use.
	Thresholds  Thresholds
	Exploration Exploration
	// Summaries names the summary tables of tables, by the table's name in lower case.
	Summaries map[string][]string
}

// Action is what a rule does.
type Action string

// The actions of a rule.
const (
	// ToPool routes to the rule's pool.
	ToPool Action = "pool"
	// ToReject rejects.
	ToReject Action = "reject"
	// ToRanking lets the ranking choose among all pools that pass the filters.
	ToRanking Action = "auto"
)

// Rule is one ordered rule; the first that matches decides.
type Rule struct {
	Name   string
	Line   int
	When   Condition
	Action Action
	Pool   string
	Reason string
	Notify bool
	// Strict forbids every other pool, also as a fallback.
	Strict bool
}

// Defaults fill what a Task leaves out.
type Defaults struct {
	SLA     time.Duration
	Timeout time.Duration
	// SignalMaxAge is how old a signal may be before it counts as stale.
	SignalMaxAge time.Duration
	// NoCandidate says what becomes of a Task that no candidate is left for.
	NoCandidate NoCandidate
}

// NoCandidate is what becomes of a Task that no candidate is left for.
type NoCandidate string

// The choices.
const (
	// RejectTask rejects it with each candidate's reason.
	RejectTask NoCandidate = "reject"
	// WaitForPool sends it to the best of the candidates that are only busy or not ready yet, to wait there.
	WaitForPool NoCandidate = "wait"
)

// Thresholds are the named numbers of the decision core.
type Thresholds struct {
	// HeavyBytes is the scan size from which a query is heavy.
	HeavyBytes int64
	// HeavyJoinTables is the number of joined tables above which a query is heavy.
	HeavyJoinTables int64
	// SLATarget is the probability of an SLA hit that counts as good enough.
	SLATarget float64
	// HistoryMinRuns is the sample size from which a fingerprint's own history leads.
	HistoryMinRuns int64
	// MemoryKillForgivenAfter is how many later successes outweigh a memory kill.
	MemoryKillForgivenAfter int64
}

// defaults is the policy before the YAML is read.
func defaults() Policy {
	return Policy{
		Defaults: Defaults{SLA: 30 * time.Second, Timeout: 10 * time.Minute, SignalMaxAge: 10 * time.Second, NoCandidate: RejectTask},
		Thresholds: Thresholds{
			HeavyBytes: 500 * gigabyte, HeavyJoinTables: 4, SLATarget: 0.9, HistoryMinRuns: 3, MemoryKillForgivenAfter: 3,
		},
	}
}

// Pool returns the pool of that name.
func (p *Policy) Pool(name string) (Pool, bool) {
	for _, pool := range p.Pools {
		if pool.Name == name {
			return pool, true
		}
	}
	return Pool{}, false
}

// Match returns the first rule that matches the facts, and its index; -1 when none does.
func (p *Policy) Match(f Facts) (Rule, int) {
	for i, r := range p.Rules {
		if r.When.Holds(f) {
			return r, i
		}
	}
	return Rule{}, -1
}
