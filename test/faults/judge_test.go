package faults_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pointsman/pointsman/pkg/event"
)

// expected are the ends that a fault may have, as status or status:class, and the classes that its first attempt may fail of.
type expected struct {
	ends  []string
	first []string // empty: any, or none
	clean bool     // no attempt may fail
}

func ends(e ...string) expected { return expected{ends: e} }

const (
	succeeded = "succeeded"
	unknown   = "failed:submit_unknown"
	expired   = "expired:timeout"
	withdrawn = "cancelled:cancelled_by_user"
)

// operatorKill is the class of a run that somebody stopped at the engine.
const operatorKill = "killed_by_operator"

// expect says what must become of a Task.
func (r record) expect(t *target) expected {
	if e, holds := r.resumed(); holds && t.resumes {
		return e
	}
	e := r.ideal(t.sessions)
	if (t.whole || t.resumes) && r.write && slices.Contains(e.ends, unknown) {
		e.ends = append(e.ends, succeeded) // an engine that vouches for what it ran, or that has not begun what nobody fetched
		if r.silent() {
			e.ends = append(e.ends, expired) // and it is known that it was done
		}
	}
	if t.whole {
		e.first = nil
	}
	if t.blind {
		e = r.unseen(e)
	}
	return e
}

// unseen is what may also become of a Task where nobody can be asked what runs.
func (r record) unseen(e expected) expected {
	switch {
	case (r.fault == cancelled || r.fault == deadline) && r.write && !r.moment.over(): // it left, and its end has no witness
		e.ends = append(e.ends, unknown)
	case r.fault == hang && r.moment == queued: // the one that has the slot hangs, and may run for all that is known
		e.ends, e.first = append(e.ends, expired), nil
	}
	return e
}

// resumed is what becomes of a Task whose run can be attached to again, if its connection broke while it ran.
func (r record) resumed() (e expected, holds bool) {
	switch {
	case r.moment.before(), r.moment.over():
		return expected{}, false
	case r.fault.network() && !r.silent() && r.moment == sent: // what has not arrived is known not to have run, and goes elsewhere
		return expected{ends: []string{succeeded}, first: []string{"", "cluster_down"}}, true
	case r.fault.network() && !r.silent():
		return expected{ends: []string{succeeded}, clean: true}, true
	case r.write && r.moment == running && (r.fault == executorKill || r.fault == paused): // the next owner learns how it has ended
		return ends(succeeded), true
	default:
		return expected{}, false
	}
}

func (r record) ideal(sessions bool) expected {
	switch {
	case r.fault == engineError:
		switch r.broken.class {
		case "memory_limit", "timeout", "resources": // elsewhere there is more of it
			return expected{ends: []string{succeeded}, first: []string{r.broken.class}}
		default:
			return expected{ends: []string{"failed:" + r.broken.class}, first: []string{r.broken.class}}
		}
	case r.fault == cancelled:
		if r.moment.over() {
			return ends(succeeded)
		}
		return r.stopped(withdrawn)
	case r.fault == deadline:
		if r.moment.over() || r.moment == running { // on a quick engine what runs may end before
			return r.stopped(succeeded, expired)
		}
		return r.stopped(expired)
	case r.fault == brokerOut: // whether it is slow or refuses connections
		return expected{ends: []string{succeeded}, clean: true}
	case r.fault == executorKill || r.fault == paused:
		switch {
		case !r.write, r.moment == placed, r.moment == queued, r.moment == publishing:
			return ends(succeeded)
		case r.fault == paused && r.moment == claimed && r.coin:
			return expected{ends: []string{succeeded}, clean: true}
		case r.moment == readBack:
			return ends(succeeded)
		case r.fault == paused: // it may wake up before anybody has taken over
			return ends(succeeded, unknown)
		default:
			return ends(unknown)
		}
	case r.moment.over(): // the engine is no longer needed
		return expected{ends: []string{succeeded}, clean: true}
	case r.fault == slow:
		return expected{ends: []string{succeeded}, clean: true}
	case r.moment.before() && r.silent() && !sessions: // it may go into a connection that was open before, and nobody says that it hangs
		if r.write { // if it went nowhere it expires, else nobody knows
			return ends(succeeded, expired, unknown)
		}
		return ends(succeeded, expired)
	case r.fault == engineKill && r.moment == queued && r.write: // the slot comes free as the engine dies, and the statement may leave just then
		return ends(succeeded, unknown)
	case r.moment.before() && !sessions && (r.fault == garbage || r.fault == reset || r.fault == closed):
		// Without a handshake the statement leaves with the first bytes, also into what is reset or answers nonsense.
		return expected{ends: []string{succeeded, unknown}, first: []string{"", "cluster_down", "submit_unknown"}}
	case r.moment.before() && (r.silent() || r.fault == engineKill) && !r.write: // its session may be taken for a submission that was lost
		return expected{ends: []string{succeeded}, first: []string{"", "cluster_down", "engine_start", "submit_unknown"}}
	case r.moment.before(): // nothing was sent: it goes elsewhere, or once more
		return expected{ends: []string{succeeded}, first: []string{"", "cluster_down", "engine_start"}}
	case r.write && (r.silent() || r.fault == engineKill): // or its answer was on its way before the engine died
		if r.fault == engineKill {
			return ends(succeeded, unknown)
		}
		return ends(unknown)
	case r.write:
		return expected{ends: []string{unknown}, first: []string{"", "submit_unknown"}}
	case r.silent():
		return ends(succeeded, expired)
	case r.fault == engineKill: // what is on its way may still arrive whole
		return expected{ends: []string{succeeded}, first: []string{"", "submit_unknown", "cluster_down"}}
	default:
		return expected{ends: []string{succeeded}, first: []string{"submit_unknown", "cluster_down"}}
	}
}

