package router

import (
	"sync"
	"time"

	"github.com/pointsman/pointsman/pkg/signal"
)

// clusters is what the router knows of the clusters now: the newest signals, and the Tasks it has sent to each since those
// were observed. Without the second, forty dashboards that arrive within one signal's age would all see the same empty queue.
type clusters struct {
	mu sync.Mutex
	// snapshot is shared with decisions and never changes: an observation makes a new one.
	snapshot signal.Snapshot
	sent     map[string][]time.Time
}

func newClusters() *clusters {
	return &clusters{snapshot: signal.Snapshot{}, sent: map[string][]time.Time{}}
}

// observe folds an observation in.
func (c *clusters) observe(o signal.Observation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.snapshot.Clone()
	next.Merge(o)
	c.snapshot = next
	if v, ok := c.snapshot[o.Cluster][signal.Queued]; ok {
		c.sent[o.Cluster] = after(c.sent[o.Cluster], v.At)
	}
}

// routed notes that a Task was sent to a cluster.
func (c *clusters) routed(cluster string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[cluster] = append(c.sent[cluster], at)
}

// maxUnseen bounds the count where nobody observes a cluster: what was sent longer ago than this has surely been seen or
// has ended.
const maxUnseen = 10 * time.Second

// view returns the signals, which are only to be read, and the counts, for one decision.
func (c *clusters) view(now time.Time) (signal.Snapshot, map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	inflight := make(map[string]int, len(c.sent))
	for cluster, sent := range c.sent {
		sent = after(sent, now.Add(-maxUnseen))
		c.sent[cluster] = sent
		if len(sent) > 0 {
			inflight[cluster] = len(sent)
		}
	}
	return c.snapshot, inflight
}

// after drops the times that are not after t; the list is in order.
func after(list []time.Time, t time.Time) []time.Time {
	i := 0
	for i < len(list) && !list[i].After(t) {
		i++
	}
	return list[i:]
}
