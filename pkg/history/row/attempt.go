package row

import (
	"time"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
)

// Attempt is a row of attempts: one change of state.
type Attempt struct {
	Base
	Event                 event.Attempt
	Number                uint16
	Seq                   uint32
	Epoch                 uint64
	Ended, OK, MemoryKill bool
	Failure               event.Failure
	Next                  string
	Stats                 Stats
	At, AtEvent           time.Time
}

// Stats are the checked numbers of what an attempt took.
type Stats struct {
	QueueMs, AcquireMs, ExecMs, DeliverMs *uint64
	ReadRows, ReadBytes                   *uint64
	ResultRows, ResultBytes               *uint64
	PeakMemoryBytes                       *uint64
}

// FromAttempt maps a change of state.
func FromAttempt(rec Record, a event.Attempt) (Attempt, error) {
	c := begin("attempts", rec, a.Extra)
	state := attempt.State(a.State)
	r := Attempt{
		Event: a, Number: c.u16("attempt", a.Number), Seq: c.u32("seq", a.Seq), Epoch: c.u64("epoch", a.Epoch),
		Ended: state.Terminal(), OK: state == attempt.Succeeded,
		At: c.clamp("at", a.At, eventTolerance), AtEvent: a.At.UTC(),
	}
	c.required("task_id", a.TaskID)
	c.required("state", a.State)
	if a.Failure != nil {
		r.Failure = *a.Failure
	}
	r.MemoryKill = r.Ended && r.Failure.Class == string(failure.MemoryLimit)
	if a.Next != nil {
		r.Next = a.Next.String()
	}
	if a.Stats != nil {
		r.Stats = c.stats(*a.Stats)
	}
	r.Base = c.base
	return r, c.done()
}

func (c *check) stats(s event.Stats) Stats {
	return Stats{
		QueueMs: c.millis(s.QueueMs), AcquireMs: c.millis(s.AcquireMs), ExecMs: c.millis(s.ExecMs), DeliverMs: c.millis(s.DeliverMs),
		ReadRows: c.quantity("read_rows", s.ReadRows), ReadBytes: c.quantity("read_bytes", s.ReadBytes),
		ResultRows: c.quantity("result_rows", s.ResultRows), ResultBytes: c.quantity("result_bytes", s.ResultBytes),
		PeakMemoryBytes: c.quantity("peak_memory_bytes", s.PeakMemoryBytes),
	}
}

func statsColumns[R any](stats func(r *R) *Stats) []column[R] {
	return []column[R]{
		col("queue_ms", nullU64, func(r *R) *uint64 { return stats(r).QueueMs }),
		col("acquire_ms", nullU64, func(r *R) *uint64 { return stats(r).AcquireMs }),
		col("exec_ms", nullU64, func(r *R) *uint64 { return stats(r).ExecMs }),
		col("deliver_ms", nullU64, func(r *R) *uint64 { return stats(r).DeliverMs }),
		col("read_rows", nullU64, func(r *R) *uint64 { return stats(r).ReadRows }),
		col("read_bytes", nullU64, func(r *R) *uint64 { return stats(r).ReadBytes }),
		col("result_rows", nullU64, func(r *R) *uint64 { return stats(r).ResultRows }),
		col("result_bytes", nullU64, func(r *R) *uint64 { return stats(r).ResultBytes }),
		col("peak_memory_bytes", nullU64, func(r *R) *uint64 { return stats(r).PeakMemoryBytes }),
	}
}

func targetColumns[R any](target func(r *R) *event.Target) []column[R] {
	return []column[R]{
		col("engine", lc, func(r *R) string { return target(r).Engine }),
		col("cluster", lc, func(r *R) string { return target(r).Cluster }),
		col("queue", lc, func(r *R) string { return target(r).Queue }),
		col("resource", lc, func(r *R) string { return target(r).Resource }),
	}
}

// Attempts makes a set of rows.
func Attempts(rows []Attempt) Set { return set[Attempt]{attempts, rows} }

var attempts = &table[Attempt]{
	name:   "attempts",
	base:   func(r *Attempt) *Base { return &r.Base },
	time:   func(r *Attempt) time.Time { return r.At },
	rolled: func(r *Attempt) (time.Time, bool) { return r.At, r.Ended },
	columns: concat([]column[Attempt]{
		col("task_id", str, func(r *Attempt) string { return r.Event.TaskID }),
		col("attempt", "UInt16", func(r *Attempt) uint16 { return r.Number }),
		col("seq", "UInt32", func(r *Attempt) uint32 { return r.Seq }),
		col("attempt_id", str, func(r *Attempt) string { return r.Event.AttemptID }),
		col("state", lc, func(r *Attempt) string { return r.Event.State }),
		col("prev_state", lc, func(r *Attempt) string { return r.Event.Prev }),
		col("ended", boolean, func(r *Attempt) bool { return r.Ended }),
		col("ok", boolean, func(r *Attempt) bool { return r.OK }),
		col("memory_kill", boolean, func(r *Attempt) bool { return r.MemoryKill }),
		col("tenant", str, func(r *Attempt) string { return r.Event.Tenant }),
		col("fingerprint", str, func(r *Attempt) string { return r.Event.Fingerprint }),
		col("bucket", lc, func(r *Attempt) string { return r.Event.Bucket }),
		col("executor", lc, func(r *Attempt) string { return r.Event.Executor }),
		col("epoch", "UInt64", func(r *Attempt) uint64 { return r.Epoch }),
		col("external_id", str, func(r *Attempt) string { return r.Event.ExternalID }),
		col("error_class", lc, func(r *Attempt) string { return r.Failure.Class }),
		col("error_code", lc, func(r *Attempt) string { return r.Failure.Code }),
		col("error_name", lc, func(r *Attempt) string { return r.Failure.Name }),
		col("error_text", str, func(r *Attempt) string { return r.Failure.Message }),
		col("remedy", lc, func(r *Attempt) string { return string(r.Event.Remedy) }),
		col("next_target", str, func(r *Attempt) string { return r.Next }),
		col("at", time64, func(r *Attempt) time.Time { return r.At }),
		col("at_event", time64, func(r *Attempt) time.Time { return r.AtEvent }),
	},
		targetColumns(func(r *Attempt) *event.Target { return &r.Event.Target }),
		statsColumns(func(r *Attempt) *Stats { return &r.Stats }),
		baseColumns(func(r *Attempt) *Base { return &r.Base })),
}

func concat[R any](parts ...[]column[R]) []column[R] {
	var out []column[R]
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
