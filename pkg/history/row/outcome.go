package row

import (
	"time"

	"github.com/pointsman/pointsman/pkg/event"
)

// Outcome is a row of outcomes: the end of a Task.
type Outcome struct {
	Base
	Event                        event.Outcome
	Attempts                     uint16
	SubmittedAt                  time.Time
	StartedAt                    *time.Time
	FinishedAt, FinishedAtEvent  time.Time
	TotalMs, SLAMs               uint64
	Stats                        Stats
	EstScanBytes, EstMemoryBytes *float64
	Estimates                    map[string]float64
	Failure                      event.Failure
	Rejection                    event.Rejection
	Result                       event.Result
}

// FromOutcome maps the end of a Task. A Task that never ran may lack a tenant: it was rejected for that, or taken back before it
// came. A submission after the end comes from a producer's clock: no time is made of it, and the row says so.
func FromOutcome(rec Record, o event.Outcome) (Outcome, error) {
	c := begin("outcomes", rec, o.Extra)
	r := Outcome{
		Event: o, Attempts: c.u16("attempts", o.Attempts), StartedAt: c.maybeTime("started_at", o.StartedAt),
		FinishedAt: c.clamp("finished_at", o.FinishedAt, eventTolerance), FinishedAtEvent: o.FinishedAt.UTC(),
		TotalMs: *c.millis(&o.TotalMs), SLAMs: c.u64("sla_ms", o.SLAMs), Stats: c.stats(o.Stats),
		EstScanBytes: known(o.Estimates["scanBytes"]), EstMemoryBytes: known(o.Estimates["memoryBytes"]), Estimates: knownOnes(o.Estimates),
	}
	c.required("task_id", o.TaskID)
	c.required("status", string(o.Status))
	if o.Status == event.Succeeded || o.Status == event.Failed {
		c.required("tenant", o.Tenant)
	}
	r.SubmittedAt = c.clamp("submitted_at", o.SubmittedAt, eventTolerance)
	if r.SubmittedAt.After(r.FinishedAt) {
		r.SubmittedAt, r.TotalMs, c.base.Clamped = r.FinishedAt, 0, true
	}
	if o.Failure != nil {
		r.Failure = *o.Failure
	}
	if o.Rejection != nil {
		r.Rejection = *o.Rejection
	}
	if o.Result != nil {
		r.Result = *o.Result
	}
	r.Base = c.base
	return r, c.done()
}

// Outcomes makes a set of rows.
func Outcomes(rows []Outcome) Set { return set[Outcome]{outcomes, rows} }

var outcomes = &table[Outcome]{
	name:   "outcomes",
	base:   func(r *Outcome) *Base { return &r.Base },
	time:   func(r *Outcome) time.Time { return r.FinishedAt },
	rolled: func(r *Outcome) (time.Time, bool) { return r.FinishedAt, true },
	columns: concat([]column[Outcome]{
		col("task_id", str, func(r *Outcome) string { return r.Event.TaskID }),
		col("status", lc, func(r *Outcome) string { return string(r.Event.Status) }),
		col("tenant", str, func(r *Outcome) string { return r.Event.Tenant }),
		col("user", str, func(r *Outcome) string { return r.Event.User }),
		col("session_id", str, func(r *Outcome) string { return r.Event.SessionID }),
		col("session_class", lc, func(r *Outcome) string { return string(r.Event.Class) }),
		col("tags", array, func(r *Outcome) []string { return list(r.Event.Tags) }),
		col("dataset", str, func(r *Outcome) string { return r.Event.Dataset }),
		col("query_type", lc, func(r *Outcome) string { return r.Event.QueryType }),
		col("fingerprint", str, func(r *Outcome) string { return r.Event.Fingerprint }),
		col("bucket", lc, func(r *Outcome) string { return r.Event.Bucket }),
		col("statement", lc, func(r *Outcome) string { return r.Event.Statement }),
		col("tables", array, func(r *Outcome) []string { return list(r.Event.Tables) }),
		col("rule", lc, func(r *Outcome) string { return r.Event.Rule }),
		col("verdict", lc, func(r *Outcome) string { return r.Event.Verdict }),
		col("reasons", arrayLC, func(r *Outcome) []string { return list(r.Event.Reasons) }),
		col("policy_hash", str, func(r *Outcome) string { return r.Event.PolicyHash }),
		col("attempts", "UInt16", func(r *Outcome) uint16 { return r.Attempts }),
		col("rerouted", boolean, func(r *Outcome) bool { return r.Event.Rerouted }),
		col("submitted_at", time64, func(r *Outcome) time.Time { return r.SubmittedAt }),
		col("started_at", nullTime, func(r *Outcome) *time.Time { return r.StartedAt }),
		col("finished_at", time64, func(r *Outcome) time.Time { return r.FinishedAt }),
		col("finished_at_event", time64, func(r *Outcome) time.Time { return r.FinishedAtEvent }),
		col("total_ms", "UInt64", func(r *Outcome) uint64 { return r.TotalMs }),
		col("sla_ms", "UInt64", func(r *Outcome) uint64 { return r.SLAMs }),
		col("sla_tier", lc, func(r *Outcome) string { return Tier(r.SLAMs) }),
		col("sla_hit", boolean, func(r *Outcome) bool { return r.Event.SLAHit }),
		col("est_scan_bytes", nullF64, func(r *Outcome) *float64 { return r.EstScanBytes }),
		col("est_memory_bytes", nullF64, func(r *Outcome) *float64 { return r.EstMemoryBytes }),
		col("estimates", lcMap, func(r *Outcome) map[string]float64 { return r.Estimates }),
		col("error_class", lc, func(r *Outcome) string { return r.Failure.Class }),
		col("error_code", lc, func(r *Outcome) string { return r.Failure.Code }),
		col("error_name", lc, func(r *Outcome) string { return r.Failure.Name }),
		col("error_text", str, func(r *Outcome) string { return r.Failure.Message }),
		col("rejection_code", lc, func(r *Outcome) string { return r.Rejection.Code }),
		col("rejection_text", str, func(r *Outcome) string { return r.Rejection.Message }),
		col("suggestion", str, func(r *Outcome) string { return r.Rejection.Suggestion }),
		col("result_format", lc, func(r *Outcome) string { return r.Result.Format }),
		col("result_truncated", boolean, func(r *Outcome) bool { return r.Result.Truncated }),
	},
		targetColumns(func(r *Outcome) *event.Target { return &r.Event.Target }),
		statsColumns(func(r *Outcome) *Stats { return &r.Stats }),
		baseColumns(func(r *Outcome) *Base { return &r.Base })),
}
