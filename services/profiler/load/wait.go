package load

import (
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/signal"
)

// Estimator is what an estimate of the wait comes from. It is part of the signal's source, so that a decision says it.
type Estimator string

// The estimators, in the order in which they are asked.
const (
	// FreeSlot: whoever comes now finds a slot.
	FreeSlot Estimator = "free_slot"
	// Drain: the slots freed per second while somebody waited, over 30 seconds to 5 minutes. The best single estimator on
	// the traces of a busy cluster.
	Drain Estimator = "drain"
	// Little: the mean time that a query holds a slot, times the queries ahead, divided by the slots.
	Little Estimator = "little"
)

// rate is how many queries end per second, over a window that holds enough of them, but is neither shorter nor longer than the
// bounds. None in a time that was watched is a known zero; a time that was not watched is unknown.
func (c *cluster) rate(since, now time.Time) signal.Value {
	window := minWindow
	if i := len(c.done) - enough; i >= 0 {
		window = min(max(now.Sub(c.done[i].at), minWindow), maxWindow)
	} else if len(c.done) > 0 {
		window = maxWindow
	}
	watched := now.Sub(since)
	if watched < minWindow {
		return signal.Missing(Source)
	}
	window = min(window, watched)
	n := 0
	for _, d := range slices.Backward(c.done) {
		if now.Sub(d.at) > window {
			break
		}
		n++
	}
	return signal.Of(float64(n)/window.Seconds(), signal.PerSecond, Source, now)
}

// wait is the predicted wait of a query that arrives now.
func (f *Fold) wait(name string, c *cluster, now time.Time) signal.Value {
	slots, known := f.slots[name]
	ahead := c.queued + 1 // slots that have to be freed until the newcomer has one
	if known {
		free := slots - c.running
		if c.queued < free {
			return estimate(0, FreeSlot, now)
		}
		ahead -= max(free, 0)
	}
	if perSecond, ok := c.drain(now); ok {
		return estimate(float64(ahead)/perSecond*1000, Drain, now)
	}
	if mean, ok := c.service(); ok && known && slots > 0 {
		return estimate(float64(ahead)*float64(mean.Milliseconds())/float64(slots), Little, now)
	}
	return signal.Missing(Source)
}

func estimate(ms float64, by Estimator, now time.Time) signal.Value {
	return signal.Of(ms, signal.Millis, Source+"/"+string(by), now)
}

// drain is the rate at which slots were freed while there was a backlog. The time before counts for nothing: there was less to
// do then than the cluster can.
func (c *cluster) drain(now time.Time) (perSecond float64, ok bool) {
	if c.backlog.IsZero() || now.Sub(c.backlog) < minWindow {
		return 0, false
	}
	from := c.backlog
	if now.Sub(from) > maxWindow {
		from = now.Add(-maxWindow)
	}
	n := 0
	for _, d := range slices.Backward(c.done) {
		if d.at.Before(from) {
			break
		}
		n++
	}
	if n < fewest {
		return 0, false
	}
	return float64(n) / now.Sub(from).Seconds(), true
}

// service is the mean time that the newest queries held their slots.
func (c *cluster) service() (time.Duration, bool) {
	var sum time.Duration
	n := 0
	for _, d := range slices.Backward(c.done) {
		if d.known {
			sum += d.service
			n++
		}
		if n == enough {
			break
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / time.Duration(n), true
}
