package route

import (
	"strconv"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/signal"
)

// winnerReasons are the reasons for the winner, the most telling first: what history ruled out, whose queue is too long,
// then the factor that decided against the runner-up.
func winnerReasons(in *Input, rule policy.Rule, all, ranked []*candidate) []event.Reason {
	var out []event.Reason
	winner := ranked[0]
	if rule.Action == policy.ToPool && winner.Cluster != rule.Pool {
		out = append(out, NewReason(RulePoolNotUsable, "rule", rule.Name, "cluster", rule.Pool))
	}
	for _, c := range all {
		if c.Filtered != nil && c.Filtered.Code == string(HistoryMemoryKill) {
			out = append(out, c.Filtered.Reason)
		}
	}
	for _, c := range all {
		if waitMs, ok := queueDecided(in, winner, c); ok {
			out = append(out, NewReason(QueueWaitOverSLA, "cluster", c.Cluster, "waitMs", ms(waitMs),
				"slaMs", strconv.FormatInt(in.sla().Milliseconds(), 10)))
		}
	}
	if winner.asleep {
		out = append(out, NewReason(WakesPool, "cluster", winner.Cluster, "wakeMs", ms(winner.parts.acquire)))
	}
	if len(ranked) == 1 {
		return append(out, NewReason(OnlyCandidate))
	}
	for i, f := range factors {
		if winner.bands[i] != ranked[1].bands[i] {
			return append(out, factorReason(in, f.code, winner, ranked[1]))
		}
	}
	return append(out, NewReason(Affinity, "other", ranked[1].Cluster))
}

// queueDecided reports that a candidate lost for its queue: without the wait it would have met the SLA as well as the winner.
func queueDecided(in *Input, winner, c *candidate) (waitMs float64, is bool) {
	if c == winner {
		return 0, false
	}
	if c.Filtered != nil {
		if c.Filtered.Code != string(QueueWaitOverLimit) {
			return 0, false
		}
		wait, ok := queueWait(in, c.pool).Get()
		return wait, ok
	}
	lostOnSLA := len(c.bands) > 0 && c.bands[0] > winner.bands[0]
	return c.parts.wait, lostOnSLA && c.parts.wait > 0 && slaBand(in, c.parts.pHitNoWait) <= winner.bands[0]
}

// unknown names what could not be known when it was decided.
func unknown(in *Input) []string {
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
	for _, p := range in.Policy.Pools {
		for _, name := range []signal.Name{signal.Healthy, signal.Running, signal.EstWaitMs} {
			switch in.signal(p.Name, name).State() {
			case signal.Absent:
				out = append(out, p.Name+" "+string(name))
			case signal.Stale:
				out = append(out, p.Name+" "+string(name)+" (stale)")
			case signal.Known:
			}
		}
	}
	if !parsed(in) {
		out = append(out, "shape of the text (no parser reads it)")
	}
	return out
}
