package route

import (
	"github.com/pointsman/pointsman/pkg/event"
)

// memoryFits removes a pool whose memory limit killed this fingerprint before, unless enough later runs went well there, and a
// pool whose limit is below what the fingerprint has used elsewhere and that can't spill.
func memoryFits(s *scene, c *candidate) *event.Filtered {
	p := &c.rec.prof
	if c.rec.found && p.MemoryKills > 0 && p.SuccessesAfterKill < s.in.Policy.Thresholds.MemoryKillForgivenAfter && !s.roomier(c) {
		return removed(HistoryMemoryKill, "cluster", c.Cluster, "kills", integer(p.MemoryKills), "runs", integer(p.Runs), "window", p.Window)
	}
	limit := c.pool.MaxMemoryPerQuery
	if c.pool.Spills || limit == 0 {
		return nil
	}
	if need, ok := s.in.Estimates[MemoryBytes].Get(); ok && int64(need) > limit {
		return removed(MemoryOverLimit, "how", "the query is estimated to need", "bytes", integer(int64(need)), "limit", integer(limit))
	}
	// Its own successes here prove more than a peak elsewhere: an engine that may spill or has more threads uses more.
	if c.rec.found && p.Successes > 0 && c.pool.SignalKey == "" {
		return nil
	}
	if most, ok := s.peak(c); ok && most > limit {
		return removed(MemoryOverLimit, "how", "this fingerprint has used", "bytes", integer(most), "limit", integer(limit))
	}
	return nil
}

// roomier reports whether the candidate is the lane with the most memory of a cluster whose kills may have been in another of its
// lanes: history knows the cluster only. There have to be fewer kills than lanes, so that this does not go on for ever.
func (s *scene) roomier(c *candidate) bool {
	if c.pool.SignalKey == "" {
		return false
	}
	lanes := int64(0)
	for i := range s.cands {
		other := s.cands[i].pool
		if other.Name != c.Cluster {
			continue
		}
		lanes++
		if other != c.pool && memoryOf(other.MaxMemoryPerQuery, other.Spills) >= memoryOf(c.pool.MaxMemoryPerQuery, c.pool.Spills) {
			return false
		}
	}
	return c.rec.prof.MemoryKills < lanes
}

// memoryOf makes limits comparable: none is the largest.
func memoryOf(limit int64, spills bool) float64 {
	if limit == 0 || spills {
		return 1e300
	}
	return float64(limit)
}

// peak is the most memory that the fingerprint has used on any cluster, in lanes of this one too.
func (s *scene) peak(c *candidate) (most int64, found bool) {
	for i := range s.records {
		r := &s.records[i]
		if r == c.rec && c.pool.SignalKey == "" || !r.found || r.prof.PeakMemoryBytes == nil {
			continue
		}
		most, found = max(most, *r.prof.PeakMemoryBytes), true
	}
	return most, found
}

func scanFits(s *scene, c *candidate) *event.Filtered {
	if c.pool.MaxBytesPerQuery == 0 {
		return nil
	}
	if n, ok := s.in.scanBytes().Last(); ok && n > float64(c.pool.MaxBytesPerQuery) && !s.covered(c) {
		return removed(ScanOverLimit, "bytes", integer(int64(n)), "limit", integer(c.pool.MaxBytesPerQuery))
	}
	return nil
}

// covered reports whether the pool answers from a materialised aggregate, which makes the raw scan no measure.
func (s *scene) covered(c *candidate) bool {
	covers, ok := s.in.Estimates[ReflectionCovers].Get()
	return ok && covers != 0 && c.pool.SupportsReflections
}

// tenantFits removes a pool in which the tenant has as many queries as it may have there.
func tenantFits(s *scene, c *candidate) *event.Filtered {
	most, t := int64(c.pool.MaxConcurrentPerTenant), s.in.Tenant
	if most == 0 || t == nil || t.Admitted || s.in.Attempt > 1 || t.Clusters[c.Cluster] < most {
		return nil
	}
	return later(false, TenantConcurrencyThere, "tenant", s.in.Task.Tenant, "running", integer(t.Clusters[c.Cluster]), "limit", integer(most))
}
