// Package policy holds the routing policy: which pools there are, the ordered rules, the budgets, the thresholds, the latches.
//
// It is core: a policy is compiled from YAML bytes to typed predicates, and evaluating a rule is a pure function of facts.
// Reading files and reloading them is the router's business; filters and ranking are pkg/route's.
package policy

import (
	"maps"
	"slices"
	"time"
)

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
	// Latches are truth values with hysteresis that rules test by their names.
	Latches []LatchSpec
	// Warnings are what is probably not meant, though nothing is wrong with it.
	Warnings FaultList

	words   *vocabulary
	tenants map[string]*Policy
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
	// UnseenQueueMs is what a queue that nobody sees is taken to cost, give or take a lot.
	UnseenQueueMs int64
	// Named are the policy's own thresholds, which only its rules and latches use.
	Named map[string]Threshold
}

// defaults is the policy before the YAML is read.
func defaults() Policy {
	return Policy{
		Defaults: Defaults{SLA: 30 * time.Second, Timeout: 10 * time.Minute, SignalMaxAge: 10 * time.Second, NoCandidate: RejectTask},
		Thresholds: Thresholds{
			HeavyBytes: 500 * gigabyte, HeavyJoinTables: 4, SLATarget: 0.9, HistoryMinRuns: 3, MemoryKillForgivenAfter: 3, UnseenQueueMs: 5000,
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

// For returns the policy as it is for a tenant: with its thresholds, defaults and rules, where it has some of its own.
func (p *Policy) For(tenant string) *Policy {
	if own, ok := p.tenants[tenant]; ok {
		return own
	}
	return p
}

// Tenants names the tenants that have something of their own, in order.
func (p *Policy) Tenants() []string { return slices.Sorted(maps.Keys(p.tenants)) }

// Match is what the rules say of some facts.
type Match struct {
	// Rule is the rule that decides, and Index its place; nil and -1 when none does.
	Rule  *Rule
	Index int
	// Passed are the rules before it that matched and only tag or notify. Tags are those of all that matched.
	Passed []*Rule
	Tags   []string
}

// Notify reports whether the client is to be told of any rule that matched.
func (m *Match) Notify() bool {
	return m.Rule != nil && m.Rule.Notify || slices.ContainsFunc(m.Passed, func(r *Rule) bool { return r.Notify })
}

// Match finds the rule that decides: the first that matches and does not only tag or notify. It sets the fact rule_tags on
// its way.
func (p *Policy) Match(f *Facts) Match {
	m := Match{Index: -1}
	f.Set(RuleTags, WordsFact())
	for i := range p.Rules {
		r := &p.Rules[i]
		if !r.holds(f, &p.Thresholds) {
			continue
		}
		for _, tag := range r.Tags {
			if !slices.Contains(m.Tags, tag) {
				m.Tags = append(m.Tags, tag)
			}
		}
		if r.decides() {
			m.Rule, m.Index = r, i
			break
		}
		m.Passed = append(m.Passed, r)
		f.Set(RuleTags, WordsFact(m.Tags...))
	}
	return m
}
