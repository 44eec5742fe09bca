package budget

import (
	"cmp"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
)

const (
	// grace is how long behind its deadline a Task can still be read again, or come to its end.
	grace = time.Minute
	// refusedKept is how many refusals of one session are remembered. One that is forgotten and read again is looked at anew,
	// and the executor holds to the first decision.
	refusedKept = 1024
	pruneFirst  = 32
)

// state is where a Task stands in its session's account.
type state string

// The states.
const (
	open    state = "open"
	settled state = "settled"
	refused state = "refused"
)

// entry is one Task on an account. Only the fold makes and changes entries.
type entry struct {
	Task      string           `json:"task"`
	N         int64            `json:"n"` // in the order of the log
	State     state            `json:"state"`
	Deadline  time.Time        `json:"deadline,omitzero"`
	Bytes     *int64           `json:"bytes,omitempty"`
	WallMs    int64            `json:"wallMs,omitempty"`
	Before    *Usage           `json:"before,omitempty"`
	Rejection *event.Rejection `json:"rejection,omitempty"`
}

// account is a session. What it holds depends on the session's records alone, in the order of the log and by the broker's times.
type account struct {
	SessionKey
	Usage   Usage     `json:"usage"`
	LastAt  time.Time `json:"lastAt"`
	Until   time.Time `json:"until"` // the latest deadline of an admitted Task
	N       int64     `json:"n"`
	PruneAt int       `json:"pruneAt"`
	Recent  []recent  `json:"recent,omitempty"`
	// Entries are filled in for a balance only.
	Entries []*entry `json:"entries,omitempty"`

	tasks map[string]*entry
	open  int
	base  ledger.Anchor // from here on a fold has all of it
	since time.Time     // append time of the record there
}

func newAccount(k SessionKey, here ledger.Anchor, at time.Time) *account {
	return &account{SessionKey: k, PruneAt: pruneFirst, tasks: map[string]*entry{}, base: here, since: at}
}

// over says that a session is: it has been silent for the window, and none of its Tasks can still run.
func (a *account) over(at time.Time, window time.Duration) bool {
	return at.After(a.LastAt.Add(window)) && at.After(a.Until.Add(grace))
}

func (a *account) enter(e *entry, at time.Time) {
	a.N++
	e.N = a.N
	a.tasks[e.Task] = e
	a.touch(at)
	if len(a.tasks) >= a.PruneAt {
		a.prune(at)
	}
}

func (a *account) touch(at time.Time) {
	if at.After(a.LastAt) {
		a.LastAt = at
	}
}

func (a *account) reserve(taskID string, deadline time.Time, p reserve, at time.Time) {
	a.Usage = a.Usage.reserved(p.Bytes, p.WallMs)
	a.Recent = remember(a.Recent, recent{Text: p.Text, Group: p.Group, Bytes: p.Bytes})
	if deadline.After(a.Until) {
		a.Until = deadline
	}
	a.open++
	a.enter(&entry{Task: taskID, State: open, Deadline: deadline, Bytes: p.Bytes, WallMs: p.WallMs, Before: &p.Before}, at)
}

func (a *account) settle(e *entry, p settle, at time.Time) {
	a.Usage = a.Usage.settled(e, p)
	a.open--
	e.State = settled
	a.touch(at)
}

// prune forgets Tasks that can't be read again, and refusals of which there are too many. A reservation that nobody has settled by
// then stays charged.
func (a *account) prune(at time.Time) {
	list := a.list()
	list = slices.DeleteFunc(list, func(e *entry) bool { return at.After(e.Deadline.Add(grace)) })
	turned := 0
	for _, e := range list {
		if e.State == refused {
			turned++
		}
	}
	list = slices.DeleteFunc(list, func(e *entry) bool {
		if e.State != refused || turned <= refusedKept {
			return false
		}
		turned--
		return true
	})
	a.fill(list)
	a.PruneAt = max(pruneFirst, 2*len(list))
}

// list are the entries in the order of the log.
func (a *account) list() []*entry {
	list := make([]*entry, 0, len(a.tasks))
	for _, e := range a.tasks {
		list = append(list, e)
	}
	slices.SortFunc(list, func(x, y *entry) int { return cmp.Compare(x.N, y.N) })
	return list
}

func (a *account) fill(list []*entry) {
	a.tasks, a.open = make(map[string]*entry, len(list)), 0
	for _, e := range list {
		a.tasks[e.Task] = e
		if e.State == open {
			a.open++
		}
	}
}

// balance is the account as a payload.
func (a *account) balance() account {
	b := *a
	b.Entries = a.list()
	return b
}

func (u Usage) reserved(bytes *int64, wallMs int64) Usage {
	u.Queries++
	u.WallMs += wallMs
	if bytes == nil {
		u.UnknownBytes++
	} else {
		u.Bytes += *bytes
	}
	return u
}

func (u Usage) settled(e *entry, p settle) Usage {
	if p.Void {
		u.Queries--
		u.WallMs -= e.WallMs
		if e.Bytes == nil {
			u.UnknownBytes--
		} else {
			u.Bytes -= *e.Bytes
		}
		return u
	}
	if p.Bytes != nil {
		u.Bytes += *p.Bytes
		if e.Bytes == nil {
			u.UnknownBytes--
		} else {
			u.Bytes -= *e.Bytes
		}
	}
	if p.WallMs != nil {
		u.WallMs += *p.WallMs - e.WallMs
	}
	return u
}
