package faults_test

import (
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/executor"
)

// record is what became of a fault.
type record struct {
	job
	id       string
	missed   bool // the moment did not come: the fault hit another one
	outcomes []event.Outcome
	failures []string       // of its attempts, in order
	wire     map[string]int // submissions by attempt
	file     string         // what is wrong with its result's file
	took     time.Duration
	bound    time.Duration
	broken   *broken
}

const (
	patient   = 20 * time.Second // a Task's time
	hasty     = 5 * time.Second  // of one whose answer may hang until it is over
	shortly   = 1500 * time.Millisecond
	holding   = 400 * time.Millisecond // how long a fault of the network lasts
	arriving  = 6 * time.Second        // until a moment must have come
	afterward = 6 * time.Second        // how long past its deadline a Task may end at the latest
)

// together lets all lanes wait for one event, the death of their engine.
type together interface{ meet(l *lane) }

// inject runs one Task to a moment, lets the fault happen there, and waits for the end.
func (l *lane) inject(j job, kill together) record {
	r := record{job: j, id: fmt.Sprintf("f%06d", j.number)}
	id := r.id + "/1"
	sql, resource := l.statement(&r)
	left := patient
	switch {
	case j.fault == deadline && j.moment == queued:
		left = shortly / 2 // while another one has the slot
	case j.fault == deadline:
		left = shortly
	case j.fault == engineKill:
		left += l.engine.restarts
	case j.silent() && !j.moment.over() && !(j.moment.before() && l.engine.sessions):
		left = hasty
	}
	r.bound = left + afterward
	p, began := l.p, time.Now()
	d := l.task(r.id, sql, resource, j.write, left)
	arrive, depart := l.moment(&r, p, d)
	l.decide(d)
	r.missed = !arrive()
	l.strike(&r, p, id, d, depart, kill)
	depart()
	done := await(r.bound-time.Since(began), func() bool { return len(l.outcomesOf(r.id)) > 0 })
	r.took = time.Since(began)
	settles := afterward
	if j.moment == queued {
		settles += patient // the one that had the slot has to end, too, and may be made again
	}
	if done && !l.idle(settles) {
		l.log.Warn("decisions of a Task that has ended are not committed", "task", r.id)
		done = false
	}
	l.p.main.settle()
	r.outcomes, r.failures, r.wire = l.outcomesOf(r.id), l.failures(r.id), l.wire.of(r.id)
	if !done {
		r.outcomes = nil
	}
	if len(r.outcomes) == 1 {
		r.file = l.wrongFile(r)
	}
	return r
}

// silent says that whoever waits for an answer may wait for ever: nothing comes, or less than was announced. In the middle of rows
// any garbage may be read as the length of the next one.
func (j job) silent() bool {
	return j.fault == hang || j.fault == garbage && (!j.coin || j.moment == firstRow || j.moment == delivering)
}

func (j job) noise() []byte {
	if j.coin {
		return zeros
	}
	return noise
}

// statement is what the Task asks.
func (l *lane) statement(r *record) (sql, resource string) {
	e := l.engine
	mark := " /* mark_" + r.id + "_ */"
	switch {
	case r.fault == engineError:
		b := e.pick(r.job.broken, r.moment)
		r.broken = &b
		return b.sql + mark, b.resource
	case r.write && (r.moment == running || r.moment == sent):
		return fmt.Sprintf(e.slowWrite, r.number) + mark, ""
	case r.write:
		return fmt.Sprintf(e.write, r.number) + mark, ""
	case r.moment == firstRow || r.moment == delivering:
		return e.large + mark, ""
	case r.moment == running || r.moment == sent:
		return e.slow + mark, ""
	default:
		return e.quick + mark, ""
	}
}

