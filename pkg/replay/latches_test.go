package replay_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/replay"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
)

const spilling = `
engines:
  small: {kind: clickhouse, slots: 4, bytes_per_second: 100 MB, cost_per_second: 1}
  large: {kind: clickhouse, slots: 2, bytes_per_second: 60 MB, cost_per_second: 2}
latches:
  spill: {watch: small_queue_wait_ms, enter_gte: 5000, leave_lte: 1000, leave_hold_seconds: 3}
rules:
  - {name: spilled, when: {spill: true}, route: large}
  - {name: default, route: small}
`

func wait(ms float64) func(*route.Input) {
	return func(in *route.Input) {
		in.Signals["small"][signal.EstWaitMs] = signal.Of(ms, signal.Millis, "test", in.Now)
	}
}

// queue is a queue that grows and empties, as the signals of inputs a second apart show it.
var queue = []float64{0, 2000, 6000, 3000, 800, 900, 700, 600, 500, 2000}

// spilled is what a latch makes of it.
var spilled = []bool{false, false, true, true, true, true, true, false, false, false}

func TestLatchesAreFoldedAgainForAPolicyThatHasOthers(t *testing.T) {
	p, q := load(t, today), load(t, spilling)
	l := replay.NewLatches(q)
	var inputs []route.Input
	for i, ms := range queue {
		inputs = append(inputs, input(i, wait(ms)))
	}
	for i := range inputs { // partitions are read side by side: not in the order of time
		l.Note(inputs[len(inputs)-1-i])
	}
	o := options(p, q)
	o.Latches, o.Samples = []*replay.Latches{l}, 20
	var have []bool
	for _, in := range inputs {
		rep := run(t, p, o, in)
		have = append(have, slices.ContainsFunc(rep.Places, func(p replay.Place) bool { return p.Name == "large" && p.After == 1 }))
	}
	require.Equal(t, spilled, have)
}

// TestLatchesOfTheRecordAreKept: where both policies declare a latch alike, its state is the recorded one, which has seen more than
// the inputs show.
func TestLatchesOfTheRecordAreKept(t *testing.T) {
	p, q := load(t, spilling), load(t, spilling+"# another text\n")
	in := input(1, wait(0), func(in *route.Input) {
		in.Latches = map[string]policy.Latch{"spill": {Known: true, On: true, Since: in.Now, At: in.Now}}
	})
	l := replay.NewLatches(q)
	l.Note(in)
	o := options(p, q)
	o.Latches = []*replay.Latches{l}
	rep := run(t, p, o, in)
	require.Zero(t, rep.Changed)
	require.Equal(t, "large", rep.Places[0].Name)

	changed := load(t, strings.Replace(spilling, "leave_hold_seconds: 3", "leave_hold_seconds: 0", 1))
	l = replay.NewLatches(changed)
	l.Note(in)
	o = options(p, changed)
	o.Latches = []*replay.Latches{l}
	rep = run(t, p, o, in)
	require.Equal(t, 1, rep.Changed, "declared otherwise, it is folded again: nothing waits")
	require.Contains(t, rep.Samples[0].Why, `In the new policy rule "spilled" does not match: wants spill is true, but it is false.`)
	require.Nil(t, replay.NewLatches(load(t, today)))
	require.Nil(t, replay.NewLatches(nil))
}