// stopped may be of unknown fate: a write whose end the stop met in the air.
func (r record) stopped(want ...string) expected {
	if r.write && !r.moment.before() {
		want = append(want, unknown)
	}
	return ends(want...)
}

// verdict is what is wrong with a record.
type verdict struct {
	lost, duplicate bool
	wrong           []string
}

func (v verdict) right() bool { return !v.lost && !v.duplicate && len(v.wrong) == 0 }

func end(o event.Outcome) string {
	s := string(o.Status)
	if o.Failure != nil {
		s += ":" + o.Failure.Class
	}
	return s
}

// judge holds a record against what was promised. rows are those that its write has left in the table.
func (r record) judge(rows int, e *target) (v verdict) {
	say := func(format string, args ...any) { v.wrong = append(v.wrong, fmt.Sprintf(format, args...)) }
	for a, n := range r.wire {
		if n > 1 && !(e.whole && n == 2) { // what is posted to Trino and never fetched does not start, and is posted once more
			v.duplicate = true
			say("attempt %q was submitted %d times", a, n)
		}
		if a == "" {
			say("a submission named no attempt")
		}
	}
	if len(r.wire) == 0 && len(r.outcomes) == 1 && r.outcomes[0].Status == event.Succeeded {
		say("it succeeded, and no submission was seen on the wire")
	}
	if rows > 1 {
		v.duplicate = true
		say("a write ran %d times", rows)
	}
	switch len(r.outcomes) {
	case 0:
		v.lost = true
		say("no Outcome, or its decision was not committed, within %s", r.bound)
		return v
	case 1:
	default:
		v.duplicate = true
		say("%d different Outcomes", len(r.outcomes))
	}
	o, want := r.outcomes[0], r.expect(e)
	if r.missed && r.fault != deadline {
		// The moment did not come in time: the fault may have hit any other one, so all that is left are the promises that hold always.
		want = expected{ends: []string{end(o)}}
	}
	if !slices.Contains(want.ends, end(o)) {
		say("it ended as %s, not as %s", end(o), strings.Join(want.ends, " or "))
	}
	if rows == 1 && o.Status != event.Succeeded && !strings.Contains(o.Failure.Hint, "done") {
		say("its write was done, and its Outcome does not say that it may have been: %s", o.Failure.Hint)
	}
	first := ""
	if len(r.failures) > 0 {
		first = r.failures[0]
	}
	if want.clean && first != "" || len(want.first) > 0 && !slices.Contains(want.first, first) {
		say("its first failure was %q", first)
	}
	if o.Status == event.Succeeded {
		if r.write && rows != 1 && r.fault != engineError {
			say("a write that succeeded left %d rows", rows)
		}
		if !r.write {
			if s := r.wrongAnswer(o, e); s != "" {
				say("%s", s)
			}
		}
	}
	if r.file != "" {
		say("%s", r.file)
	}
	if r.moment.before() && !r.moment.over() && r.fault == cancelled && rows > 0 {
		say("a write that was cancelled before it was sent left %d rows", rows)
	}
	return v
}

func (r record) wrongAnswer(o event.Outcome, e *target) string {
	switch {
	case o.Result == nil:
		return "a read that succeeded has no result"
	case o.Result.Truncated:
		return "its result was cut"
	case r.fault == engineError:
		return "" // each has an answer of its own
	case r.moment == firstRow || r.moment == delivering:
		if o.Result.Rows != e.largeRows {
			return fmt.Sprintf("%d rows instead of %d", o.Result.Rows, e.largeRows)
		}
	case r.moment == running || r.moment == sent:
		if string(o.Result.Inline) != e.slowAnswer {
			return fmt.Sprintf("it answered %.100s", o.Result.Inline)
		}
	default:
		if string(o.Result.Inline) != e.quickAnswer {
			return fmt.Sprintf("it answered %.100s", o.Result.Inline)
		}
	}
	return ""
}
