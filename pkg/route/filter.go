package route

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/signal"
)

// candidate is a pool on its way through the filters and the ranking.
type candidate struct {
	event.Candidate
	pool policy.Pool
	// prof and found are the fingerprint's own history there.
	prof  profile.Profile
	found bool
	// asleep says that the pool has to be woken first.
	asleep bool
	parts  parts
	bands  []int
}

// filter is one hard constraint. It returns nil to let the candidate pass.
type filter struct {
	// Why the filter stands where it stands: cheapest first, and what can never change before what may.
	why   string
	check func(in *Input, c *candidate) *event.Filtered
}

// filters are tried in order, the first that fails names the reason. Missing signals never remove a candidate: what is
// unknown is said in the decision instead.
var filters = []filter{
	{"a pool where this Task failed before is out, whatever else holds", failedBefore},
	{"permission is fixed and free to check", permitted},
	{"so is what the pool can read", reachable},
	{"and what it can understand", speaks},
	{"and whether it takes writes", writable},
	{"history: what did not fit will not fit", memoryFits},
	{"the estimate against the pool's own limit", scanFits},
	{"health and readiness change by the second, so they come late", usable},
	{"the queue comes last: its reason should only be given when nothing else stands in the way", queueFits},
}

// candidates makes one candidate a pool and filters it.
func candidates(in *Input, rule policy.Rule) []*candidate {
	out := make([]*candidate, 0, len(in.Policy.Pools))
	for _, p := range in.Policy.Pools {
		c := &candidate{pool: p}
		c.Target = event.Target{Engine: p.Kind, Cluster: p.Name, Queue: p.Queue, Resource: p.Resource}
		c.prof, c.found = in.profile(p)
		for _, f := range filters {
			if c.Filtered = f.check(in, c); c.Filtered != nil {
				break
			}
		}
		out = append(out, c)
	}
	applyRule(rule, out)
	return out
}

// applyRule keeps the rule's pool alone if it passed the filters. If it did not, the ranking gets what the rule allows: nothing
// if it is strict, its fallbacks if it names any, else all the rest.
func applyRule(rule policy.Rule, cands []*candidate) {
	if rule.Action != policy.ToPool {
		return
	}
	i := slices.IndexFunc(cands, func(c *candidate) bool { return c.Cluster == rule.Pool })
	usable := i >= 0 && cands[i].Filtered == nil
	for _, c := range cands {
		if c.Cluster != rule.Pool && c.Filtered == nil && (usable || !rule.Allows(c.Cluster)) {
			c.Filtered = removed(NotTheRulesPool, "rule", rule.Name, "cluster", rule.Pool)
		}
	}
}

func removed(code Code, args ...string) *event.Filtered {
	return &event.Filtered{Reason: NewReason(code, args...)}
}

func failedBefore(in *Input, c *candidate) *event.Filtered {
	if slices.ContainsFunc(in.Excluded, func(t event.Target) bool { return t.Cluster == c.Cluster && t.Engine == c.Engine }) {
		return removed(FailedBefore)
	}
	return nil
}

func permitted(in *Input, c *candidate) *event.Filtered {
	if len(c.pool.Tenants) > 0 && !slices.Contains(c.pool.Tenants, in.Task.Tenant) {
		return removed(TenantNotPermitted, "tenant", in.Task.Tenant)
	}
	return nil
}

func reachable(in *Input, c *candidate) *event.Filtered {
	if len(c.pool.Datasets) > 0 && in.Task.Dataset != "" && !slices.Contains(c.pool.Datasets, in.Task.Dataset) {
		return removed(DatasetNotReachable, "dataset", in.Task.Dataset)
	}
	return nil
}

func speaks(in *Input, c *candidate) *event.Filtered {
	d := strings.ToLower(in.Task.Dialect)
	if len(c.pool.Dialects) > 0 && d != "" && d != "auto" && !slices.Contains(c.pool.Dialects, d) {
		return removed(DialectNotSupported, "dialect", in.Task.Dialect)
	}
	return nil
}

