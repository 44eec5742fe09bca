package route

import (
	"github.com/pointsman/pointsman/pkg/classify"
	"github.com/pointsman/pointsman/pkg/signal"
)

// features are what the verdict looks at.
func (s *scene) features() classify.Features {
	in := s.in
	f := classify.Features{ScanBytes: in.scanBytes(), Covered: in.Estimates[ReflectionCovers]}
	if parsed(in) {
		f.JoinTables = signal.Of(float64(in.Shape.JoinTables), signal.Count, "shape", in.Now)
	}
	var kills, peak, limit int64
	for i := range s.records {
		r := &s.records[i]
		if !r.found {
			continue
		}
		if r.prof.SuccessesAfterKill < in.Policy.Thresholds.MemoryKillForgivenAfter {
			kills += r.prof.MemoryKills
		}
		if r.prof.PeakMemoryBytes != nil {
			peak = max(peak, *r.prof.PeakMemoryBytes)
		}
	}
	for i := range s.cands {
		if p := s.cands[i].pool; p.MaxMemoryPerQuery > 0 && !p.Spills && (limit == 0 || p.MaxMemoryPerQuery < limit) {
			limit = p.MaxMemoryPerQuery
		}
	}
	if in.History.Asked {
		f.MemoryKills = signal.Of(float64(kills), signal.Count, "history", in.Now)
	}
	if peak > 0 {
		f.PeakMemoryBytes = signal.Of(float64(peak), signal.Bytes, "history", in.Now)
	}
	if limit > 0 {
		f.LightMemoryBytes = signal.Of(float64(limit), signal.Bytes, "policy", in.Now)
	}
	return f
}
