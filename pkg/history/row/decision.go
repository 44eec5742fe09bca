package row

import (
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Decision is a row of decisions.
type Decision struct {
	Base
	Event                        event.RouteDecision
	Task                         query.Task
	Attempt                      uint16
	SLAMs                        *uint64
	EstScanBytes, EstMemoryBytes *float64
	Estimates                    map[string]float64
	Chosen                       estimate
	Propensity                   *float64
	Signals, Stale               map[string]float64
	Missing                      []string
	Candidates                   []candidate
	Rejection                    event.Rejection
	DecidedAt, DecidedAtEvent    time.Time
	Deadline, SubmittedAt        *time.Time
}

type candidate struct {
	event.Target
	rank                   uint16
	filterCode, filterText string
	lostBy                 string
	estimate               estimate
	propensity             float64
}

type estimate struct {
	queueMs, acquireMs, execMs, totalMs, pHit *float64
	level                                     string
	n                                         *uint64
}

// FromDecision maps a decision. What the Task says is taken from the Task inside it.
func FromDecision(rec Record, d event.RouteDecision) (Decision, error) {
	c := begin("decisions", rec, d.Extra)
	r := Decision{
		Event: d, Attempt: c.u16("attempt", d.Attempt),
		EstScanBytes: known(d.Estimates["scanBytes"]), EstMemoryBytes: known(d.Estimates["memoryBytes"]), Estimates: knownOnes(d.Estimates),
		DecidedAt: c.clamp("decided_at", d.DecidedAt, eventTolerance), DecidedAtEvent: d.DecidedAt.UTC(),
		Deadline: c.maybeTime("deadline", &d.Deadline),
	}
	c.required("task_id", d.TaskID)
	c.required("decision_id", d.DecisionID)
	c.required("kind", string(d.Kind))
	switch {
	case d.Task != nil:
		r.Task = *d.Task
	case d.Cancel != nil:
		r.Task = query.Task{Tenant: d.Cancel.Tenant, User: d.Cancel.User}
	}
	r.SLAMs = c.seconds("sla_ms", r.Task.SLASeconds)
	r.SubmittedAt = c.maybeTime("submitted_at", r.Task.SubmittedAt)
	if d.Rejection != nil {
		r.Rejection = *d.Rejection
	}
	r.Signals, r.Stale, r.Missing = flatten(d.Signals)
	for _, from := range d.Candidates {
		to := c.candidate(from)
		if from.Estimate != nil && from.Target == d.Target {
			r.Chosen, r.Propensity = to.estimate, &to.propensity
		}
		r.Candidates = append(r.Candidates, to)
	}
	r.Base = c.base
	return r, c.done()
}

func (c *check) candidate(from event.Candidate) candidate {
	to := candidate{Target: from.Target, rank: c.u16("candidates.rank", from.Rank), propensity: from.Propensity}
	if from.Filtered != nil {
		to.filterCode, to.filterText = from.Filtered.Code, from.Filtered.Text
	}
	if from.LostBy != nil {
		to.lostBy = from.LostBy.Code
	}
	if e := from.Estimate; e != nil {
		n := c.u64("candidates.n", e.Evidence.N)
		to.estimate = estimate{known(e.QueueMs), known(e.AcquireMs), known(e.ExecMs), known(e.TotalMs), known(e.PHit), e.Evidence.Level, &n}
	}
	return to
}

// flatten names each fact cluster.fact, so that a person can ask for one of them.
func flatten(s signal.Seen) (fresh, stale map[string]float64, missing []string) {
	fresh, stale, missing = map[string]float64{}, map[string]float64{}, []string{}
	for _, of := range s {
		for _, f := range of.Facts {
			key := of.Cluster + "." + string(f.Name)
			n, ok := f.Value.Last()
			switch {
			case !ok:
				missing = append(missing, key)
			case f.Value.State() == signal.Stale:
				stale[key] = n
			default:
				fresh[key] = n
			}
		}
	}
	return fresh, stale, missing
}

// Decisions makes a set of rows.
func Decisions(rows []Decision) Set { return set[Decision]{decisions, rows} }

var decisions = &table[Decision]{
	name: "decisions",
	base: func(r *Decision) *Base { return &r.Base },
	time: func(r *Decision) time.Time { return r.DecidedAt },
	columns: concat([]column[Decision]{
		col("task_id", str, func(r *Decision) string { return r.Event.TaskID }),
		col("attempt", "UInt16", func(r *Decision) uint16 { return r.Attempt }),
		col("decision_id", str, func(r *Decision) string { return r.Event.DecisionID }),
		col("kind", lc, func(r *Decision) string { return string(r.Event.Kind) }),
		col("tenant", str, func(r *Decision) string { return r.Task.Tenant }),
		col("user", str, func(r *Decision) string { return r.Task.User }),
		col("session_id", str, func(r *Decision) string { return r.Task.SessionID() }),
		col("session_class", lc, func(r *Decision) string { return string(r.Task.SessionClass()) }),
		col("fingerprint", str, func(r *Decision) string { return r.Event.Fingerprint }),
		col("bucket", lc, func(r *Decision) string { return r.Event.Bucket }),
		col("statement", lc, func(r *Decision) string { return r.Event.Statement }),
		col("read_only", boolean, func(r *Decision) bool { return r.Event.ReadOnly }),
		col("tables", array, func(r *Decision) []string { return list(r.Event.Tables) }),
		col("rule", lc, func(r *Decision) string { return r.Event.Rule }),
		col("verdict", lc, func(r *Decision) string { return r.Event.Verdict }),
		col("policy_hash", str, func(r *Decision) string { return r.Event.PolicyHash }),
		col("reasons", arrayLC, func(r *Decision) []string {
			return each(r.Event.Reasons, func(e event.Reason) string { return e.Code })
		}),
		col("reason_texts", array, func(r *Decision) []string {
			return each(r.Event.Reasons, func(e event.Reason) string { return e.Text })
		}),
		col("sla_ms", nullU64, func(r *Decision) *uint64 { return r.SLAMs }),
		col("est_scan_bytes", nullF64, func(r *Decision) *float64 { return r.EstScanBytes }),
		col("est_memory_bytes", nullF64, func(r *Decision) *float64 { return r.EstMemoryBytes }),
		col("estimates", lcMap, func(r *Decision) map[string]float64 { return r.Estimates }),
		col("est_queue_ms", nullF64, func(r *Decision) *float64 { return r.Chosen.queueMs }),
		col("est_acquire_ms", nullF64, func(r *Decision) *float64 { return r.Chosen.acquireMs }),
		col("est_exec_ms", nullF64, func(r *Decision) *float64 { return r.Chosen.execMs }),
		col("est_total_ms", nullF64, func(r *Decision) *float64 { return r.Chosen.totalMs }),
		col("est_p_hit", nullF64, func(r *Decision) *float64 { return r.Chosen.pHit }),
		col("evidence_level", lc, func(r *Decision) string { return r.Chosen.level }),
		col("evidence_n", nullU64, func(r *Decision) *uint64 { return r.Chosen.n }),
		col("propensity", nullF64, func(r *Decision) *float64 { return r.Propensity }),
		col("unknown", arrayLC, func(r *Decision) []string { return list(r.Event.Unknown) }),
		col("signals", strMap, func(r *Decision) map[string]float64 { return r.Signals }),
		col("signals_stale", strMap, func(r *Decision) map[string]float64 { return r.Stale }),
		col("signals_missing", array, func(r *Decision) []string { return r.Missing }),
		col("fallbacks", array, func(r *Decision) []string { return each(r.Event.Fallbacks, event.Target.String) }),
		col("excluded", array, func(r *Decision) []string { return each(r.Event.Excluded, event.Target.String) }),
		col("rejection_code", lc, func(r *Decision) string { return r.Rejection.Code }),
		col("rejection_text", str, func(r *Decision) string { return r.Rejection.Message }),
		col("suggestion", str, func(r *Decision) string { return r.Rejection.Suggestion }),
		col("task_digest", str, func(r *Decision) string { return r.Event.TaskDigest }),
		col("notify", boolean, func(r *Decision) bool { return r.Event.Notify }),
		col("decided_at", time64, func(r *Decision) time.Time { return r.DecidedAt }),
		col("decided_at_event", time64, func(r *Decision) time.Time { return r.DecidedAtEvent }),
		col("deadline", nullTime, func(r *Decision) *time.Time { return r.Deadline }),
		col("submitted_at", nullTime, func(r *Decision) *time.Time { return r.SubmittedAt }),
	},
		targetColumns(func(r *Decision) *event.Target { return &r.Event.Target }),
		candidateColumns,
		baseColumns(func(r *Decision) *Base { return &r.Base })),
}

var candidateColumns = []column[Decision]{
	nested("engine", arrayLC, func(c candidate) string { return c.Engine }),
	nested("cluster", arrayLC, func(c candidate) string { return c.Cluster }),
	nested("queue", arrayLC, func(c candidate) string { return c.Queue }),
	nested("resource", arrayLC, func(c candidate) string { return c.Resource }),
	nested("rank", "Array(UInt16)", func(c candidate) uint16 { return c.rank }),
	nested("filter_code", arrayLC, func(c candidate) string { return c.filterCode }),
	nested("filter_text", array, func(c candidate) string { return c.filterText }),
	nested("lost_by", arrayLC, func(c candidate) string { return c.lostBy }),
	nested("est_queue_ms", "Array(Nullable(Float64))", func(c candidate) *float64 { return c.estimate.queueMs }),
	nested("est_total_ms", "Array(Nullable(Float64))", func(c candidate) *float64 { return c.estimate.totalMs }),
	nested("p_hit", "Array(Nullable(Float64))", func(c candidate) *float64 { return c.estimate.pHit }),
	nested("level", arrayLC, func(c candidate) string { return c.estimate.level }),
	nested("n", "Array(Nullable(UInt64))", func(c candidate) *uint64 { return c.estimate.n }),
	nested("propensity", "Array(Float64)", func(c candidate) float64 { return c.propensity }),
}

func nested[T any](name, typ string, value func(c candidate) T) column[Decision] {
	return col("candidates."+name, typ, func(r *Decision) []T { return each(r.Candidates, value) })
}

func each[E, T any](from []E, value func(e E) T) []T {
	out := make([]T, len(from))
	for i, e := range from {
		out[i] = value(e)
	}
	return out
}
