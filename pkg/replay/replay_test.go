package replay_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/replay"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

var update = flag.Bool("update", false, "write the golden files")

var at = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

const today = `
engines:
  small: {kind: clickhouse, slots: 4, bytes_per_second: 100 MB, cost_per_second: 1}
  large: {kind: clickhouse, slots: 2, bytes_per_second: 60 MB, cost_per_second: 2, spills: true}
rules:
  - {name: etl, when: {client_tag: etl}, route: large, reason: "a scheduled transformation"}
  - {name: huge, when: {estimated_bytes_gt: 50 GB}, route: large}
  - {name: default, route: auto}
`

func load(t require.TestingT, text string) *policy.Policy {
	p, err := policy.Load("test", []byte(text))
	require.NoError(t, err)
	return p
}

// input is a small read by an ordinary tenant, i seconds after the start.
func input(i int, edits ...func(*route.Input)) route.Input {
	now := at.Add(time.Duration(i) * time.Second)
	in := route.Input{
		Task:        query.Task{ID: fmt.Sprintf("t%03d", i), SQL: "SELECT 1 FROM a", Tenant: "blue", SubmittedAt: &now, SLASeconds: new(30.0)},
		Attempt:     1,
		Fingerprint: "pm1-aa", Now: now,
		Shape:     shape.Shape{Statement: shape.Select, ReadOnly: true, JoinTables: 1, Tables: []shape.Table{{Name: "a"}}, Source: shape.FromTokens},
		Estimates: map[string]signal.Value{route.ScanBytes: signal.Of(20e6, signal.Bytes, "catalog", now)},
		History:   profile.Lookup{Asked: true}, Signals: signal.Snapshot{},
	}
	for _, c := range []string{"small", "large"} {
		in.Signals[c] = map[signal.Name]signal.Value{}
		for name, n := range map[signal.Name]float64{signal.Healthy: 1, signal.Ready: 1, signal.Running: 0, signal.Queued: 0, signal.Slots: 4, signal.EstWaitMs: 0} {
			in.Signals[c][name] = signal.Of(n, signal.Count, "test", now)
		}
	}
	for _, e := range edits {
		e(&in)
	}
	return in
}

func bytesOf(n float64) func(*route.Input) {
	return func(in *route.Input) { in.Estimates[route.ScanBytes] = signal.Of(n, signal.Bytes, "catalog", in.Now) }
}

func tenant(name string) func(*route.Input) { return func(in *route.Input) { in.Task.Tenant = name } }

// recorded is an input as it is read back from the log, with its decision and the decision's bytes.
func recorded(t require.TestingT, p *policy.Policy, in route.Input) (route.Input, event.RouteDecision, []byte) {
	in.Policy = p
	d := route.Decide(in)
	raw, err := event.Marshal(d)
	require.NoError(t, err)
	data, err := event.Marshal(in)
	require.NoError(t, err)
	var back route.Input
	require.NoError(t, back.UnmarshalJSON(data))
	var read event.RouteDecision
	require.NoError(t, read.UnmarshalJSON(raw))
	return back, read, raw
}

// options try a policy on what p has decided.
func options(p, with *policy.Policy) replay.Options {
	return replay.Options{Policies: map[string]*policy.Policy{p.Hash: p}, Policy: with}
}

// run replays inputs that p has decided.
func run(t require.TestingT, p *policy.Policy, o replay.Options, inputs ...route.Input) replay.Report {
	r := replay.NewRun(o)
	for _, in := range inputs {
		back, d, raw := recorded(t, p, in)
		r.Decision(raw, d)
		r.Input(back)
	}
	return r.Report()
}

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

