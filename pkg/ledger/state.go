package ledger

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Mark is an accepted record as the fold remembers it.
type Mark struct {
	Offset  int64
	At      time.Time // broker's append time
	Epoch   int64
	Owner   string
	Payload json.RawMessage
	Trimmed bool // the payload was over the fold's limit: read it again at Offset
}

// Attempt is what the ledger says of one attempt. Claim, Submitted and End are nil as long as no such record stands.
type Attempt struct {
	Key       string
	TaskID    string
	Number    int
	Deadline  time.Time // of its Task
	Claim     *Mark
	Submitted *Mark
	End       *Mark
}

// Task is what the ledger says of one Task. Final is nil until the Task has ended.
type Task struct {
	ID       string
	Deadline time.Time
	Attempts []Attempt // in the order of their first accepted record
	Final    *Mark     // its payload is the Outcome
	FinalKey string    // the attempt whose end it is
}

type task struct {
	id       string
	deadline time.Time
	first    Anchor // where its first accepted record lies, and the lease that held there
	attempts []*attempt
	final    *Mark
	finalKey string
}

type attempt struct {
	key       string
	number    int
	task      *task
	claim     *Mark
	submitted *Mark
	end       *Mark
}

// open: somebody may be running it, and nobody has said how it ended.
func (a *attempt) open() bool { return a.claim != nil && a.end == nil && a.task.final == nil }

func (a *attempt) view() Attempt {
	return Attempt{Key: a.key, TaskID: a.task.id, Number: a.number, Deadline: a.task.deadline, Claim: a.claim, Submitted: a.submitted, End: a.end}
}

func (t *task) open() bool { return slices.ContainsFunc(t.attempts, (*attempt).open) }

func (t *task) view() Task {
	v := Task{ID: t.id, Deadline: t.deadline, Final: t.final, FinalKey: t.finalKey}
	for _, a := range t.attempts {
		v.Attempts = append(v.Attempts, a.view())
	}
	return v
}

// Epoch returns the present lease's epoch, 0 if there never was a lease.
func (f *Fold) Epoch() int64 { return f.epoch }

// Owner returns the present lease's owner.
func (f *Fold) Owner() string { return f.owner }

// Holds says whether the present lease is this one.
func (f *Fold) Holds(epoch int64, owner string) bool { return f.epoch == epoch && f.owner == owner }

// Next returns the position after the newest applied record.
func (f *Fold) Next() int64 { return f.next }

// At returns the newest append time seen, the broker's clock as far as the log tells it.
func (f *Fold) At() time.Time { return f.at }

// Lease returns the record with which owner may try to take the partition over from whoever holds it now.
func (f *Fold) Lease(partition int32, owner string) Record {
	prev := f.base
	return Record{Kind: KindLease, Epoch: f.epoch + 1, Owner: owner, Key: LeaseKey(partition), Prev: &prev}
}

// Attempt returns what is known of an attempt. ok is false if no record of it stands.
func (f *Fold) Attempt(key string) (a Attempt, ok bool) {
	if e := f.keys[key]; e != nil {
		return e.view(), true
	}
	return Attempt{}, false
}

// Task returns what is known of a Task. ok is false if no record of it stands, or if it was forgotten.
func (f *Fold) Task(id string) (t Task, ok bool) {
	if e := f.tasks[id]; e != nil {
		return e.view(), true
	}
	return Task{}, false
}

// Open returns the attempts that are claimed and not ended, of Tasks that have not ended, oldest claim first.
func (f *Fold) Open() []Attempt {
	var out []Attempt
	for _, a := range f.keys {
		if a.open() {
			out = append(out, a.view())
		}
	}
	slices.SortFunc(out, func(x, y Attempt) int { return cmp.Compare(x.Claim.Offset, y.Claim.Offset) })
	return out
}

// Waiting returns the Tasks that have not ended and have no open attempt: they wait for a next attempt, or for their deadline.
func (f *Fold) Waiting() []Task {
	var out []*task
	for _, t := range f.tasks {
		if t.final == nil && !t.open() {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(x, y *task) int { return cmp.Compare(x.first.Offset, y.first.Offset) })
	views := make([]Task, len(out))
	for i, t := range out {
		views[i] = t.view()
	}
	return views
}

// Len returns how many Tasks the fold remembers.
func (f *Fold) Len() int { return len(f.tasks) }
