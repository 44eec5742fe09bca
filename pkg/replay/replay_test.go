package replay_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/replay"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
)

const today = `
engines:
  small: {kind: clickhouse, slots: 4, bytes_per_second: 100 MB, cost_per_second: 1}
  large: {kind: clickhouse, slots: 2, bytes_per_second: 60 MB, cost_per_second: 2, spills: true}
rules:
  - {name: etl, when: {client_tag: etl}, route: large, reason: "a scheduled transformation"}
  - {name: huge, when: {estimated_bytes_gt: 50 GB}, route: large}
  - {name: default, route: auto}
`

func TestTheSamePolicyChangesNothing(t *testing.T) {
	p := load(t, today)
	rapid.Check(t, func(rt *rapid.T) {
		var inputs []route.Input
		for i := range rapid.IntRange(1, 8).Draw(rt, "n") {
			inputs = append(inputs, input(i, bytesOf(rapid.Float64Range(0, 1e12).Draw(rt, "bytes")), func(in *route.Input) {
				in.Signals["small"][signal.EstWaitMs] = signal.Of(rapid.Float64Range(0, 1e5).Draw(rt, "wait"), signal.Millis, "test", in.Now)
				in.Task.Tags = rapid.SampledFrom([][]string{nil, {"etl"}}).Draw(rt, "tags")
			}))
		}
		for _, o := range []replay.Options{options(p, p), options(p, nil)} {
			rep := run(rt, p, o, inputs...)
			require.Equal(rt, len(inputs), rep.Decisions)
			require.Equal(rt, len(inputs), rep.Identical)
			require.Equal(rt, len(inputs), rep.Check.Reproduced)
			require.Zero(rt, rep.Changed)
			require.Empty(rt, rep.Samples)
			require.Equal(rt, replay.Gaps{}, rep.Gaps)
		}
	})
}

// TestOrderOfTopicsDoesNotMatter: decisions and inputs are read side by side, so either may come first.
func TestOrderOfTopicsDoesNotMatter(t *testing.T) {
	p := load(t, today)
	rapid.Check(t, func(rt *rapid.T) {
		r := replay.NewRun(options(p, nil))
		var steps []func()
		const n = 5
		for i := range n {
			in, d, raw := recorded(rt, p, input(i))
			steps = append(steps, func() { r.Decision(raw, d) }, func() { r.Input(in) })
		}
		for _, step := range rapid.Permutation(steps).Draw(rt, "order") {
			step()
		}
		require.Equal(rt, n, r.Report().Identical)
		require.Equal(rt, replay.Gaps{}, r.Report().Gaps)
	})
}

// Partitions are read in any order: the report is the same, samples too.
func TestAReportThatIsMadeAgainSaysTheSame(t *testing.T) {
	p, with := load(t, today), load(t, strings.Replace(today, "50 GB", "1 MB", 1))
	var inputs []route.Input
	for i := range 9 {
		inputs = append(inputs, input(i, bytesOf(20e6+float64(i))))
	}
	want := run(t, p, options(p, with), inputs...)
	require.Equal(t, "t000", want.Samples[0].TaskID)
	require.Equal(t, 9, want.Samples[0].Like)
	for range 5 {
		rand.Shuffle(len(inputs), func(i, j int) { inputs[i], inputs[j] = inputs[j], inputs[i] })
		require.Equal(t, want, run(t, p, options(p, with), inputs...))
	}
}

func TestTheFirstDecisionInTheLogCounts(t *testing.T) {
	p := load(t, today)
	first, d1, raw1 := recorded(t, p, input(1))
	again := input(1, bytesOf(90e9)) // a crash, and then other facts: it goes elsewhere
	again.Now = again.Now.Add(time.Minute)
	second, d2, raw2 := recorded(t, p, again)
	require.NotEqual(t, d1.Cluster, d2.Cluster)
	for name, order := range map[string]func(*replay.Run){
		"decisions first": func(r *replay.Run) {
			r.Decision(raw1, d1)
			r.Decision(raw2, d2)
			r.Input(second)
			r.Input(first)
		},
		"inputs first": func(r *replay.Run) {
			r.Input(first)
			r.Input(second)
			r.Decision(raw1, d1)
			r.Decision(raw2, d2)
		},
		"written twice": func(r *replay.Run) {
			r.Decision(raw1, d1)
			r.Decision(raw1, d1)
			r.Input(first)
			r.Input(first)
			r.Decision(raw2, d2)
			r.Input(second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := replay.NewRun(options(p, nil))
			order(r)
			rep := r.Report()
			require.Equal(t, 1, rep.Identical)
			require.Equal(t, replay.Gaps{Repeats: 1}, rep.Gaps)
		})
	}
	// A window that begins between the two does not take the second for the first.
	o := options(p, nil)
	o.From = at.Add(30 * time.Second)
	r := replay.NewRun(o)
	r.Decision(raw1, d1)
	r.Decision(raw2, d2)
	r.Input(first)
	r.Input(second)
	require.Zero(t, r.Report().Decisions)
}

