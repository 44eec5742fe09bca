package board

import (
	"slices"
	"time"
)

// Summary is what a list says of a Task.
type Summary struct {
	TaskID       string
	Tenant, User string
	State        string
	SubmittedAt  *time.Time
	ChangedAt    time.Time
	// Engine and Cluster are where it is, or was last.
	Engine, Cluster string
	// Attempts counts the attempts that have been heard of.
	Attempts int
	// TotalMs and SLAHit are those of its Outcome; nil while it goes on.
	TotalMs *int64
	SLAHit  *bool
}

// List returns the Tasks that wanted accepts, the one that changed last first, limit at most. more says that there are others.
func (b *Board) List(limit int, wanted func(Summary) bool) (list []Summary, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shuffled {
		b.arrange()
	}
	for el := b.byChange.Front(); el != nil; el = el.Next() {
		s := el.Value.(*entry).summary()
		if !wanted(s) {
			continue
		}
		if len(list) == limit {
			return list, true
		}
		list = append(list, s)
	}
	return list, false
}

// arrange puts the Tasks into the order of their changes, once for all that was read out of it.
func (b *Board) arrange() {
	all := make([]*entry, 0, b.byChange.Len())
	for el := b.byChange.Front(); el != nil; el = el.Next() {
		all = append(all, el.Value.(*entry))
	}
	slices.SortStableFunc(all, func(x, y *entry) int { return y.changedAt.Compare(x.changedAt) })
	for _, e := range all {
		b.byChange.MoveToBack(e.place)
	}
	b.shuffled = false
}

func (e *entry) summary() Summary {
	s := Summary{TaskID: e.id, Tenant: e.tenant, User: e.user, State: e.state(), SubmittedAt: e.submittedAt, ChangedAt: e.changedAt}
	if a := e.last; a != nil {
		s.Engine, s.Cluster, s.Attempts = a.Engine, a.Cluster, a.Number
	}
	if d := e.decision; d != nil && d.Cluster != "" && d.Attempt > s.Attempts { // it is on its way there
		s.Engine, s.Cluster = d.Engine, d.Cluster
	}
	if o := e.outcome; o != nil {
		total, hit := o.TotalMs, o.SLAHit
		s.TotalMs, s.SLAHit, s.Attempts = &total, &hit, o.Attempts
		if o.Cluster != "" {
			s.Engine, s.Cluster = o.Engine, o.Cluster
		}
		if s.SubmittedAt == nil {
			s.SubmittedAt = &o.SubmittedAt
		}
	}
	return s
}
