package route

import (
	"math"
	"strconv"

	"github.com/pointsman/pointsman/pkg/classify"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/signal"
)

// winnerReasons adds the reasons for the target, the most telling first: what history ruled out, whose queue is too long, the
// factor that decided against the runner-up, and what speaks for it besides.
func (s *scene) winnerReasons(out []event.Reason, rule policy.Rule, ranked []*candidate, chosen *candidate) []event.Reason {
	best := ranked[0]
	if rule.Action == policy.ToPool && chosen.Cluster != rule.Pool {
		out = append(out, NewReason(RulePoolNotUsable, "rule", rule.Name, "cluster", rule.Pool, "why", s.whyNot(rule.Pool)))
	}
	if chosen != best {
		out = append(out, NewReason(Explored, "percent", percent(chosen.Propensity), "best", best.name()))
	}
	sla := integer(s.in.sla().Milliseconds())
	for i := range s.cands {
		if c := &s.cands[i]; c.Filtered != nil && c.Filtered.Code == string(HistoryMemoryKill) {
			out = append(out, c.Filtered.Reason)
		}
	}
	for i := range s.cands {
		if waitMs, ok := s.queueDecided(best, &s.cands[i]); ok {
			out = append(out, NewReason(QueueWaitOverSLA, "cluster", s.cands[i].name(), "waitMs", ms(waitMs), "slaMs", sla))
		}
	}
	if chosen.asleep {
		out = append(out, NewReason(WakesPool, "cluster", chosen.Cluster, "state", chosen.sleep(), "wakeMs", ms(chosen.parts.acquire)))
	}
	for _, w := range wishes(&s.in.Task) {
		if !w.met(&chosen.Target) {
			out = append(out, NewReason(HintNotFollowed, "hint", w.word, "why", s.unheard(w, best, chosen)))
		}
	}
	named := rule.Action == policy.ToPool && chosen.Cluster == rule.Pool
	switch {
	case chosen != best:
	case len(ranked) == 1 && (named || best.Filtered != nil):
	case len(ranked) == 1:
		out = append(out, NewReason(OnlyCandidate))
	default:
		other := ranked[1]
		out = append(out, factorReason(Code(other.loss.Code), &comparison{
			slaMs: sla, hint: wishText(&s.in.Task), other: other.name(), w: best.Estimate, l: other.Estimate,
		}))
	}
	if named {
		return out
	}
	return s.support(out, chosen)
}

// whyNot is what the filters say of a pool that a rule names.
func (s *scene) whyNot(pool string) string {
	for i := range s.cands {
		if c := &s.cands[i]; c.Cluster == pool && c.Filtered != nil {
			return c.Filtered.Text
		}
	}
	return "the policy has no such pool"
}

// support is what speaks for a target that was ranked, whatever decided.
func (s *scene) support(out []event.Reason, c *candidate) []event.Reason {
	t := &s.in.Policy.Thresholds
	// Of a query that is heavy for another reason a small scan says nothing.
	if n, ok := s.in.scanBytes().Get(); ok && int64(n) < t.HeavyBytes && s.verdict != classify.Heavy {
		out = append(out, NewReason(ScanBelowThreshold, "bytes", integer(int64(n)), "limit", integer(t.HeavyBytes)))
	}
	p := &c.rec.prof
	if rate, low, _, ok := p.HitRate(); ok && rate >= t.SLATarget && p.Tasks >= t.HistoryMinRuns {
		out = append(out, NewReason(HitRateHigh, "hits", integer(p.Hits), "n", integer(p.Tasks), "cluster", c.Cluster, "window", p.Window,
			"low", percent(low)))
	}
	if is, ok := s.signal(c, healthy).Get(); ok && is != 0 && !c.asleep {
		out = append(out, NewReason(ClusterHealthy, "cluster", c.Cluster))
	}
	return out
}

// queueDecided reports that a candidate lost for its queue: without the wait it would have met the SLA as well as the winner.
func (s *scene) queueDecided(winner, c *candidate) (waitMs float64, is bool) {
	if c == winner {
		return 0, false
	}
	p := &c.parts
	if c.Filtered != nil {
		wait, ok := p.queue.Get()
		return wait, ok && wait > s.slaLeft && c.Filtered.Code == string(QueueWaitOverLimit)
	}
	if c.Rank == 0 || !p.waitKnown || p.wait <= 0 || c.bands[bySLA] <= winner.bands[bySLA] {
		return 0, false
	}
	f := c.loss.Flip
	return p.wait, f != nil && f.What == FlipQueue
}

// comparison is two candidates' estimates, of which the first is the better.
type comparison struct {
	slaMs, hint, other string
	w, l               *event.CandidateEstimate
}

// factorReason says in which factor a candidate is better than another.
func factorReason(code Code, c *comparison) event.Reason {
	switch code {
	case SLAProbability:
		return NewReason(code, "slaMs", c.slaMs, "percent", percentOf(c.w.PHit), "other", c.other, "otherPercent", percentOf(c.l.PHit))
	case ShorterCompletion:
		return NewReason(code, "totalMs", msOf(c.w.TotalMs), "other", c.other, "otherTotalMs", msOf(c.l.TotalMs))
	case LowerCost:
		return NewReason(code, "cost", c.w.Cost.String(), "other", c.other, "otherCost", c.l.Cost.String())
	case EngineHintFollowed:
		return NewReason(code, "hint", c.hint)
	default:
		return NewReason(code, "other", c.other)
	}
}

func percent(p float64) string { return strconv.FormatFloat(math.Round(p*1000)/10, 'f', -1, 64) }

func percentOf(v signal.Number) string {
	p, ok := v.Get()
	if !ok {
		return "an unknown number of"
	}
	return percent(p)
}

func msOf(v signal.Number) string {
	n, ok := v.Get()
	if !ok {
		return "an unknown number of"
	}
	return ms(n)
}

// unknown names what could not be known when it was decided.
func (s *scene) unknown() []string {
	in := s.in
	var out []string
	if _, ok := in.scanBytes().Get(); !ok {
		out = append(out, "bytes to scan")
	}
	switch {
	case !in.History.Asked:
		out = append(out, "history (could not be asked)")
	case len(in.History.Found) == 0:
		out = append(out, "history of this fingerprint (none yet)")
	}
	if in.Session == nil && in.Attempt <= 1 && in.Policy.Budgets.OfSession(in.Task) != nil {
		out = append(out, "what the session has used (another router keeps its account)")
	}
	for i := range s.cands {
		c := &s.cands[i]
		if i > 0 && c.Cluster == s.cands[i-1].Cluster {
			continue // another lane of it
		}
		for _, f := range [...]fact{ready, healthy, running, estWaitMs} {
			if f == ready && !c.pool.SleepsAtZero {
				continue // nobody has to say it of a pool that is always up
			}
			switch s.signal(c, f).State() {
			case signal.Absent:
				out = append(out, c.Cluster+" "+string(looked[f]))
			case signal.Stale:
				out = append(out, c.Cluster+" "+string(looked[f])+" (stale)")
			case signal.Known:
			}
		}
	}
	if !parsed(in) {
		out = append(out, "shape of the text (no parser reads it)")
	}
	if name := in.Task.Dialect; name != "" {
		if _, err := fingerprint.ParseDialect(name); err != nil {
			out = append(out, "the dialect "+strconv.Quote(name)+" (read as any)")
		}
	}
	return out
}
