package row

import (
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
)

// Request is a row of requests: a Task, or the wish to cancel one.
type Request struct {
	Base
	Task             query.Task
	Kind             string
	SLAMs, TimeoutMs *uint64
	Priority         int32
	Digest, Reason   string
	SubmittedAt      time.Time
	SubmittedAtEvent *time.Time
}

// FromTask maps a Task as it came over the topic. A Task without an id gets the one that every reader derives; one without
// a submission time gets the record's.
func FromTask(rec Record, t query.Task) (Request, error) {
	c := begin("requests", rec, t.Extra)
	r := Request{Task: t, Kind: "request", Digest: t.Digest()}
	r.Task.ID = t.IDIn(query.Origin{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset})
	c.required("tenant", t.Tenant)
	r.SLAMs, r.TimeoutMs = c.seconds("sla_ms", t.SLASeconds), c.seconds("timeout_ms", t.TimeoutSeconds)
	r.Priority = c.i32("priority", t.Priority)
	r.SubmittedAt = rec.At.UTC()
	if t.SubmittedAt != nil {
		r.SubmittedAt = c.clamp("submitted_at", *t.SubmittedAt, requestTolerance)
		r.SubmittedAtEvent = c.maybeTime("submitted_at_event", t.SubmittedAt)
	}
	r.Base = c.base
	return r, c.done()
}

// FromCancel maps a wish to cancel.
func FromCancel(rec Record, w event.Cancel) (Request, error) {
	c := begin("requests", rec, w.Extra)
	r := Request{Kind: "cancel", Reason: w.Reason, SubmittedAt: rec.At.UTC()}
	r.Task = query.Task{ID: c.required("task_id", w.TaskID), Tenant: w.Tenant, User: w.User}
	r.Base = c.base
	return r, c.done()
}

// Requests makes a set of rows.
func Requests(rows []Request) Set { return set[Request]{requests, rows} }

var requests = &table[Request]{
	name: "requests",
	base: func(r *Request) *Base { return &r.Base },
	time: func(r *Request) time.Time { return r.SubmittedAt },
	columns: append([]column[Request]{
		col("task_id", str, func(r *Request) string { return r.Task.ID }),
		col("kind", lc, func(r *Request) string { return r.Kind }),
		col("tenant", str, func(r *Request) string { return r.Task.Tenant }),
		col("user", str, func(r *Request) string { return r.Task.User }),
		col("session_id", str, func(r *Request) string { return r.Task.SessionID() }),
		col("session_class", lc, func(r *Request) string { return string(r.Task.SessionClass()) }),
		col("tags", array, func(r *Request) []string { return list(r.Task.Tags) }),
		col("dataset", str, func(r *Request) string { return r.Task.Dataset }),
		col("query_type", lc, func(r *Request) string { return r.Task.QueryType }),
		col("sql_text", str, func(r *Request) string { return r.Task.SQL }),
		col("intent", str, func(r *Request) string { return string(r.Task.Intent) }),
		col("dialect", lc, func(r *Request) string { return r.Task.Dialect }),
		col("catalog", str, func(r *Request) string { return r.Task.Catalog }),
		col("schema_name", str, func(r *Request) string { return r.Task.Schema }),
		col("sla_ms", nullU64, func(r *Request) *uint64 { return r.SLAMs }),
		col("sla_tier", lc, func(r *Request) string { return tierOf(r.SLAMs) }),
		col("timeout_ms", nullU64, func(r *Request) *uint64 { return r.TimeoutMs }),
		col("consistency", lc, func(r *Request) string { return string(r.Task.Consistency) }),
		col("commit_ts", "Nullable(Int64)", func(r *Request) *int64 { return r.Task.CommitTS }),
		col("resource_hint", str, func(r *Request) string { return r.Task.ResourceHint }),
		col("engine_hint", str, func(r *Request) string { return r.Task.EngineHint }),
		col("priority", "Int32", func(r *Request) int32 { return r.Priority }),
		col("idempotency_key", str, func(r *Request) string { return r.Task.IdempotencyKey }),
		col("digest", str, func(r *Request) string { return r.Digest }),
		col("reason", str, func(r *Request) string { return r.Reason }),
		col("submitted_at", time64, func(r *Request) time.Time { return r.SubmittedAt }),
		col("submitted_at_event", nullTime, func(r *Request) *time.Time { return r.SubmittedAtEvent }),
	}, baseColumns(func(r *Request) *Base { return &r.Base })...),
}

func tierOf(slaMs *uint64) string {
	if slaMs == nil {
		return ""
	}
	return Tier(*slaMs)
}