func TestWhatIsLeftOut(t *testing.T) {
	p := load(t, today)
	in, d, raw := recorded(t, p, input(1))
	lost, dLost, rawLost := recorded(t, p, input(2))
	_ = lost
	refused := event.RouteDecision{
		DecisionID: "bad/1", TaskID: "bad", Attempt: 1, Kind: event.Reject, DecidedAt: at, Rejection: &event.Rejection{Code: string(route.InvalidTask)},
	}
	r := replay.NewRun(options(p, p))
	r.Decision(raw, d)
	r.Input(in)
	r.Decision(rawLost, dLost)
	r.Decision([]byte("{}"), refused)
	r.Decision([]byte("{}"), event.RouteDecision{Kind: event.PassCancel, TaskID: "t001", DecidedAt: at})
	orphan, _, _ := recorded(t, p, input(3))
	r.Input(orphan)
	newer, dNewer, rawNewer := recorded(t, p, input(4))
	newer.Extra = query.Extra{"moonPhase": []byte(`"full"`)}
	r.Decision(rawNewer, dNewer)
	r.Input(newer)
	rep := r.Report()
	require.Equal(t, 2, rep.Decisions)
	require.Equal(t, replay.Gaps{WithoutPolicy: 1, Cancels: 1, InputMissing: 1, DecisionMissing: 1, Newer: 1}, rep.Gaps)
	for _, want := range []string{"made without a policy", "wish to cancel", "no input", "no decision", "newer version"} {
		require.Contains(t, rep.Text(), want)
	}
}

func TestAPolicyThatIsNotInTheRecord(t *testing.T) {
	p, other := load(t, today), load(t, strings.Replace(today, "50 GB", "10 MB", 1))
	o := options(p, nil)
	o.Policies = nil
	rep := run(t, p, o, input(1))
	require.Zero(t, rep.Decisions, "without its policy a decision can't be checked")
	require.Equal(t, 1, rep.Check.Unchecked)
	require.Contains(t, rep.Text(), "The text of policy "+p.Hash+" is not in the record")

	o.Policy = other
	rep = run(t, p, o, input(1))
	require.Equal(t, 1, rep.Changed, "but it can be tried with another")
	require.Equal(t, p.Hash, rep.Before)
}

func TestWindowAndFilters(t *testing.T) {
	p := load(t, today)
	inputs := []route.Input{input(0), input(10, tenant("red")), input(20), input(30, func(in *route.Input) { in.Fingerprint = "pm1-bb" })}
	for name, c := range map[string]struct {
		edit func(*replay.Options)
		want int
	}{
		"all":            {func(*replay.Options) {}, 4},
		"from is in":     {func(o *replay.Options) { o.From = at.Add(10 * time.Second) }, 3},
		"to is out":      {func(o *replay.Options) { o.To = at.Add(20 * time.Second) }, 2},
		"a tenant":       {func(o *replay.Options) { o.Tenants = []string{"red", "nobody"} }, 1},
		"a fingerprint":  {func(o *replay.Options) { o.Fingerprints = []string{"pm1-bb"} }, 1},
		"nothing is it":  {func(o *replay.Options) { o.Tenants, o.Fingerprints = []string{"red"}, []string{"pm1-bb"} }, 0},
		"an empty range": {func(o *replay.Options) { o.From, o.To = at.Add(time.Second), at.Add(2*time.Second) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(p, nil)
			c.edit(&o)
			rep := run(t, p, o, inputs...)
			require.Equal(t, c.want, rep.Decisions)
			require.Equal(t, replay.Gaps{}, rep.Gaps)
		})
	}
}

// changes is a workload that a policy changes in every way there is.
func changes() []route.Input {
	return []route.Input{
		input(1), input(2, bytesOf(20e9)), input(3, bytesOf(30e9)), input(4, bytesOf(70e9), tenant("red")),
		input(5, func(in *route.Input) { in.Task.Tags = []string{"etl"} }),
		input(6, tenant("green"), func(in *route.Input) { in.Fingerprint = "pm1-bb" }),
		input(7, func(in *route.Input) { in.Task.EngineHint = "large" }),
	}
}

