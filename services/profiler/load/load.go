// Package load folds attempts into the load of each cluster: what waits, what runs, how fast it drains, and how long a query
// that arrives now would wait.
//
// It is pure: events and a clock's readings in, observations out, so that a replay of the topic gives the same numbers. Reading
// the topic and publishing the signals is the profiler's.
package load

import (
	"maps"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Source is the name under which the fold reports.
const Source = "attempts"

const (
	// minWindow and maxWindow bound the time over which a rate is taken: as long as it takes to see enough completions.
	minWindow = 30 * time.Second
	maxWindow = 5 * time.Minute
	enough    = 20
	// fewest is how many completions a drain rate needs.
	fewest = 5
	// forgetEnded is how long an ended attempt is remembered, so that a repeat of its past does not bring it back; forgetOpen how
	// long one may stay without a change before it is taken for lost.
	forgetEnded = 10 * time.Minute
	forgetOpen  = 24 * time.Hour
)

// Fold is the load of all clusters, as far as the attempts seen tell it.
type Fold struct {
	slots    map[string]int
	clusters map[string]*cluster
	open     map[string]*open
	ended    map[string]time.Time
	since    time.Time // of the first event or observation
	pruned   time.Time
}

// open is an attempt that has not ended.
type open struct {
	cluster string
	seq     int
	holds   bool      // has a slot
	queued  time.Time // since when it waits
	began   time.Time // since when it has its slot; zero while it waits
	at      time.Time // of its last change
}

type cluster struct {
	queued, running int
	done            []completion // oldest first, no older than maxWindow but for the newest few
	// backlog is since when somebody has waited without a break; zero when nobody does. While a slot changes hands it is free for
	// a moment, so that free slots don't end it.
	backlog time.Time
}

type completion struct {
	at      time.Time
	service time.Duration
	known   bool // the service time is
}

// New makes an empty fold. slots says how many queries each cluster runs at once; a cluster that is not in it has no known number.
func New(slots map[string]int) *Fold {
	f := &Fold{slots: maps.Clone(slots), clusters: map[string]*cluster{}, open: map[string]*open{}, ended: map[string]time.Time{}}
	for name := range slots {
		f.clusters[name] = &cluster{}
	}
	return f
}

// Know adds a cluster that nothing has been seen of yet: it is idle, which is worth saying.
func (f *Fold) Know(name string) { f.of(name) }

// Clusters are the names of all clusters that are configured or have been seen, in order.
func (f *Fold) Clusters() []string { return slices.Sorted(maps.Keys(f.clusters)) }

// Apply takes one change of an attempt in. The first record of each change counts; whatever was seen already, or belongs before what
// was seen, changes nothing.
func (f *Fold) Apply(a event.Attempt) {
	if a.Cluster == "" || a.AttemptID == "" {
		return
	}
	at := a.At.UTC()
	if f.since.IsZero() || at.Before(f.since) {
		f.since = at
	}
	if _, over := f.ended[a.AttemptID]; over {
		return
	}
	o := f.open[a.AttemptID]
	if o != nil && a.Seq <= o.seq {
		return
	}
	if o != nil && o.cluster != a.Cluster { // an attempt stays where it is; a newer version may think otherwise
		f.leave(o)
		o = nil
	}
	state := attempt.State(a.State)
	if state.Terminal() {
		f.end(a.AttemptID, a.Cluster, o, at)
		return
	}
	if o == nil {
		o = &open{cluster: a.Cluster, queued: at}
		f.open[a.AttemptID] = o
		f.of(a.Cluster).queued++
	}
	o.seq, o.at = a.Seq, at
	if waits := state == attempt.AwaitingSlot || state == attempt.AwaitingCapacity; !waits && !o.holds {
		o.holds, o.began = true, at
		c := f.of(o.cluster)
		c.queued--
		c.running++
	}
	f.mark(o.cluster, at)
}

func (f *Fold) of(name string) *cluster {
	c := f.clusters[name]
	if c == nil {
		c = &cluster{}
		f.clusters[name] = c
	}
	return c
}

func (f *Fold) leave(o *open) {
	c := f.of(o.cluster)
	if o.holds {
		c.running--
	} else {
		c.queued--
	}
}

// end takes an attempt out. One that had a slot has freed it: that is a completion, however it ended.
func (f *Fold) end(id, name string, o *open, at time.Time) {
	f.ended[id] = at
	if o == nil {
		// Its beginning was not seen: it lies before what is read. It did free a slot then, of unknown length.
		f.of(name).complete(completion{at: at})
		return
	}
	delete(f.open, id)
	f.leave(o)
	if o.holds {
		f.of(name).complete(completion{at: at, service: max(0, at.Sub(o.began)), known: true})
	}
	f.mark(name, at)
}

func (c *cluster) complete(done completion) {
	i := len(c.done)
	for i > 0 && c.done[i-1].at.After(done.at) {
		i--
	}
	c.done = slices.Insert(c.done, i, done)
	if len(c.done) > 4*enough {
		old := c.done[len(c.done)-1].at.Add(-maxWindow)
		for len(c.done) > 2*enough && c.done[0].at.Before(old) {
			c.done = c.done[1:]
		}
	}
}

// mark notes whether somebody waits since now, or nobody any more.
func (f *Fold) mark(name string, at time.Time) {
	c := f.of(name)
	switch {
	case c.queued == 0:
		c.backlog = time.Time{}
	case c.backlog.IsZero():
		c.backlog = at
	}
}

// Observe reports a cluster's load at a moment.
func (f *Fold) Observe(name string, now time.Time) signal.Observation {
	now = now.UTC()
	if f.since.IsZero() {
		f.since = now
	}
	f.prune(now)
	c := f.of(name)
	o := signal.Observation{Cluster: name, Source: Source, At: now, Values: map[signal.Name]signal.Value{
		signal.Queued:         signal.Of(float64(c.queued), signal.Count, Source, now),
		signal.Running:        signal.Of(float64(c.running), signal.Count, Source, now),
		signal.Slots:          signal.Missing(Source),
		signal.OldestQueuedMs: f.oldest(name, now),
		signal.DonePerSecond:  c.rate(f.since, now),
		signal.EstWaitMs:      f.wait(name, c, now),
	}}
	if n, ok := f.slots[name]; ok {
		o.Values[signal.Slots] = signal.Of(float64(n), signal.Count, Source, now)
	}
	return o
}

// oldest is the age of the query that has waited longest; nobody waiting has no age.
func (f *Fold) oldest(name string, now time.Time) signal.Value {
	var first time.Time
	for _, o := range f.open {
		if o.cluster == name && !o.holds && (first.IsZero() || o.queued.Before(first)) {
			first = o.queued
		}
	}
	if first.IsZero() {
		return signal.Missing(Source)
	}
	return signal.Of(float64(max(0, now.Sub(first)).Milliseconds()), signal.Millis, Source, now)
}

func (f *Fold) prune(now time.Time) {
	if now.Sub(f.pruned) < time.Minute {
		return
	}
	f.pruned = now
	for id, at := range f.ended {
		if now.Sub(at) > forgetEnded {
			delete(f.ended, id)
		}
	}
	for id, o := range f.open {
		if now.Sub(o.at) > forgetOpen {
			delete(f.open, id)
			f.leave(o)
			f.mark(o.cluster, now)
		}
	}
}
