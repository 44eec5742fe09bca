package budget

import (
	"slices"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
)

// Batch works out what the owner of a partition writes next: the settlements and admissions of one poll, each seeing the ones before
// it. What it decides counts only when its records have been read back and stand. It holds copies, so that the fold is needed
// while it is made and not after.
type Batch struct {
	tabs    map[SessionKey]*tab
	records []ledger.Record
	err     error
}

// tab is a session as a batch sees it.
type tab struct {
	usage  Usage
	recent []recent
	tasks  map[string]entry // of those the batch is about
}

// Batch begins one. now is the broker's clock, as well as it is known. Outcomes of Tasks that are not open are left out.
func (s *Sessions) Batch(now time.Time, queries []Query, ended []Ended) *Batch {
	b := &Batch{tabs: map[SessionKey]*tab{}}
	for _, q := range queries {
		s.lookUp(b.tab(s, q.Key, now), q.Key, q.TaskID)
	}
	for _, e := range ended {
		t := b.tab(s, e.Key, now)
		s.lookUp(t, e.Key, e.TaskID)
		b.settle(t, e)
	}
	return b
}

func (b *Batch) tab(s *Sessions, k SessionKey, now time.Time) *tab {
	t := b.tabs[k]
	if t == nil {
		t = &tab{tasks: map[string]entry{}}
		// The records may get an earlier time than now: clocks drift, and the next leader's is another one. A session that were over
		// for us and not for them would be given its whole budget a second time.
		if a := s.all[k]; a != nil && !a.over(now.Add(-grace), s.window) {
			t.usage, t.recent = a.Usage, slices.Clip(a.Recent)
		}
		b.tabs[k] = t
	}
	return t
}

func (s *Sessions) lookUp(t *tab, k SessionKey, taskID string) {
	if _, ok := t.tasks[taskID]; ok {
		return
	}
	if a := s.all[k]; a != nil {
		if e := a.tasks[taskID]; e != nil {
			t.tasks[taskID] = *e
		}
	}
}

func (b *Batch) settle(t *tab, o Ended) {
	e, ok := t.tasks[o.TaskID]
	if !ok || e.State != open {
		return
	}
	p := settle{SessionKey: o.Key, Bytes: o.Bytes, WallMs: o.WallMs, Void: o.Void}
	t.usage = t.usage.settled(&e, p)
	e.State = settled
	t.tasks[o.TaskID] = e
	b.write(KindSettle, o.Key, o.TaskID, time.Time{}, p)
}

// Account is what the decision of a Task may know, after what the batch has done so far.
func (b *Batch) Account(q Query) Account {
	t := b.tabs[q.Key]
	if e, ok := t.tasks[q.TaskID]; ok {
		a := Account{Usage: t.usage, Admitted: e.State != refused, Refused: e.Rejection}
		if e.Before != nil {
			a.Usage = *e.Before
		}
		return a
	}
	return Account{Usage: t.usage, Repeats: repeats(t.recent, q.Text), Growing: growing(t.recent, q.Group, q.Bytes)}
}

// Admit reserves for a Task, unless it has its answer already.
func (b *Batch) Admit(q Query) {
	t := b.tabs[q.Key]
	if _, ok := t.tasks[q.TaskID]; ok {
		return
	}
	before := t.usage
	t.usage = t.usage.reserved(q.Bytes, q.WallMs)
	t.recent = append(t.recent, recent{Text: q.Text, Group: q.Group, Bytes: q.Bytes})
	t.tasks[q.TaskID] = entry{Task: q.TaskID, State: open, Deadline: q.Deadline, Bytes: q.Bytes, WallMs: q.WallMs, Before: &before}
	b.write(KindReserve, q.Key, q.TaskID, q.Deadline, reserve{
		SessionKey: q.Key, Bytes: q.Bytes, WallMs: q.WallMs, Text: q.Text, Group: q.Group, Before: before,
	})
}

// Refuse turns a Task down, unless it has its answer already.
func (b *Batch) Refuse(q Query, r event.Rejection) {
	t := b.tabs[q.Key]
	if _, ok := t.tasks[q.TaskID]; ok {
		return
	}
	r = short(r)
	t.tasks[q.TaskID] = entry{Task: q.TaskID, State: refused, Deadline: q.Deadline, Rejection: &r}
	b.write(KindRefuse, q.Key, q.TaskID, q.Deadline, refuse{SessionKey: q.Key, Rejection: r})
}

// textMost bounds an answer's texts in the ledger: an account remembers a thousand answers.
const textMost = 2000

func short(r event.Rejection) event.Rejection {
	for _, text := range []*string{&r.Message, &r.Suggestion} {
		if len(*text) > textMost {
			*text = strings.ToValidUTF8((*text)[:textMost], "") + "…"
		}
	}
	return r
}

func (b *Batch) write(kind ledger.Kind, k SessionKey, taskID string, deadline time.Time, payload any) {
	r, err := record(kind, k, payload)
	if err != nil {
		b.err = err
		return
	}
	r.TaskID, r.Deadline = taskID, deadline
	b.records = append(b.records, r)
}

// Records are what has to be written and read back before any decision of the batch is published. There may be none.
func (b *Batch) Records() ([]ledger.Record, error) { return b.records, b.err }