// moment gives what waits until the Task is at its moment and what lets it go on from there.
func (l *lane) moment(r *record, p *proc, d event.RouteDecision) (arrive func() bool, depart func()) {
	id := d.DecisionID
	at := func(step executor.Step) (func() bool, func()) {
		reached, release := p.stopAt(step, id)
		return func() bool { return came(reached) }, release
	}
	open := func() { p.main.limit(-1) }
	switch r.moment {
	case placed:
		return at(executor.StepPlaced)
	case claimed:
		return at(executor.StepClaimed)
	case queued:
		blocker := "b" + r.id[1:]
		if l.engine.queue == "" {
			l.decide(l.task(blocker, l.engine.slow, "", false, max(time.Until(d.Deadline), shortly)))
			await(arriving, func() bool { return l.was(blocker+"/1", "submitting") })
		}
		return func() bool {
			ok := await(arriving, func() bool { return l.was(id, "awaiting_slot") })
			time.Sleep(20 * time.Millisecond)
			return ok
		}, func() {}
	case sent:
		hit, _ := p.main.hold(r.id, false, 0)
		return func() bool { return came(hit) }, open
	case running:
		if !l.engine.whole && r.fault != engineError {
			p.main.hold(r.id, l.engine.tickets && !r.write, 0)
		}
		return func() bool { return await(arriving, func() bool { return l.was(id, "running") }) }, open
	case firstRow:
		reached, release := p.stopAt(executor.StepSubmitted, id)
		p.main.hold(r.id, false, l.engine.first)
		return func() bool { return came(reached) }, func() {
			release()
			time.Sleep(20 * time.Millisecond)
			open()
		}
	case delivering:
		credit := l.engine.first + l.engine.more
		if r.fault == engineError {
			credit = -1
		}
		_, spent := p.main.hold(r.id, false, credit)
		return func() bool {
			return r.fault == engineError || came(spent) && await(arriving, func() bool { return l.was(id, "delivering") })
		}, open
	case ended:
		return at(executor.StepEnding)
	case readBack:
		reached, release := p.stopAt(executor.StepEnding, id)
		return func() bool {
			ok := came(reached)
			p.network.set(false, false, true) // it is written, and nobody says so
			release()
			time.Sleep(60 * time.Millisecond)
			return ok
		}, func() { p.network.thaw() }
	default: // publishing
		return at(executor.StepEnded)
	}
}

func came(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(arriving):
		return false
	}
}

// strike lets the fault happen.
func (l *lane) strike(r *record, p *proc, id string, d event.RouteDecision, depart func(), kill together) {
	switch {
	case r.fault.network():
		p.main.strike(r.fault, r.noise())
		time.Sleep(30 * time.Millisecond) // a client that writes at once into what is just being closed can't know that nobody reads it
		depart()
		time.Sleep(holding)
		p.main.heal()
	case r.fault == engineKill:
		kill.meet(l)
	case r.fault == engineError:
		if r.broken.class == operatorKill {
			l.engine.stop(l.t, id)
		}
	case r.fault == executorKill:
		p.crash()
		depart()
		l.retire(p)
		l.p = l.start()
	case r.fault == paused && r.moment == claimed && r.coin: // past its guard, and nobody takes over
		time.Sleep(guardLeave + 100*time.Millisecond)
	case r.fault == paused:
		p.network.set(false, true, false)
		p.main.freeze(true)
		p.spare.freeze(true)
		l.p = l.start()
		await(6*time.Second, func() bool { return len(l.outcomesOf(r.id)) > 0 })
		p.network.set(false, false, false)
		p.main.freeze(false)
		p.spare.freeze(false)
		depart()
		time.Sleep(300 * time.Millisecond) // what it still does, it does now
		l.retire(p)
	case r.fault == brokerOut:
		p.network.set(r.coin, !r.coin, false)
		depart()
		time.Sleep(time.Second)
		p.network.set(false, false, false)
	case r.fault == cancelled:
		l.decide(cancelOf(r.id))
		time.Sleep(80 * time.Millisecond)
	case r.fault == deadline:
		time.Sleep(time.Until(d.Deadline) + 400*time.Millisecond)
		if !r.moment.before() && !r.moment.over() { // on a crowded machine the executor's idea of the broker's clock lags behind
			await(2*time.Second, func() bool { return len(l.outcomesOf(r.id)) > 0 })
		}
	}
}
