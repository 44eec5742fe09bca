package budget

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
)

// Sessions are the accounts of one budget-state partition: the fold of its records, under the leases of a ledger.Fold. Two folds of
// one log hold the same, whoever made them and wherever they began, so that a new owner knows what the one before it has admitted.
// It is not safe for concurrent use.
type Sessions struct {
	window time.Duration
	all    map[SessionKey]*account
}

var _ ledger.State = (*Sessions)(nil)

// NewSessions returns a fold without records. A session is over when it was silent for the window and no Task of it can still run;
// what it asks after that begins a new account. All owners of a partition have to have the same window.
func NewSessions(window time.Duration) *Sessions {
	return &Sessions{window: window, all: map[SessionKey]*account{}}
}

// Apply folds a record in.
func (s *Sessions) Apply(r ledger.Record, m ledger.Mark, here ledger.Anchor) ledger.Verdict {
	r.Deadline, m.At = r.Deadline.UTC(), m.At.UTC()
	switch r.Kind {
	case KindReserve:
		p, ok := read[reserve](r)
		if !ok || p.Session == "" || r.TaskID == "" {
			return ledger.Refuse(ledger.ReasonMalformed)
		}
		a, v := s.ask(p.SessionKey, r.TaskID, here, m.At)
		if v.Accepted {
			a.reserve(r.TaskID, r.Deadline, p, m.At)
		}
		return v
	case KindRefuse:
		p, ok := read[refuse](r)
		if !ok || p.Session == "" || r.TaskID == "" {
			return ledger.Refuse(ledger.ReasonMalformed)
		}
		a, v := s.ask(p.SessionKey, r.TaskID, here, m.At)
		if v.Accepted {
			a.enter(&entry{Task: r.TaskID, State: refused, Deadline: r.Deadline, Rejection: &p.Rejection}, m.At)
		}
		return v
	case KindSettle:
		p, ok := read[settle](r)
		if !ok {
			return ledger.Refuse(ledger.ReasonMalformed)
		}
		return s.settle(r.TaskID, p, m.At)
	case KindBalance:
		p, ok := read[account](r)
		if !ok || p.Session == "" || slices.Contains(p.Entries, nil) {
			return ledger.Refuse(ledger.ReasonMalformed)
		}
		p.fill(p.Entries)
		p.Entries, p.base, p.since = nil, here, m.At
		s.all[p.SessionKey] = &p
		return ledger.Accept()
	case KindClose:
		p, ok := read[SessionKey](r)
		if !ok {
			return ledger.Refuse(ledger.ReasonMalformed)
		}
		delete(s.all, p)
		return ledger.Accept()
	default:
		return ledger.Refuse(ledger.ReasonUnknownKind)
	}
}

// ask finds the account that a Task asks, a new one if its session is over, unless the Task has its answer.
func (s *Sessions) ask(k SessionKey, taskID string, here ledger.Anchor, at time.Time) (*account, ledger.Verdict) {
	a := s.all[k]
	if a == nil || a.over(at, s.window) {
		a = newAccount(k, here, at)
		s.all[k] = a
	}
	if _, ok := a.tasks[taskID]; ok {
		return a, ledger.Refuse(ReasonRepeat)
	}
	return a, ledger.Accept()
}

func (s *Sessions) settle(taskID string, p settle, at time.Time) ledger.Verdict {
	a := s.all[p.SessionKey]
	if a == nil || a.over(at, s.window) {
		return ledger.Refuse(ReasonSessionOver)
	}
	switch e := a.tasks[taskID]; {
	case e == nil:
		return ledger.Refuse(ReasonUnknownTask)
	case e.State != open:
		return ledger.Refuse(ReasonRepeat)
	default:
		a.settle(e, p, at)
		return ledger.Accept()
	}
}

// Forget drops the sessions that are over.
func (s *Sessions) Forget(before time.Time) int {
	n := 0
	for k, a := range s.all {
		if a.over(before, s.window) {
			delete(s.all, k)
			n++
		}
	}
	return n
}

