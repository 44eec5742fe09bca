package ledger

import (
	"encoding/json"
	"time"
)

// Action is the next thing an owner has to do for an attempt.
type Action string

// The actions. Each names the method by which the result comes back to the Driver.
const (
	ActionClaim  Action = "claim"      // write a claim: ClaimSent just before, ClaimRead with its verdict after read-back
	ActionLookUp Action = "look_up"    // ask the engine for the attempt id: LookedUp
	ActionWait   Action = "wait_guard" // wait until GuardEnds by the broker's clock: GuardPassed
	ActionSubmit Action = "submit"     // ask MaySubmit at the last moment, and submit if it says so
	ActionRun    Action = "run"        // the engine has it: follow it to its end, then write the end; EndRead
	ActionEnd    Action = "end"        // nothing may start any more: write an end; EndRead
	ActionEmit   Action = "emit"       // the end stands: publish what Ending holds, as often as this comes up
	ActionStop   Action = "stop"       // the partition is somebody else's: do nothing more, publish nothing
)

// Guard bounds the time between a claim and its submission.
type Guard struct {
	// Leave is how long after its claim was sent a submission may leave, by the owner's monotonic clock.
	Leave time.Duration
	// Settle is how long a submission that has left may take until a look-up at the engine sees it.
	Settle time.Duration
}

// DefaultGuard is the guard time of the design with a second for the way to the engine.
func DefaultGuard() Guard { return Guard{Leave: 5 * time.Second, Settle: time.Second} }

// Ends returns the moment of the broker's clock from which a look-up can be trusted, for a claim appended at a given time. The claim
// was sent before it was appended, so the owner's own guard has run out by then.
func (g Guard) Ends(claimed time.Time) time.Time { return claimed.Add(g.Leave + g.Settle) }

// Driver walks one attempt through the protocol for one owner of the partition. It is pure: it says what to do next and is told what
// came of it. One Driver serves one attempt under one lease; after a new lease, make a new one.
type Driver struct {
	key    string
	taskID string
	guard  Guard
	rules  rules

	phase   Action
	claimed time.Time     // append time of the claim found in the log
	sent    time.Duration // monotonic reading before our own claim was sent
	reason  Reason        // why the phase is end or stop
	ending  Mark
}

// rules are the three rules of the protocol. Tests switch one off to see that it is needed; nothing else can.
type rules struct {
	noGuard    bool // submit however long ago the claim was sent
	noReadBack bool // act on a claim without having read it back
	noWait     bool // trust a look-up that finds nothing before the guard has run out
}

// NewDriver starts with what the log says of the attempt. The fold must have reached the owner's own lease.
func NewDriver(f *Fold, key, taskID string, g Guard) *Driver {
	d := &Driver{key: key, taskID: taskID, guard: g, phase: ActionClaim}
	if d.settled(f) {
		return d
	}
	if a, ok := f.Attempt(key); ok && a.Claim != nil {
		d.claimed = a.Claim.At
		d.phase = ActionLookUp
	}
	return d
}

// ClaimedBy says that the claim found in the log can't be trusted to be older than t, because its time is its writer's own and not
// the broker's. The guard then runs from t.
func (d *Driver) ClaimedBy(t time.Time) {
	if t.After(d.claimed) {
		d.claimed = t
	}
}

// settled moves to emit if the log already says how the attempt, or its Task, ended.
func (d *Driver) settled(f *Fold) bool {
	if t, ok := f.Task(d.taskID); ok && t.Final != nil {
		d.phase, d.ending = ActionEmit, *t.Final
		return true
	}
	if a, ok := f.Attempt(d.key); ok && a.End != nil {
		d.phase, d.ending = ActionEmit, *a.End
		return true
	}
	return false
}

// Key returns the attempt's id.
func (d *Driver) Key() string { return d.key }

// Action returns what to do next. It stays the same until a result is reported.
func (d *Driver) Action() Action { return d.phase }

// Reason returns why the action is end or stop, as the fold said it.
func (d *Driver) Reason() Reason { return d.reason }

// GuardEnds returns the moment to wait for when the action is wait_guard.
func (d *Driver) GuardEnds() time.Time { return d.guard.Ends(d.claimed) }

// GuardPassed reports that the broker's clock has passed GuardEnds.
func (d *Driver) GuardPassed() {
	if d.phase == ActionWait {
		d.phase = ActionLookUp
	}
}

// LookedUp reports what the engine said of the attempt id. started is the broker's clock when the look-up began: that it found
// nothing means something only if the guard of the claim was over by then. A look-up that failed is not reported: ask again. If the
// engine can't say, report Unanswered.
func (d *Driver) LookedUp(found bool, started time.Time) {
	if d.phase != ActionLookUp {
		return
	}
	switch {
	case found:
		d.phase = ActionRun
	case started.Before(d.GuardEnds()) && !d.rules.noWait:
		d.phase = ActionWait
	default:
		d.phase = ActionClaim
	}
}

// Unanswered reports that nobody can say whether the engine has the attempt. Once the guard is over it has to be ended as it is
// (submit_unknown): submitting it might be the second time.
func (d *Driver) Unanswered(started time.Time) {
	switch {
	case d.phase != ActionLookUp:
	case started.Before(d.GuardEnds()):
		d.phase = ActionWait
	default:
		d.phase, d.reason = ActionEnd, ReasonUnanswered
	}
}

// ClaimSent notes the monotonic clock just before the claim is handed to the producer: the guard runs from here.
func (d *Driver) ClaimSent(mono time.Duration) {
	d.sent = mono
	if d.phase == ActionClaim && d.rules.noReadBack {
		d.phase = ActionSubmit
	}
}

// ClaimRead reports the verdict on the owner's own claim, read back from the log.
func (d *Driver) ClaimRead(v Verdict, f *Fold) {
	if d.phase != ActionClaim {
		return
	}
	switch {
	case v.Accepted:
		d.phase = ActionSubmit
	case v.Lost():
		d.phase, d.reason = ActionStop, v.Reason
	case d.settled(f):
	default: // its deadline has passed, or the record is not one that can ever stand
		d.phase, d.reason = ActionEnd, v.Reason
	}
}

// MaySubmit says whether the submission may leave now. If it says yes, the submission must leave at once, and from then on the
// engine is taken to have it. If the guard has run out, the attempt has to be claimed again: a new claim starts a new guard for
// whoever comes after, which the old one could no longer do.
func (d *Driver) MaySubmit(mono time.Duration) bool {
	if d.phase != ActionSubmit {
		return false
	}
	if mono-d.sent >= d.guard.Leave && !d.rules.noGuard {
		d.phase = ActionClaim
		return false
	}
	d.phase = ActionRun
	return true
}

// MayEnd says whether the owner may write an end now. An open claim of somebody else has to be looked up first, or the end would
// leave its query behind on the engine.
func (d *Driver) MayEnd() bool {
	switch d.phase {
	case ActionClaim, ActionSubmit, ActionRun, ActionEnd:
		return true
	default:
		return false
	}
}

// EndRead reports the verdict on the owner's own end, read back from the log. An end that came second to another one of the same
// owner (a repeat after a produce whose answer got lost) is not a loss: what the log says first is what gets published.
func (d *Driver) EndRead(v Verdict, f *Fold) {
	if v.Lost() {
		d.phase, d.reason = ActionStop, v.Reason
		return
	}
	d.settled(f)
}

// Ending returns the record whose content is to be published when the action is emit, with its payload as it stands in the log. If
// the Task has ended it is the Task's final end, else the end of this attempt.
func (d *Driver) Ending() (payload json.RawMessage, m Mark) { return d.ending.Payload, d.ending }