// TestRenderings are those of a report that is written by hand, so that they change only when the rendering does.
func TestRenderings(t *testing.T) {
	reason := func(code, text string) []event.Reason { return []event.Reason{{Code: code, Text: text}} }
	small, large := event.Target{Engine: "clickhouse", Cluster: "small"}, event.Target{Engine: "spark", Cluster: "large", Queue: "nightly"}
	rep := replay.Report{
		Mode: replay.Tried, First: at, Last: at.Add(time.Hour), Before: "aaaa", After: "bbbb", AfterName: "new.yaml",
		Decisions: 12345, Changed: 123, Share: 123.0 / 12345, Identical: 0,
		PolicyChanges: []string{"~ thresholds.heavy_bytes: 20 GB -> 2 GB", "+ rules[huge]: {route: large}"},
		Kinds:         []replay.KindCount{{Kind: replay.Moved, N: 120}, {Kind: replay.Rejected, N: 3}, {Kind: replay.OtherReasons, N: 22}, {Kind: replay.Same, N: 12200}},
		Places:        []replay.Place{{Name: "small", Before: 12000, After: 11880}, {Name: "large", Before: 345, After: 462}, {Name: "rejected", After: 3}},
		Moves:         []replay.Move{{From: "small", To: "large", N: 120}, {From: "small", To: "rejected", N: 3}},
		Rules:         []replay.Move{{From: "default", To: "huge", N: 120}, {From: "default", To: "(none)", N: 3}},
		Tenants:       []replay.Group{{Name: "blue_1", N: 10000, Changed: 121}, {Name: "", N: 345, Changed: 2}, {Name: "red", N: 2000}},
		Fingerprints: []replay.Group{
			{Name: "pm1-aa", N: 200, Changed: 100, Statement: "select", Tables: []string{"a", "b", "c", "d"}}, {Name: "pm1-bb", N: 50, Changed: 23, Statement: "insert"},
		},
		Expected: &replay.Expected{N: 12342, HitBefore: 0.951, HitAfter: 0.962, CostBefore: 1.25, CostAfter: 1.5},
		Samples: []replay.Sample{
			{
				TaskID: "t1", Attempt: 1, At: at, Tenant: "blue_1", Statement: "select", Tables: []string{"a"}, Kind: replay.Moved, Like: 120,
				Before: replay.Answer{Kind: event.Route, Target: small, Rule: "default", Reasons: reason("lower_cost", "costs less")},
				After:  replay.Answer{Kind: event.Route, Target: large, Rule: "huge", Reasons: reason("rule_matched", "rule huge matched")},
				Why:    []string{`Rule "default" decided; now it is rule "huge".`, "small is removed by a filter now: the rule asks for large [not_the_rules_pool]."},
			},
			{
				TaskID: "made-up-1", Attempt: 1, At: at, Kind: replay.Rejected, Like: 1, Facts: []string{"an agent reads", "queries used by the session 10"},
				Before: replay.Answer{Kind: event.Route, Target: small, Rule: "default"},
				After:  replay.Answer{Kind: event.Reject, Reasons: reason("session_query_budget", "The session has used its queries.")},
			},
		},
		Check: replay.Check{Reproduced: 12000, Unchecked: 345, Unknown: map[string]int{"cccc": 345}},
		Gaps:  replay.Gaps{WithoutPolicy: 2, Cancels: 1, Repeats: 1, InputMissing: 4, Unreadable: 1},
	}
	golden(t, "report.txt", rep.Text())
	golden(t, "report.md", rep.Markdown())
	empty := replay.Report{Mode: replay.Tried}
	require.Contains(t, empty.Text(), "Nothing was compared.")
	require.Contains(t, empty.Markdown(), "Nothing was compared.")
}

func golden(t *testing.T, name, have string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(have), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), have, "go test ./pkg/replay -update")
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

// TestNamesAreNotMarkup: a tenant's name is the producer's, and reaches a terminal and a pull request.
func TestNamesAreNotMarkup(t *testing.T) {
	p, q := load(t, today), load(t, tomorrow)
	rep := run(t, p, options(p, q), input(1, bytesOf(30e9), tenant("a|b\x1b[31m<script>\n@team")))
	require.NotContains(t, rep.Text(), "\x1b")
	md := rep.Markdown()
	require.Contains(t, md, `a\|b`)
	require.NotContains(t, md, "<script>")
	require.NotContains(t, md, "@team")
}
