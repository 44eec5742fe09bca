package faults_test

import (
	"math/rand/v2"
	"slices"
)

// fault is a class of what goes wrong.
type fault string

// The faults.
const (
	refused      fault = "connection refused"
	hang         fault = "hang after accept"
	garbage      fault = "garbage"
	closed       fault = "close"
	reset        fault = "reset"
	slow         fault = "slow bytes"
	engineKill   fault = "engine kill -9"
	engineError  fault = "engine error"
	executorKill fault = "executor kill -9"
	paused       fault = "executor paused"
	brokerOut    fault = "broker out for 1 s"
	cancelled    fault = "cancel"
	deadline     fault = "deadline"
)

var faults = []fault{refused, hang, garbage, closed, reset, slow, engineKill, engineError, executorKill, paused, brokerOut, cancelled, deadline}

// network says that a fault is one of the way to the engine.
func (f fault) network() bool {
	return slices.Contains([]fault{refused, hang, garbage, closed, reset, slow}, f)
}

// moment is how far an attempt has come.
type moment string

// The moments.
const (
	placed     moment = "before submit"
	claimed    moment = "claimed, not sent"
	sent       moment = "sent, no answer"
	queued     moment = "queued"
	running    moment = "running"
	firstRow   moment = "first row"
	delivering moment = "delivering"
	ended      moment = "just ended"
	readBack   moment = "end not read back"
	publishing moment = "before Outcome"
)

var moments = []moment{placed, claimed, queued, sent, running, firstRow, delivering, ended, readBack, publishing}

// before says that nothing has left yet.
func (m moment) before() bool { return m == placed || m == claimed || m == queued }

// over says that the engine is done with it.
func (m moment) over() bool { return m == ended || m == readBack || m == publishing }

// cell is one field of the matrix.
type cell struct {
	fault  fault
	moment moment
}

// job is a fault to be injected.
type job struct {
	cell
	number int
	write  bool
	broken int // which of the engine's errors
	coin   bool
}

// cells are the fields that exist. An engine's own error has the moments at which a statement can fail.
func cells(withKill bool) (out []cell) {
	for _, f := range faults {
		for _, m := range moments {
			if f == engineError && m != running && m != delivering || f == engineKill && !withKill {
				continue
			}
			out = append(out, cell{f, m})
		}
	}
	return out
}

// plan spreads n faults evenly over the cells, in an order that the seed gives. Few faults are spread over few cells.
func plan(all []cell, n int, r *rand.Rand) []job {
	order := slices.Clone(all)
	r.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	var out []job
	for i := range n {
		c := order[i%len(order)]
		j := job{cell: c, number: i, broken: r.IntN(1000), coin: r.IntN(2) == 1}
		j.write = (i/len(order))%2 == 1
		if n < 2*len(order) {
			j.write = r.IntN(2) == 1
		}
		if c.moment == firstRow || c.moment == delivering || c.fault == engineError {
			j.write = false // a write has no rows
		}
		out = append(out, j)
	}
	r.Shuffle(len(out), func(i, k int) { out[i], out[k] = out[k], out[i] })
	return out
}
