package route

import (
	"strings"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
)

//go:generate go test . -run TestReasonsPage -update

// Code is the code of a reason. The list is closed: dashboards and agents may rely on it.
type Code string

// The reason codes.
const (
	// Why the winner won.
	RuleMatched       Code = "rule_matched"
	HistoryMemoryKill Code = "history_memory_kill"
	QueueWaitOverSLA  Code = "queue_wait_over_sla"
	SLAProbability    Code = "sla_probability"
	LowerCost         Code = "lower_cost"
	LowerLoad         Code = "lower_load"
	ShorterCompletion Code = "shorter_completion"
	Affinity          Code = "affinity"
	OnlyCandidate     Code = "only_candidate"
	// RuleNoted: a rule matched that only tags or notifies.
	RuleNoted Code = "rule_noted"
	// ParseFailed: the rules had to do without what a text usually shows.
	ParseFailed        Code = "parse_failed"
	ReroutedAfter      Code = "rerouted_after_failure"
	WakesPool          Code = "wakes_pool"
	RulePoolNotUsable  Code = "rule_pool_not_usable"
	EngineHintFollowed Code = "engine_hint_followed"
	WaitsThere         Code = "waits_there"
	Explored           Code = "explored"
	ScanBelowThreshold Code = "scan_size_below_threshold"
	HitRateHigh        Code = "historical_sla_hit_rate_high"
	ClusterHealthy     Code = "cluster_healthy"
	HintNotFollowed    Code = "engine_hint_not_followed"

	// Why a candidate was removed.
	FailedBefore           Code = "failed_before"
	TenantNotPermitted     Code = "tenant_not_permitted"
	QueueNotPermitted      Code = "queue_not_permitted"
	DatasetNotReachable    Code = "dataset_not_reachable"
	CatalogNotReachable    Code = "catalog_not_reachable"
	DialectNotSupported    Code = "dialect_not_supported"
	FunctionNotSupported   Code = "function_not_supported"
	FeatureNotSupported    Code = "feature_not_supported"
	PoolReadOnly           Code = "pool_read_only"
	ScanOverLimit          Code = "scan_over_limit"
	MemoryOverLimit        Code = "memory_over_limit"
	ReplicaNotCurrent      Code = "replica_not_current"
	ReplicaLags            Code = "replica_lags"
	CommitNotApplied       Code = "commit_not_applied"
	CommitNotNamed         Code = "commit_not_named"
	LagUnknown             Code = "replica_lag_unknown"
	ClusterUnhealthy       Code = "cluster_unhealthy"
	ClusterQuarantined     Code = "cluster_quarantined"
	ClusterNotReady        Code = "cluster_not_ready"
	WakesTooLate           Code = "wakes_too_late"
	TenantConcurrencyThere Code = "tenant_concurrency_there"
	QueueWaitOverLimit     Code = "queue_wait_over_limit"
	NotTheRulesPool        Code = "not_the_rules_pool"

	// Why a Task was not admitted.
	SessionQueries   Code = budget.QueriesExhausted
	SessionBytes     Code = budget.BytesExhausted
	SessionTime      Code = budget.WallExhausted
	SessionRepeats   Code = budget.LoopRepeats
	SessionGrows     Code = budget.LoopGrows
	TenantQueries    Code = budget.TenantQueries
	TenantBytes      Code = budget.TenantBytes
	TenantConcurrent Code = budget.TenantConcurrent
	ConcurrencyQuota Code = budget.Concurrent

	// Why a Task was rejected.
	NoCandidate    Code = "no_candidate"
	NoCandidateFor Code = "no_candidate_strict"
	RejectedByRule Code = "rejected_by_rule"
	DeadlinePassed Code = "deadline_passed"
	InvalidTask    Code = "invalid_request"
	TooManyTries   Code = "too_many_attempts"
)