const tomorrow = `
engines:
  small: {kind: clickhouse, slots: 4, bytes_per_second: 100 MB, cost_per_second: 1}
  large: {kind: clickhouse, slots: 2, bytes_per_second: 60 MB, cost_per_second: 2, spills: true}
rules:
  - {name: green-out, when: {tenant: green}, route: reject, reason: "moved away"}
  - {name: etl, when: {client_tag: [etl, batch], sla_ms_gt: 60000}, route: large, reason: "a scheduled transformation"}
  - {name: huge, when: {estimated_bytes_gt: 25 GB}, route: large}
  - {name: default, route: auto}
`

func TestReportOfAChangedPolicy(t *testing.T) {
	p, q := load(t, today), load(t, tomorrow)
	o := options(p, q)
	o.Samples = 10
	rep := run(t, p, o, changes()...)
	require.Equal(t, 7, rep.Decisions)
	require.Equal(t, 3, rep.Changed)
	require.InDelta(t, 3.0/7, rep.Share, 1e-9)
	require.Equal(t, p.Hash, rep.Before)
	require.Equal(t, q.Hash, rep.After)
	require.Equal(t, []replay.Move{{From: "large", To: "small", N: 1}, {From: "small", To: "large", N: 1}, {From: "small", To: "rejected", N: 1}}, rep.Moves)
	require.Equal(t, []replay.Group{{Name: "blue", N: 5, Changed: 2}, {Name: "green", N: 1, Changed: 1}, {Name: "red", N: 1}}, rep.Tenants)
	require.Equal(t, "pm1-aa", rep.Fingerprints[0].Name)
	require.Equal(t, 2, rep.Fingerprints[0].Changed)
	require.Equal(t, 6, rep.Expected.N)

	why := map[string]string{}
	for _, s := range rep.Samples {
		why[s.TaskID] = strings.Join(s.Why, "\n")
	}
	for task, wants := range map[string][]string{
		"t003": {`Rule "default" decided; now it is rule "huge".`, `In the old policy rule "huge" does not match`, "30 GB", "small is removed by a filter now", "[not_the_rules_pool]", "large was behind small before"},
		"t005": {`Rule "etl" decided; now it is rule "default".`, `In the new policy rule "etl" does not match`, "large is behind small now", "small was removed by a filter before"},
		"t006": {`Rule "green-out" is new.`, "It is rejected now", "[rejected_by_rule]"},
	} {
		for _, want := range wants {
			require.Contains(t, why[task], want, task)
		}
	}
	back := run(t, q, options(q, p), changes()...)
	require.Contains(t, back.Text(), "are routed, and were rejected")
	require.Equal(t, rep.Changed, back.Changed, "what changes one way changes the other way")
}

func TestARuleThatMovesUp(t *testing.T) {
	first, second := "  - {name: a, when: {tenant: blue}, route: small}\n", "  - {name: b, when: {user_known: false}, route: large}\n"
	head, tail := "engines: {small: {kind: clickhouse}, large: {kind: clickhouse}}\nrules:\n", "  - {name: default, route: auto}\n"
	p, q := load(t, head+first+second+tail), load(t, head+second+first+tail)
	rep := run(t, p, options(p, q), input(1))
	require.Equal(t, 1, rep.Changed)
	require.Contains(t, rep.Samples[0].Why, "Both match, and the one that stands further up decides.")
}

func TestAVersionThatDecidesOtherwiseIsToldApartFromAPolicy(t *testing.T) {
	p := load(t, today)
	in, d, _ := recorded(t, p, input(1))
	d.Target, d.Rule = event.Target{Engine: "clickhouse", Cluster: "large"}, "an older rule" // an older program's choice
	raw, err := event.Marshal(d)
	require.NoError(t, err)
	replayed := func(with *policy.Policy) replay.Report {
		r := replay.NewRun(options(p, with))
		r.Decision(raw, d)
		r.Input(in)
		return r.Report()
	}
	check := replayed(nil)
	require.Equal(t, 1, check.Changed)
	require.Equal(t, replay.Check{Different: 1}, check.Check)
	require.Contains(t, check.Text(), "This version of pointsman decides otherwise")
	require.Contains(t, strings.Join(check.Samples[0].Why, "\n"), `cluster was "large" and is "small"`)

	tried := replayed(load(t, today+"# the same, but for a word\n"))
	require.Zero(t, tried.Changed, "the policy has changed nothing")
	require.Equal(t, 1, tried.Check.Different)
	require.Contains(t, tried.Text(), "It is compared with what its own policy decides now.")
}

func TestALimitThatTheRecordDidNotCountForIsSaid(t *testing.T) {
	p := load(t, today)
	q := load(t, today+"budgets: {tenant: {max_queries: 1}}\n")
	rep := run(t, p, options(p, q), input(1), input(2))
	require.Zero(t, rep.Changed)
	require.Equal(t, 2, rep.Gaps.Uncounted)
	require.Contains(t, rep.Text(), "that limit was not applied")
}
