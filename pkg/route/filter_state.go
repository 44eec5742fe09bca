package route

import (
	"math"
	"strconv"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
)

// freshEnough removes a copy that is not known to have what the Task must see. A lag that nobody reports is not a lag of zero.
//
// Eventual reads take any copy that lags no further than the policy allows. A read of one's own writes takes a copy that is known
// to have applied the commit. A strong read takes no copy: that it has caught up is never known of this very moment.
func freshEnough(s *scene, c *candidate) *event.Filtered {
	if !c.pool.Replica {
		return nil
	}
	lag := s.signal(c, lagMs)
	switch s.in.Task.Consistency {
	case query.Eventual:
	case query.Strong:
		return removed(ReplicaNotCurrent)
	case query.ReadYourWrites:
		if s.in.Task.CommitTS == nil {
			return removed(CommitNotNamed)
		}
		if f := s.applied(c, *s.in.Task.CommitTS, lag); f != nil {
			return f
		}
	}
	if c.pool.MaxLag == 0 {
		return nil
	}
	most := float64(c.pool.MaxLag.Milliseconds())
	n, ok := lag.Get()
	switch {
	case !ok:
		return removed(LagUnknown)
	case n > most:
		return later(false, ReplicaLags, "lagMs", ms(n), "limitMs", ms(most))
	}
	return nil
}

// applied removes a copy that is not known to have applied a commit: by the position it reports, else by its lag, where commits
// are stamped with the time.
func (s *scene) applied(c *candidate, commit int64, lag signal.Value) *event.Filtered {
	position, known := s.signal(c, appliedTS).Get()
	if known && atLeast(position, commit) {
		return nil
	}
	behind, lagKnown := lag.Get()
	at, timed := c.pool.CommitTS.Time(commit)
	if lagKnown && timed {
		seen := lag.At
		if seen.IsZero() {
			seen = s.in.Now
		}
		// What was committed up to lag before the observation had been applied then.
		if missing := at.Sub(seen.Add(-time.Duration(math.Ceil(behind * float64(time.Millisecond))))); missing > 0 {
			return later(false, CommitNotApplied, "commitTs", strconv.FormatInt(commit, 10), "behindMs", ms(float64(missing)/float64(time.Millisecond)))
		}
		return nil
	}
	if known {
		return later(false, CommitNotApplied, "commitTs", strconv.FormatInt(commit, 10), "behindMs", "an unknown number of")
	}
	return removed(LagUnknown)
}

// exactInteger is the largest number up to which a float64 holds every integer.
const exactInteger = 1 << 53

// atLeast compares a position, which came as a float64, with an exact number: beyond 2^53 the position may have been rounded up,
// so that it has to lie a whole step above.
func atLeast(position float64, commit int64) bool {
	if math.Abs(position) < exactInteger && commit < exactInteger && commit > -exactInteger {
		return position >= float64(commit)
	}
	below := math.Nextafter(position, math.Inf(-1))
	if below >= math.MaxInt64 {
		return true
	}
	return below > math.MinInt64 && int64(below) >= commit
}

// usable removes what is known to be down. A pool that sleeps at zero replicas is not down: it is woken, if there is the time. Of a
// pool that says nothing it is taken that it has to be woken, if it ever sleeps. One that is called ready and failed its last check is
// down: two observers saw it, and the bad news counts.
func usable(s *scene, c *candidate) *event.Filtered {
	ready, readyKnown := s.signal(c, ready).Get()
	healthy, healthKnown := s.signal(c, healthy).Get()
	sick := healthKnown && healthy == 0
	switch {
	case readyKnown && ready != 0 && !sick:
		c.seen = true
	case readyKnown && ready != 0:
		return later(false, ClusterUnhealthy)
	case c.pool.SleepsAtZero && (readyKnown || !healthKnown || sick):
		c.asleep, c.assumed, c.seen = true, !readyKnown, true
		if wake := s.wakeMs(c); wake >= s.deadlineLeft {
			f := removed(WakesTooLate, "state", c.sleep(), "wakeMs", ms(wake), "leftMs", ms(s.deadlineLeft))
			f.ScaleHelps = true
			return f
		}
	case readyKnown:
		return later(true, ClusterNotReady)
	case sick:
		return later(false, ClusterUnhealthy)
	default:
		c.seen = healthKnown
	}
	return nil
}

// sleep says how it is known that the pool sleeps.
func (c *candidate) sleep() string {
	if c.assumed {
		return "does not say whether it is ready, is taken to be asleep"
	}
	return "is asleep"
}

// wakeMs is how long the pool takes to wake: as measured, else as the policy has it.
func (s *scene) wakeMs(c *candidate) float64 {
	if w, ok := s.signal(c, wakeMs).Last(); ok {
		return w
	}
	return float64(c.pool.WakeTime.Milliseconds())
}

// queueFits removes a pool whose queue is known to be too long. Some queues are: one that nobody sees is left to the ranking.
func queueFits(s *scene, c *candidate) *event.Filtered {
	c.parts.queue = s.queueWait(c)
	if c.pool.MaxQueueWait == 0 {
		return nil
	}
	most := float64(c.pool.MaxQueueWait.Milliseconds())
	if wait, ok := c.parts.queue.Get(); ok && wait > most {
		return later(true, QueueWaitOverLimit, "waitMs", ms(wait), "limitMs", ms(most))
	}
	return nil
}
