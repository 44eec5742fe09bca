package ledger

import (
	"time"
)

// Fold is the state of one ledger partition up to a position. It is not safe for concurrent use.
//
// The rule is the one of the checked model: a lease stands if its epoch is the present epoch plus one; any other record counts only
// if its epoch and its owner are the present ones; a claim stands unless its attempt has ended; the end of a claimed attempt stands
// once. Three things are added to the model, none of which can make a second submission or a second Outcome:
//
//   - An end with Final set ends the Task: no claim and no end of any of its attempts stands after it. This only refuses more.
//   - The end of an attempt that was never claimed stands too (a rejection, a cancel before the start, an expiry). Submitting needs
//     an accepted claim. There is none before this end, or the attempt would be claimed, and none after it, because an ended attempt
//     can't be claimed; a claim that is on its way while the end is written comes behind it in the log and is refused. So such an
//     attempt is never submitted, and whether its end is final obeys the rule above. A Task can always end this way, so nothing gets
//     stuck.
//   - A claim that the broker appended after its Task's deadline is refused. That lets a fold forget an ended Task at its deadline
//     and still give the same verdict on a late claim as a fold that remembers it. (Ends are not refused: an overrunning attempt
//     ends after its deadline. Whoever ends a forgotten Task must look for an earlier end in the log first.)
type Fold struct {
	epoch    int64
	owner    string
	proven   bool // epoch and owner are certain, false only after an inferred start
	inferred bool

	next  int64     // the position after the newest applied record
	at    time.Time // the newest append time seen
	base  Anchor    // the newest position known to be a sound start: the start itself, or the present lease
	tasks map[string]*task
	keys  map[string]*attempt

	payloadLimit int
	state        State
}

// State is what a fold keeps besides attempts: records of further kinds, such as the reservations of budgets. The fold asks it
// only about records whose lease stands, so that it shares all rules about leases and has none of its own.
type State interface {
	// Apply folds a record in. here is the position from which a fold would read this record again.
	Apply(r Record, m Mark, here Anchor) Verdict
	// Forget drops what no record behind the given moment of the broker's clock can depend on, and returns how many.
	Forget(before time.Time) int
	// Oldest returns the oldest position that a new fold must start from to hold the same state. ok is false if there is none.
	Oldest() (a Anchor, ok bool)
}

// WithState makes the fold hand records of kinds that are not an attempt's to a state.
func WithState(s State) Option { return func(f *Fold) { f.state = s } }

// Option changes how a Fold keeps its state.
type Option func(*Fold)

// WithPayloadLimit makes the fold keep payloads only up to n bytes. Of longer ones it keeps the offset and sets Mark.Trimmed, since
// an Outcome may carry a result of a megabyte and a fold remembers every Task until its deadline.
func WithPayloadLimit(n int) Option { return func(f *Fold) { f.payloadLimit = n } }

// NewFold returns a fold that starts at an anchor. The zero Anchor is the start of a log that has lost nothing.
func NewFold(a Anchor, opts ...Option) *Fold {
	f := &Fold{
		epoch: a.Epoch, owner: a.Owner, proven: !a.Inferred, inferred: a.Inferred,
		next: a.Offset, base: a,
		tasks: map[string]*task{}, keys: map[string]*attempt{},
		payloadLimit: -1,
	}
	for _, o := range opts {
		o(f)
	}
	return f
}

// Apply folds one record in. at is the broker's append time.
func (f *Fold) Apply(offset int64, at time.Time, r Record) Verdict {
	if offset < f.next {
		return refuse(ReasonOutOfOrder)
	}
	f.pass(offset, at)
	if r.validate() != nil {
		return refuse(ReasonMalformed)
	}
	if r.Kind == KindLease {
		return f.lease(offset, r)
	}
	if f.inferred {
		f.infer(offset, r)
	}
	switch {
	case r.Epoch < f.epoch:
		return refuse(ReasonStaleEpoch)
	case r.Epoch > f.epoch:
		return refuse(ReasonEpochGap)
	case r.Owner != f.owner:
		return refuse(ReasonNotOwner)
	}
	m := Mark{Offset: offset, At: at, Epoch: r.Epoch, Owner: r.Owner, Payload: r.Payload}
	if f.payloadLimit >= 0 && len(r.Payload) > f.payloadLimit {
		m.Payload, m.Trimmed = nil, true
	}
	switch r.Kind {
	case KindClaim:
		return f.claim(r, m)
	case KindSubmitted:
		return f.submitted(r, m)
	case KindEnd:
		return f.end(r, m)
	case KindLease: // see above
	}
	if f.state != nil {
		return f.state.Apply(r, m, f.here(offset))
	}
	return refuse(ReasonUnknownKind)
}

