package row

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/signal"
)

// Sample is a row of queue_samples: what one source saw of one cluster.
type Sample struct {
	Base
	Observation signal.Observation
	Other       map[string]float64
	Stale       []string
	At          time.Time
}

// FromObservation maps an observation. A fact that is absent has no number; one that was stale when it was sent has none
// either, but is named.
func FromObservation(rec Record, o signal.Observation) (Sample, error) {
	c := begin("queue_samples", rec, nil)
	r := Sample{Observation: o, Other: map[string]float64{}, Stale: []string{}, At: c.clamp("at", o.At, eventTolerance)}
	c.required("cluster", o.Cluster)
	c.required("source", o.Source)
	for _, name := range sortedKeys(o.Values) {
		v := o.Values[name]
		if v.State() == signal.Stale {
			r.Stale = append(r.Stale, string(name))
		}
		if n, ok := v.Get(); ok && !hasColumn[name] {
			r.Other[string(name)] = n
		}
	}
	r.Base = c.base
	return r, c.done()
}

var facts = []struct {
	name   signal.Name
	column string
}{
	{signal.Replicas, "replicas"},
	{signal.ReadyReplicas, "ready_replicas"},
	{signal.WakeMs, "wake_ms"},
	{signal.Queued, "queued"},
	{signal.Running, "running"},
	{signal.Slots, "slots"},
	{signal.EstWaitMs, "est_wait_ms"},
	{signal.OldestQueuedMs, "oldest_queued_ms"},
	{signal.DonePerSecond, "done_per_second"},
	{signal.MemoryUsedBytes, "memory_used_bytes"},
}

var hasColumn = func() map[signal.Name]bool {
	out := map[signal.Name]bool{signal.Healthy: true, signal.Ready: true}
	for _, f := range facts {
		out[f.name] = true
	}
	return out
}()

// Samples makes a set of rows.
func Samples(rows []Sample) Set { return set[Sample]{samples, rows} }

var samples = &table[Sample]{
	name: "queue_samples",
	base: func(r *Sample) *Base { return &r.Base },
	time: func(r *Sample) time.Time { return r.At },
	columns: concat([]column[Sample]{
		col("cluster", lc, func(r *Sample) string { return r.Observation.Cluster }),
		col("source", lc, func(r *Sample) string { return r.Observation.Source }),
		col("at", time64, func(r *Sample) time.Time { return r.At }),
		flag("healthy", signal.Healthy),
		flag("ready", signal.Ready),
		col("est_wait_source", lc, func(r *Sample) string { return r.Observation.Values[signal.EstWaitMs].Source }),
		col("other", lcMap, func(r *Sample) map[string]float64 { return r.Other }),
		col("stale", arrayLC, func(r *Sample) []string { return r.Stale }),
		col("at_event", time64, func(r *Sample) time.Time { return r.Observation.At.UTC() }),
	},
		factColumns(),
		baseColumns(func(r *Sample) *Base { return &r.Base })[1:]), // an observation's unknown facts are in other
}

func factColumns() []column[Sample] {
	var out []column[Sample]
	for _, f := range facts {
		out = append(out, col(f.column, nullF64, func(r *Sample) *float64 { return known(r.Observation.Values[f.name]) }))
	}
	return out
}

func flag(name string, fact signal.Name) column[Sample] {
	return col(name, "Nullable(Bool)", func(r *Sample) *bool {
		n, ok := r.Observation.Values[fact].Get()
		if !ok {
			return nil
		}
		is := n != 0
		return &is
	})
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
