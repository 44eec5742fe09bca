package policy_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/signal"
)

// loop is a closed loop on a clock of its own: queries arrive at the interactive engine, the rules send some of them away,
// what stays makes the queue, and the queue is what the rules see.
type loop struct {
	policy *policy.Policy
	book   *policy.LatchBook
	rand   *rand.Rand
	noise  float64
	// capacity is how many queries a second the engine does, arrivals how many come at a time. The share of spillable is
	// that of dashboards, the only ones that the spill rule takes.
	capacity  float64
	arrivals  func(second int) float64
	spillable float64

	queue float64
	flips []time.Time
	// spilled counts what was sent away second by second, waits are the true waits.
	spilled []float64
	waits   []float64
}

// step is one second: a signal is published, queries are decided one by one, the engine works.
func (l *loop) step(t *testing.T, second int) {
	now := start.Add(time.Duration(second) * time.Second)
	noisy := func(x float64) float64 { return math.Max(0, x*(1+l.noise*(2*l.rand.Float64()-1))) }
	wait := l.queue / l.capacity * 1000
	l.waits = append(l.waits, wait)
	measured := noisy(wait)
	l.book.Observe(seen(now, map[signal.Name]float64{signal.EstWaitMs: measured}))

	spilled, stayed := 0.0, 0.0
	for range int(math.Round(noisy(l.arrivals(second)))) {
		tag := "agent"
		if l.rand.Float64() < l.spillable {
			tag = "interactive"
		}
		f := factsOf(t, l.policy, known{"client_tag": ws(tag), "estimated_bytes": n(200e9), "interactive_queue_wait_ms": n(measured)})
		states := l.book.States()
		for i := range l.policy.Latches {
			f.SetLatch(i, l.policy.Latches[i].At(states[l.policy.Latches[i].Name], now))
		}
		if m := l.policy.Match(f); m.Rule.Pool == "batch" {
			spilled++
		} else {
			stayed++
		}
	}
	was := len(l.spilled) > 0 && l.spilled[len(l.spilled)-1] > 0
	if is := spilled > 0; is != was && second > 0 {
		l.flips = append(l.flips, now)
	}
	l.spilled = append(l.spilled, spilled)
	l.queue = math.Max(0, l.queue+stayed-l.capacity)
}

func run(t *testing.T, text string, seed uint64, arrivals func(int) float64) *loop {
	p := loadText(t, text)
	l := &loop{
		policy: p, book: policy.NewLatchBook(p), rand: rand.New(rand.NewPCG(seed, 5)), noise: 0.1, capacity: 20, spillable: 0.8, arrivals: arrivals,
	}
	for s := range 30 * 60 {
		l.step(t, s)
	}
	return l
}