func writable(in *Input, c *candidate) *event.Filtered {
	if c.pool.ReadOnly && !in.Shape.ReadOnly {
		return removed(PoolReadOnly, "statement", string(in.Shape.Statement))
	}
	return nil
}

// memoryFits removes a pool whose memory limit killed this fingerprint before, unless enough later runs went well there,
// and a pool whose limit is below what the fingerprint has used elsewhere and that can't spill.
func memoryFits(in *Input, c *candidate) *event.Filtered {
	if c.found && c.prof.MemoryKills > 0 && c.prof.SuccessesAfterKill < in.Policy.Thresholds.MemoryKillForgivenAfter {
		return removed(HistoryMemoryKill, "cluster", c.Cluster, "kills", strconv.FormatInt(c.prof.MemoryKills, 10),
			"runs", strconv.FormatInt(c.prof.Runs, 10), "window", c.prof.Window)
	}
	if c.pool.Spills || c.pool.MaxMemoryPerQuery == 0 {
		return nil
	}
	// Its own successes here prove more than a peak elsewhere: an engine that may spill or has more threads uses more.
	if c.found && c.prof.Successes > 0 {
		return nil
	}
	if most, ok := peakElsewhere(in, c); ok && most > c.pool.MaxMemoryPerQuery {
		return removed(MemoryOverLimit, "bytes", strconv.FormatInt(most, 10), "limit", strconv.FormatInt(c.pool.MaxMemoryPerQuery, 10))
	}
	return nil
}

func peakElsewhere(in *Input, c *candidate) (int64, bool) {
	var most int64
	found := false
	for _, p := range in.Policy.Pools {
		if p.Name == c.Cluster {
			continue
		}
		if prof, ok := in.profile(p); ok && prof.PeakMemoryBytes != nil {
			most, found = max(most, *prof.PeakMemoryBytes), true
		}
	}
	return most, found
}

func scanFits(in *Input, c *candidate) *event.Filtered {
	if n, ok := in.scanBytes().Last(); ok && c.pool.MaxBytesPerQuery > 0 && int64(n) > c.pool.MaxBytesPerQuery {
		return removed(ScanOverLimit, "bytes", strconv.FormatInt(int64(n), 10), "limit", strconv.FormatInt(c.pool.MaxBytesPerQuery, 10))
	}
	return nil
}

// usable removes what is known to be down. A pool that sleeps at zero replicas is not down: it is woken.
func usable(in *Input, c *candidate) *event.Filtered {
	if ready, ok := in.signal(c.Cluster, signal.Ready).Get(); ok {
		switch {
		case ready != 0:
			return nil
		case c.pool.SleepsAtZero:
			c.asleep = true
			return nil
		default:
			f := removed(ClusterNotReady)
			f.WaitHelps, f.ScaleHelps = true, true
			return f
		}
	}
	healthy, ok := in.signal(c.Cluster, signal.Healthy).Get()
	switch {
	case c.pool.SleepsAtZero && (!ok || healthy == 0):
		c.asleep = true
		return nil
	case ok && healthy == 0:
		f := removed(ClusterUnhealthy)
		f.WaitHelps = true
		return f
	default:
		return nil
	}
}

func queueFits(in *Input, c *candidate) *event.Filtered {
	if c.pool.MaxQueueWait == 0 {
		return nil
	}
	if wait, ok := queueWait(in, c.pool).Get(); ok && wait > float64(c.pool.MaxQueueWait.Milliseconds()) {
		f := removed(QueueWaitOverLimit, "waitMs", ms(wait), "limitMs", strconv.FormatInt(c.pool.MaxQueueWait.Milliseconds(), 10))
		f.WaitHelps, f.ScaleHelps = true, true
		return f
	}
	return nil
}

func ms(v float64) string { return strconv.FormatInt(int64(v+0.5), 10) }