// Templates renders each code; {name} stands for an argument. docs/reasons.md is made from it.
var Templates = map[Code]string{
	RuleMatched:        "rule {rule} matched: {reason}",
	HistoryMemoryKill:  "the memory limit of {cluster} killed {kills} of {runs} earlier runs of this fingerprint in {window}",
	QueueWaitOverSLA:   "{cluster} would let it wait about {waitMs} ms of an SLA of {slaMs} ms",
	SLAProbability:     "meets the SLA of {slaMs} ms with {percent} %, {other} with {otherPercent} %",
	LowerCost:          "costs {cost}, {other} {otherCost}, and both meet the SLA about as well",
	LowerLoad:          "less loaded than {other}, and otherwise equal",
	ShorterCompletion:  "no candidate meets the SLA; expected after {totalMs} ms, {other} after {otherTotalMs} ms",
	Affinity:           "equal to {other} in every factor; keeps this fingerprint on one cluster",
	OnlyCandidate:      "the only candidate that passed the filters",
	RuleNoted:          "rule {rule} matched too: {reason}",
	ParseFailed:        "the text could not be read as a statement: routed by its tags, by who asks, and by history",
	ReroutedAfter:      "attempt {attempt} after {failed} failed",
	WakesPool:          "{cluster} {state} and is woken, which takes about {wakeMs} ms",
	RulePoolNotUsable:  "rule {rule} asks for {cluster}, which is not usable now: {why}",
	EngineHintFollowed: "the request asks for {hint}",
	HintNotFollowed:    "the request asks for {hint}, but {why}",
	WaitsThere:         "no cluster can take it now, so that it waits at {cluster}: {why}",
	Explored:           "chosen by lot, with a probability of {percent} %, to learn how it does there; the ranking's first is {best}",
	ScanBelowThreshold: "scans {bytes} bytes, below the {limit} from which a query is heavy",
	HitRateHigh:        "{hits} of {n} tasks of this fingerprint came within their SLA on {cluster} in {window} (at least {low} % with 95 % certainty)",
	ClusterHealthy:     "{cluster} is healthy",

	FailedBefore:           "an attempt of this task failed there",
	TenantNotPermitted:     "tenant {tenant} may not use it",
	QueueNotPermitted:      "its queue {queue} is not for {who}",
	DatasetNotReachable:    "data set {dataset} can't be read there",
	CatalogNotReachable:    "catalog {catalog} can't be read there",
	DialectNotSupported:    "does not speak the dialect {dialect}",
	FunctionNotSupported:   "does not have the function {function}",
	FeatureNotSupported:    "does not have the feature {feature}",
	PoolReadOnly:           "takes no statement that writes ({statement})",
	ScanOverLimit:          "would scan {bytes} bytes, its limit is {limit}",
	MemoryOverLimit:        "{how} {bytes} bytes of memory, its limit is {limit}",
	ReplicaNotCurrent:      "is a copy, and a strong read takes none",
	ReplicaLags:            "is a copy that is {lagMs} ms behind, its limit is {limitMs} ms",
	CommitNotApplied:       "is a copy that has not applied commit {commitTs} yet; it is {behindMs} ms short of it",
	CommitNotNamed:         "is a copy, and the task does not name the commit (commitTs) that it must have applied",
	LagUnknown:             "is a copy of which nobody knows how far it is behind",
	ClusterUnhealthy:       "did not answer its last check",
	ClusterQuarantined:     "failed a check, and has not passed {samples} in a row since",
	ClusterNotReady:        "is not ready, and does not wake on demand",
	WakesTooLate:           "{state} and takes {wakeMs} ms to wake, {leftMs} ms are left",
	TenantConcurrencyThere: "tenant {tenant} has {running} queries there, and may have {limit}",
	QueueWaitOverLimit:     "its queue is about {waitMs} ms long, its limit is {limitMs} ms",
	NotTheRulesPool:        "rule {rule} routes to {cluster}",

	SessionQueries:   "the session has used all {limit} queries of its budget",
	SessionBytes:     "the session has {left} of its budget of {limit} left, and {asks}",
	SessionTime:      "the session has used its budget of {limitMs} ms of execution time",
	SessionRepeats:   "the session has run this very query {limit} times already",
	SessionGrows:     "query number {growing} in a row over these tables that scans more than the one before; {limit} are allowed",
	TenantQueries:    "the tenant has used all {limit} queries that it may run in {window}",
	TenantBytes:      "the tenant has {left} left of the {limit} that it may scan in {window}, and {asks}",
	TenantConcurrent: "the tenant has {running} queries running, and may have {limit}",
	ConcurrencyQuota: "the principal has {running} batch queries running, and may have {limit}",

	NoCandidate:    "no cluster can take this query now: {why}",
	NoCandidateFor: "rule {rule} allows only {cluster}, which can't take it: {why}",
	RejectedByRule: "rule {rule} rejects it: {reason}",
	DeadlinePassed: "it was {lateMs} ms past its deadline when it came to be decided",
	InvalidTask:    "{message}",
	TooManyTries:   "{attempts} attempts have failed, the last with: {failure}",
}

// NewReason builds a reason from its code and pairs of argument names and values, and renders its text.
func NewReason(code Code, args ...string) event.Reason {
	r := event.Reason{Code: string(code)}
	if len(args) > 0 {
		r.Args = make(map[string]string, len(args)/2)
	}
	for i := 0; i+1 < len(args); i += 2 {
		r.Args[args[i]] = args[i+1]
	}
	r.Text = render(Templates[code], r.Args)
	return r
}

func render(template string, args map[string]string) string {
	var b strings.Builder
	b.Grow(len(template) + 64)
	for {
		text, rest, more := strings.Cut(template, "{")
		b.WriteString(text)
		if !more {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		if value, ok := args[name]; ok && closed {
			b.WriteString(value)
			template = after
			continue
		}
		b.WriteByte('{')
		template = rest
	}
}
