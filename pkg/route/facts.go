package route

import (
	"cmp"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Names of estimates that only rules look at.
const (
	// ReflectionCovers is whether a materialised aggregate or copy can answer the query.
	ReflectionCovers = "reflectionCovers"
	// LargeWindow is whether it has a window function over a partition that is known to be large.
	LargeWindow = "windowOverLargePartition"
)

// facts are what the rules may test, as far as any rule does. What is not known is missing.
func facts(in *Input) *policy.Facts { return newScene(in).ruleFacts() }

func (s *scene) ruleFacts() *policy.Facts {
	in := s.in
	f := in.Policy.NewFacts()
	taskFacts(in, f)
	shapeFacts(in, f)
	if f.Wants(policy.HistoryRuns) || f.Wants(policy.HistoryMemoryKills) || f.Wants(policy.EstimatedMemoryBytes) {
		historyFacts(in, f)
	}
	if l := in.limits(); l != nil {
		left := budget.Remaining(*l, in.Session.Usage, in.Now)
		f.Set(policy.SessionQueriesRemaining, number(left.Queries))
		f.Set(policy.SessionBytesRemaining, number(left.Bytes))
		f.Set(policy.SessionWallMsRemaining, number(left.WallMs))
	}
	for i := range in.Policy.Pools {
		s.poolFacts(f, i)
	}
	for i := range in.Policy.Latches {
		spec := &in.Policy.Latches[i]
		f.SetLatch(i, spec.At(in.Latches[spec.Name], in.Now))
	}
	return f
}

func taskFacts(in *Input, f *policy.Facts) {
	t := &in.Task
	f.Set(policy.SLAMs, policy.NumberFact(float64(in.sla().Milliseconds())))
	f.Set(policy.TimeoutMs, policy.NumberFact(float64(t.Timeout(in.Policy.Defaults.Timeout).Milliseconds())))
	f.Set(policy.AttemptNumber, policy.NumberFact(float64(in.Attempt)))
	f.Set(policy.Priority, policy.NumberFact(float64(t.Priority)))
	f.Set(policy.ClientTag, policy.WordsFact(t.Tags...))
	f.Set(policy.PrincipalClass, policy.WordFact(string(t.SessionClass())))
	f.Set(policy.Tenant, policy.WordFact(t.Tenant))
	f.Set(policy.User, policy.WordFact(t.User))
	f.Set(policy.Dataset, policy.WordFact(t.Dataset))
	f.Set(policy.Catalog, policy.WordFact(t.Catalog))
	f.Set(policy.DefaultSchema, policy.WordFact(t.Schema))
	f.Set(policy.Consistency, policy.WordFact(string(cmp.Or(t.Consistency, query.Eventual))))
	f.Set(policy.QueryType, policy.WordFact(t.QueryType))
	f.Set(policy.Dialect, policy.WordFact(t.Dialect))
	f.Set(policy.EngineHint, policy.Fact{Known: true, Word: t.EngineHint})
	f.Set(policy.EstimatedBytes, number(in.scanBytes()))
	f.Set(policy.ReflectionCoversQuery, number(in.Estimates[ReflectionCovers]))
}

// shapeFacts are read off the text. Of a text that could not be read only that is known.
func shapeFacts(in *Input, f *policy.Facts) {
	s := &in.Shape
	f.Set(policy.Parsed, policy.BoolFact(parsed(in)))
	f.Set(policy.Statement, policy.WordFact(cmp.Or(string(s.Statement), policy.UnknownStatement)))
	if !parsed(in) {
		return
	}
	f.Set(policy.Command, policy.WordFact(s.Command))
	f.Set(policy.JoinTables, policy.NumberFact(float64(s.JoinTables)))
	f.Set(policy.TableCount, policy.NumberFact(float64(len(s.Tables))))
	f.Set(policy.SubqueryDepth, policy.NumberFact(float64(s.SubqueryDepth)))
	f.Set(policy.NoExpensiveOps, policy.BoolFact(!s.Expensive()))
	f.Set(policy.HasWindow, policy.BoolFact(s.HasWindow()))
	if large := number(in.Estimates[LargeWindow]); large.Known || s.HasWindow() {
		f.Set(policy.HasWindowOverLargePartition, large)
	} else {
		f.Set(policy.HasWindowOverLargePartition, policy.BoolFact(false))
	}
	f.Set(policy.HasUDF, policy.BoolFact(s.HasUDF()))
	f.Set(policy.HasGroupBy, policy.BoolFact(s.GroupBy))
	f.Set(policy.HasLimit, policy.BoolFact(s.HasLimit || s.Limit != nil))
	f.Set(policy.SelectsAllColumns, policy.BoolFact(s.Star))
	f.Set(policy.ReadOnly, policy.BoolFact(s.ReadOnly))
	if f.Wants(policy.Tables) {
		f.Set(policy.Tables, policy.WordsFact(shape.Names(s.Tables)...))
	}
	if s.Limit != nil {
		f.Set(policy.RowLimit, policy.NumberFact(float64(*s.Limit)))
	}
	if s.OutputColumns != nil {
		f.Set(policy.OutputColumns, policy.NumberFact(float64(*s.OutputColumns)))
	}
}

func historyFacts(in *Input, f *policy.Facts) {
	if !in.History.Asked {
		return
	}
	runs, kills := historyCounts(in)
	f.Set(policy.HistoryRuns, policy.NumberFact(float64(runs)))
	f.Set(policy.HistoryMemoryKills, policy.NumberFact(float64(kills)))
	if peak := peakMemory(in); peak > 0 {
		f.Set(policy.EstimatedMemoryBytes, policy.NumberFact(float64(peak)))
	}
}

// poolSignals are the facts that are signals as they come.
var poolSignals = []policy.PoolFact{
	policy.PoolQueued, policy.PoolRunning, policy.PoolOldestQueuedMs, policy.PoolDonePerSecond, policy.PoolMemoryUsedBytes,
	policy.PoolReadyReplicas, policy.PoolReady, policy.PoolHealthy,
}

func (s *scene) poolFacts(f *policy.Facts, i int) {
	in := s.in
	p := &in.Policy.Pools[i]
	for _, fact := range poolSignals {
		if f.WantsPool(i, fact) {
			f.SetPool(i, fact, number(in.signal(p.Name, policy.SignalOf[fact])))
		}
	}
	if f.WantsPool(i, policy.PoolQueueWaitMs) {
		f.SetPool(i, policy.PoolQueueWaitMs, computed(s.poolWait(i)))
	}
	if !f.WantsPool(i, policy.PoolSlots) && !f.WantsPool(i, policy.PoolLoad) {
		return
	}
	slots := number(in.signal(p.Name, signal.Slots))
	if !slots.Known && p.Slots > 0 {
		slots = policy.NumberFact(float64(p.Slots))
	}
	f.SetPool(i, policy.PoolSlots, slots)
	running, queued := number(in.signal(p.Name, signal.Running)), number(in.signal(p.Name, signal.Queued))
	if slots.Known && slots.Number > 0 && running.Known && queued.Known {
		f.SetPool(i, policy.PoolLoad, policy.NumberFact((running.Number+queued.Number+float64(in.Inflight[p.Name]))/slots.Number))
	}
}

// number is a fact of a signal that is fresh; of one that is stale or absent it is missing.
func number(v signal.Value) policy.Fact {
	if n, ok := v.Get(); ok {
		return policy.NumberFact(n)
	}
	return policy.Fact{}
}

// computed is a fact of a number that was computed.
func computed(x signal.Number) policy.Fact {
	if n, ok := x.Get(); ok {
		return policy.NumberFact(n)
	}
	return policy.Fact{}
}

// peakMemory is the most memory that the fingerprint has used anywhere, 0 when nothing is known of it.
func peakMemory(in *Input) int64 {
	var peak int64
	for i := range in.Policy.Pools {
		if prof, ok := in.profile(&in.Policy.Pools[i]); ok && prof.PeakMemoryBytes != nil {
			peak = max(peak, *prof.PeakMemoryBytes)
		}
	}
	return peak
}

// historyCounts sums the runs of the fingerprint, and the memory kills that later successes have not outweighed.
func historyCounts(in *Input) (runs, kills int64) {
	for i := range in.Policy.Pools {
		if prof, ok := in.profile(&in.Policy.Pools[i]); ok {
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