// Oldest is where the oldest account begins.
func (s *Sessions) Oldest() (oldest ledger.Anchor, ok bool) {
	for _, a := range s.all {
		if !ok || a.base.Offset < oldest.Offset {
			oldest, ok = a.base, true
		}
	}
	return oldest, ok
}

// Len returns how many sessions there are.
func (s *Sessions) Len() int { return len(s.all) }

// Usage returns what a session has used so far; ok is false if it has no account.
func (s *Sessions) Usage(k SessionKey) (u Usage, ok bool) {
	a, ok := s.all[k]
	if !ok {
		return Usage{}, false
	}
	return a.Usage, true
}

// Open says whether a Task is admitted and not settled.
func (s *Sessions) Open(k SessionKey, taskID string) bool {
	a := s.all[k]
	return a != nil && a.tasks[taskID] != nil && a.tasks[taskID].State == open
}

// OpenTasks are the Tasks of all sessions that are admitted and not settled, which a new owner has to look for in the Outcomes.
func (s *Sessions) OpenTasks() (tasks []Ended) {
	for k, a := range s.all {
		if a.open == 0 {
			continue
		}
		for id, e := range a.tasks {
			if e.State == open {
				tasks = append(tasks, Ended{Key: k, TaskID: id})
			}
		}
	}
	return tasks
}

// balanceMost bounds a balance, so that it fits its topic. A session that has more than that to remember does without until it has less:
// one record that is refused would keep all others from being written.
const balanceMost = 768 << 10

// balancesAtOnce bounds how long who asks for an admission waits behind balances: after a quiet hour those of all sessions may be due.
const balancesAtOnce = 200

// Upkeep returns the records that keep the log a new owner has to read short and the accounts few: a balance of each session whose
// records began before the given time, some hundred at once, and an end for the sessions beyond a number, the most silent first.
func (s *Sessions) Upkeep(before time.Time, most int) ([]ledger.Record, error) {
	list := s.sorted()
	slices.SortStableFunc(list, func(a, b *account) int { return b.LastAt.Compare(a.LastAt) })
	var out []ledger.Record
	balances := 0
	for i, a := range list {
		var r ledger.Record
		var err error
		switch {
		case i >= most:
			r, err = record(KindClose, a.SessionKey, a.SessionKey)
		case a.since.Before(before) && balances < balancesAtOnce:
			balances++
			r, err = record(KindBalance, a.SessionKey, a.balance())
		default:
			continue
		}
		switch {
		case err != nil:
			return nil, err
		case len(r.Payload) > balanceMost:
			continue
		}
		out = append(out, r)
	}
	return out, nil
}

// Snapshot is everything the fold holds, as bytes: two folds hold the same exactly if these are equal.
func (s *Sessions) Snapshot() ([]byte, error) {
	list := s.sorted()
	out := make([]account, len(list))
	for i, a := range list {
		out[i] = a.balance()
	}
	b, err := event.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("writing the accounts: %w", err)
	}
	return b, nil
}

// View is one session as people see it.
type View struct {
	SessionKey
	Usage Usage `json:"usage"`
	// Open counts the Tasks that are admitted and have not ended.
	Open   int       `json:"open"`
	LastAt time.Time `json:"lastAt"`
}

// Views are the sessions of a tenant, all or one, by name. An empty tenant means every tenant.
func (s *Sessions) Views(tenant, session string) []View {
	var out []View
	for _, a := range s.sorted() {
		if (tenant == "" || a.Tenant == tenant) && (session == "" || a.Session == session) {
			out = append(out, View{SessionKey: a.SessionKey, Usage: a.Usage, Open: a.open, LastAt: a.LastAt})
		}
	}
	return out
}

func (s *Sessions) sorted() []*account {
	list := make([]*account, 0, len(s.all))
	for _, a := range s.all {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b *account) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Session, b.Session))
	})
	return list
}