// mostIn is the largest number of flips in any window of that length.
func (l *loop) mostIn(window time.Duration) int {
	most := 0
	for i, first := range l.flips {
		n := 0
		for _, f := range l.flips[i:] {
			if f.Sub(first) < window {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// spillPolicy is the article's rule on a latch: it spills when the wait has been over two seconds for 10 s, and stops when
// it has been under half a second for 60 s.
const spillPolicy = `
engines: {interactive: {kind: dremio}, batch: {kind: spark}}
latches:
  saturated: {watch: interactive_queue_wait_ms, enter_gte: 2000, enter_hold_seconds: 10, leave_lt: 500, leave_hold_seconds: 60}
rules:
  - {name: spill, when: {saturated: true, client_tag: [interactive], estimated_bytes_lt: 500 GB}, route: batch, notify_client: true}
  - {name: default, route: interactive}
`

// articleRule is the rule as the article has it, on the wait itself.
var articleRule = strings.Replace(spillPolicy, "when: {saturated: true,", "when: {interactive_queue_wait_ms_gte: 2000,", 1)

// overload is twice the engine's capacity from minute 5 to minute 15, and half of it before and after.
func overload(second int) float64 {
	if second >= 5*60 && second < 15*60 {
		return 40
	}
	return 10
}

// TestSpillStartsAndStops: thirty minutes with one overload. Spilling starts soon after the queue is long and stops after it
// has been short for a while: "batch spill that never comes back" does come back.
func TestSpillStartsAndStops(t *testing.T) {
	l := run(t, spillPolicy, 1, func(second int) float64 {
		if second >= 5*60 && second < 15*60 {
			return 200 // so many that what may not spill fills the engine twice over
		}
		return 10
	})
	require.Len(t, l.flips, 2, "once on, once off: %v", l.flips)
	on, off := l.flips[0].Sub(start), l.flips[1].Sub(start)
	require.Greater(t, on, 5*time.Minute+10*time.Second, "not before it has held")
	require.Less(t, on, 5*time.Minute+30*time.Second)
	require.Greater(t, off, 15*time.Minute, "the overload lasts, and the queue with it")
	require.Less(t, off, 29*time.Minute)
	require.Zero(t, l.spilled[len(l.spilled)-1])
}

// TestSpillNeverOscillates: where spilling itself empties the queue it has to go on and off as long as the overload lasts,
// but no faster than the holds allow. The article's bare rule on the same load flips all the time.
func TestSpillNeverOscillates(t *testing.T) {
	const dwell = 60 * time.Second // the shorter way round: 60 s to leave; entering takes its own hold and the queue's growth
	for seed := range uint64(2) {
		l := run(t, spillPolicy, seed, overload)
		require.NotEmpty(t, l.flips)
		require.Zero(t, len(l.flips)%2, "it is off at the end")
		for i := 1; i < len(l.flips); i++ {
			hold := dwell
			if i%2 == 0 { // a flip to on
				hold = 10 * time.Second
			}
			require.GreaterOrEqual(t, l.flips[i].Sub(l.flips[i-1]), hold, "flip %d", i)
		}
		require.LessOrEqual(t, l.mostIn(10*time.Second), 1, "at most one flip in a dwell window, whichever way")
		require.LessOrEqual(t, l.mostIn(dwell), 2)

		bare := run(t, articleRule, seed, overload)
		require.Greater(t, len(bare.flips), 5*len(l.flips), "what hysteresis is for")
		require.GreaterOrEqual(t, bare.mostIn(10*time.Second), 3)
	}
}

// TestSteadyLoadAtTheThreshold: a wait that stays at the threshold, with noise around it, makes no flips at all after the
// first, for the edges are further apart than the noise is wide.
func TestSteadyLoadAtTheThreshold(t *testing.T) {
	for seed := range uint64(20) {
		p := loadText(t, spillPolicy)
		book := policy.NewLatchBook(p)
		r := rand.New(rand.NewPCG(seed, 3))
		flips, on := 0, false
		for s := range 30 * 60 {
			book.Observe(wait(float64(s), 2000*(1+0.1*(2*r.Float64()-1))))
			if is := book.States()["saturated"].On; is != on {
				flips, on = flips+1, is
			}
		}
		require.LessOrEqual(t, flips, 1)
	}
}

// TestDwellIsGuaranteed holds whatever the signal does: two flips are never closer than the hold of the later one.
func TestDwellIsGuaranteed(t *testing.T) {
	p := loadText(t, spillPolicy)
	spec := p.Latches[0]
	for seed := range uint64(50) {
		book := policy.NewLatchBook(p)
		r := rand.New(rand.NewPCG(seed, 7))
		level, last := 100.0, policy.Latch{}
		for s := range 30 * 60 {
			if r.Float64() < 0.02 {
				level = []float64{100, 400, 1000, 2100, 5000}[r.IntN(5)]
			}
			book.Observe(wait(float64(s), level*(1+0.1*(2*r.Float64()-1))))
			got := book.States()["saturated"]
			if last.Known && got.Known && got.On != last.On {
				hold := spec.Leave.Hold
				if got.On {
					hold = spec.Enter.Hold
				}
				require.GreaterOrEqual(t, got.Since.Sub(last.Since), hold)
			}
			last = got
		}
	}
}
