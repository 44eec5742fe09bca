package route

import (
	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/classify"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// facts are what the rules may test. What is not known is not in it, and matches nothing.
func facts(in *Input) policy.Facts {
	s := &in.Shape
	f := make(policy.Facts, 32+5*len(in.Policy.Pools)) // what a Task can have, and a pool: a map that grows costs more than all else here
	f["sla_ms"] = policy.NumberFact(float64(in.sla().Milliseconds()))
	f["attempt"] = policy.NumberFact(float64(in.Attempt))
	f["parsed"] = policy.BoolFact(parsed(in))
	f["client_tag"] = policy.WordFact(in.Task.Tags...)
	f["principal_class"] = policy.WordFact(string(in.Task.SessionClass()))
	f["tenant"] = policy.WordFact(in.Task.Tenant)
	f["user"] = policy.WordFact(in.Task.User)
	f["dataset"] = policy.WordFact(in.Task.Dataset)
	f["query_type"] = policy.WordFact(in.Task.QueryType)
	f["statement"] = policy.WordFact(string(s.Statement))
	f["dialect"] = policy.WordFact(in.Task.Dialect)
	f["tables"] = policy.WordFact(shape.Names(s.Tables)...)
	f["engine_hint"] = policy.WordFact(in.Task.EngineHint)
	number(f, "estimated_bytes", in.scanBytes())
	if parsed(in) {
		f["join_tables"] = policy.NumberFact(float64(s.JoinTables))
		f["table_count"] = policy.NumberFact(float64(len(s.Tables)))
		f["subquery_depth"] = policy.NumberFact(float64(s.SubqueryDepth))
		f["no_expensive_ops"] = policy.BoolFact(!s.Expensive())
		f["has_window"] = policy.BoolFact(s.HasWindow())
		f["has_udf"] = policy.BoolFact(s.HasUDF())
		f["has_group_by"] = policy.BoolFact(s.GroupBy)
		f["read_only"] = policy.BoolFact(s.ReadOnly)
		if s.Limit != nil {
			f["limit"] = policy.NumberFact(float64(*s.Limit))
		}
		if s.OutputColumns != nil {
			f["output_columns"] = policy.NumberFact(float64(*s.OutputColumns))
		}
	}
	if in.History.Asked {
		runs, kills := historyCounts(in)
		f["history_runs"] = policy.NumberFact(float64(runs))
		f["history_memory_kills"] = policy.NumberFact(float64(kills))
	}
	if l := in.limits(); l != nil {
		left := budget.Remaining(*l, in.Session.Usage, in.Now)
		number(f, "session_queries_remaining", left.Queries)
		number(f, "session_bytes_remaining", left.Bytes)
		number(f, "session_wall_ms_remaining", left.WallMs)
	}
	for _, p := range in.Policy.Pools {
		number(f, p.Name+"_queue_wait_ms", queueWait(in, p))
		number(f, p.Name+"_queued", in.signal(p.Name, signal.Queued))
		number(f, p.Name+"_running", in.signal(p.Name, signal.Running))
		number(f, p.Name+"_ready", in.signal(p.Name, signal.Ready))
		number(f, p.Name+"_healthy", in.signal(p.Name, signal.Healthy))
	}
	return f
}

func number(f policy.Facts, name string, v signal.Value) {
	if n, ok := v.Get(); ok {
		f[name] = policy.NumberFact(n)
	}
}

// features are what the verdict looks at.
func features(in *Input) classify.Features {
	f := classify.Features{ScanBytes: in.scanBytes()}
	if parsed(in) {
		f.JoinTables = signal.Of(float64(in.Shape.JoinTables), signal.Count, "shape", in.Now)
	}
	if in.History.Asked {
		_, kills := historyCounts(in)
		f.MemoryKills = signal.Of(float64(kills), signal.Count, "history", in.Now)
	}
	var peak, limit int64
	for _, p := range in.Policy.Pools {
		if prof, ok := in.profile(p); ok && prof.PeakMemoryBytes != nil {
			peak = max(peak, *prof.PeakMemoryBytes)
		}
		if p.MaxMemoryPerQuery > 0 && !p.Spills && (limit == 0 || p.MaxMemoryPerQuery < limit) {
			limit = p.MaxMemoryPerQuery
		}
	}
	if peak > 0 {
		f.PeakMemoryBytes = signal.Of(float64(peak), signal.Bytes, "history", in.Now)
	}
	if limit > 0 {
		f.LightMemoryBytes = signal.Of(float64(limit), signal.Bytes, "policy", in.Now)
	}
	return f
}

// historyCounts sums the runs of the fingerprint, and the memory kills that later successes have not outweighed.
func historyCounts(in *Input) (runs, kills int64) {
	for _, p := range in.Policy.Pools {
		if prof, ok := in.profile(p); ok {
			runs += prof.Runs
			if prof.SuccessesAfterKill < in.Policy.Thresholds.MemoryKillForgivenAfter {
				kills += prof.MemoryKills
			}
		}
	}
	return runs, kills
}

// parsed reports whether anything could be read off the text.
func parsed(in *Input) bool { return in.Shape.Source != "" && in.Shape.Source != shape.FromNone }