// here is the position of a record under the present lease.
func (f *Fold) here(offset int64) Anchor {
	return Anchor{Offset: offset, Epoch: f.epoch, Owner: f.owner, Inferred: f.inferred && !f.proven}
}

// Skip steps over a value that is not a record, so that one bad write can't stop a partition.
func (f *Fold) Skip(offset int64, at time.Time) Verdict {
	if offset < f.next {
		return refuse(ReasonOutOfOrder)
	}
	f.pass(offset, at)
	return refuse(ReasonUnread)
}

func (f *Fold) pass(offset int64, at time.Time) {
	f.next = offset + 1
	if at.After(f.at) {
		f.at = at
	}
}

func (f *Fold) lease(offset int64, r Record) Verdict {
	gap := r.Epoch > f.epoch+1
	if gap && f.inferred {
		gap = false // nobody writes a lease without having seen the one before it, so the missing ones stood before our start
	}
	switch {
	case r.Epoch <= f.epoch:
		return refuse(ReasonEpochTaken)
	case gap:
		return refuse(ReasonEpochGap)
	}
	f.base = Anchor{Offset: offset, Epoch: r.Epoch - 1, Owner: f.owner, Inferred: f.inferred && !f.proven}
	f.epoch, f.owner = r.Epoch, r.Owner
	f.proven = !f.inferred
	return accept()
}

// infer corrects a start that retention has cut loose. Only a holder of an epoch writes claims and ends under it, and only after it
// has read its lease back; so such a record proves who holds at least that epoch, unless an owner is proven already.
func (f *Fold) infer(offset int64, r Record) {
	if r.Epoch > f.epoch || (r.Epoch == f.epoch && !f.proven) {
		if r.Epoch > f.epoch || r.Owner != f.owner {
			f.base = Anchor{Offset: offset, Epoch: r.Epoch, Owner: r.Owner, Inferred: true}
		}
		f.epoch, f.owner, f.proven = r.Epoch, r.Owner, true
	}
}

func (f *Fold) claim(r Record, m Mark) Verdict {
	if v := f.standing(r); !v.Accepted {
		return v
	}
	if !m.At.Before(r.Deadline) {
		return refuse(ReasonExpired)
	}
	f.attempt(r, m).claim = &m
	return accept()
}

func (f *Fold) submitted(r Record, m Mark) Verdict {
	if v := f.standing(r); !v.Accepted {
		return v
	}
	a := f.keys[r.Key]
	if a == nil || a.claim == nil {
		return refuse(ReasonNotClaimed)
	}
	a.submitted = &m
	return accept()
}

func (f *Fold) end(r Record, m Mark) Verdict {
	if v := f.standing(r); !v.Accepted {
		return v
	}
	a := f.attempt(r, m)
	a.end = &m
	if r.Final {
		a.task.final, a.task.finalKey = &m, r.Key
	}
	return accept()
}

// standing says whether an attempt can still change.
func (f *Fold) standing(r Record) Verdict {
	if a := f.keys[r.Key]; a != nil && a.task.id != r.TaskID {
		return refuse(ReasonMalformed)
	}
	if t := f.tasks[r.TaskID]; t != nil && t.final != nil {
		return refuse(ReasonTaskEnded)
	}
	if a := f.keys[r.Key]; a != nil && a.end != nil {
		return refuse(ReasonAttemptEnded)
	}
	return accept()
}

// attempt finds or makes the entry of an accepted claim or end, and notes where the Task's first record lies.
func (f *Fold) attempt(r Record, m Mark) *attempt {
	t := f.tasks[r.TaskID]
	if t == nil {
		t = &task{id: r.TaskID, first: f.here(m.Offset)}
		f.tasks[r.TaskID] = t
	}
	if r.Deadline.After(t.deadline) {
		t.deadline = r.Deadline
	}
	a := f.keys[r.Key]
	if a == nil {
		a = &attempt{key: r.Key, number: r.Attempt, task: t}
		f.keys[r.Key] = a
		t.attempts = append(t.attempts, a)
	}
	return a
}
