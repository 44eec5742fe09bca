package route_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var now = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)

const twoPools = `
engines:
  interactive: {kind: clickhouse, slots: 4, max_memory_per_query: 150 MB, startup_ms: 10, bytes_per_second: 100 MB}
  batch: {kind: clickhouse, slots: 2, spills: true, sleeps_at_zero: true, wake_ms: 4000, startup_ms: 50, bytes_per_second: 60 MB, cost_per_second: 2}
rules:
  - {name: transformations, when: {client_tag: [batch]}, route: batch, reason: "a scheduled transformation"}
  - {name: pinned, when: {tenant: pinned}, route: interactive, strict: true}
  - {name: blocked, when: {user: mallory}, route: reject, reason: "blocked"}
  - {name: default, route: auto}
budgets:
  agent_session: {max_queries: 20, max_bytes: 5 GB}
`

func load(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Load("policy.yaml", []byte(text))
	require.NoError(t, err)
	return p
}

// input is a small dashboard query with everything known and both pools awake and idle.
func input(t testing.TB, edits ...func(*route.Input)) route.Input {
	sla, at := 5.0, now.Add(-20*time.Millisecond)
	in := route.Input{
		Task: query.Task{
			ID: "t1", SQL: "SELECT n_name FROM tpch.nation", Tenant: "sales", User: "ann", SLASeconds: &sla, SubmittedAt: &at,
		},
		Attempt: 1, Fingerprint: "pm1-abc",
		Shape: shape.Shape{
			Statement: shape.Select, ReadOnly: true, Source: shape.FromTokens, JoinTables: 1,
			Tables: []shape.Table{{Schema: "tpch", Name: "nation"}},
		},
		Estimates: map[string]signal.Value{route.ScanBytes: signal.Of(10e6, signal.Bytes, "catalog", now)},
		History:   profile.Lookup{Asked: true},
		Signals:   signal.Snapshot{},
		Policy:    load(t, twoPools), Now: now, Seed: 1,
	}
	for _, c := range []string{"interactive", "batch"} {
		observe(&in, c, map[signal.Name]float64{
			signal.Ready: 1, signal.Healthy: 1, signal.Running: 0, signal.Queued: 0, signal.Slots: 4, signal.EstWaitMs: 0,
		})
	}
	for _, edit := range edits {
		edit(&in)
	}
	return in
}

func observe(in *route.Input, cluster string, values map[signal.Name]float64) {
	o := signal.Observation{Cluster: cluster, Source: "engine", At: now.Add(-300 * time.Millisecond), Values: map[signal.Name]signal.Value{}}
	for name, v := range values {
		o.Values[name] = signal.Of(v, units[name], "engine", o.At)
	}
	in.Signals.Merge(o)
}

var units = map[signal.Name]signal.Unit{
	signal.Ready: signal.Flag, signal.Healthy: signal.Flag, signal.EstWaitMs: signal.Millis, signal.DonePerSecond: signal.PerSecond,
	signal.Running: signal.Count, signal.Queued: signal.Count, signal.Slots: signal.Count,
}

func set(cluster string, values map[signal.Name]float64) func(*route.Input) {
	return func(in *route.Input) { observe(in, cluster, values) }
}

func history(p profile.Profile) func(*route.Input) {
	p.Key = profile.Key{Fingerprint: "pm1-abc", Engine: "clickhouse", Cluster: p.Key.Cluster}
	p.Window = "7d"
	return func(in *route.Input) {
		if in.History.Found == nil {
			in.History.Found = map[profile.Key]profile.Profile{}
		}
		in.History.Found[p.Key] = p
	}
}

func agent(used budget.Usage, admitted bool) func(*route.Input) {
	return func(in *route.Input) {
		in.Task.Session = &query.Session{ID: "s1", Class: query.Agent}
		in.Session = &route.SessionAccount{Usage: used, Admitted: admitted}
	}
}

func TestDecide(t *testing.T) {
	killed := history(profile.Profile{Key: profile.Key{Cluster: "interactive"}, Runs: 1, MemoryKills: 1})
	for _, c := range []struct {
		name    string
		in      []func(*route.Input)
		kind    event.DecisionKind
		cluster string
		reason  route.Code
	}{
		{"small and idle: the cheaper pool", nil, event.Route, "interactive", route.LowerCost},
		{"a rule names the pool", []func(*route.Input){func(in *route.Input) { in.Task.Tags = []string{"batch"} }}, event.Route, "batch", route.RuleMatched},
		{"a rule rejects", []func(*route.Input){func(in *route.Input) { in.Task.User = "mallory" }}, event.Reject, "", route.RejectedByRule},
		{"history: its memory limit killed it before", []func(*route.Input){killed}, event.Route, "batch", route.HistoryMemoryKill},
		{"history forgives after enough successes", []func(*route.Input){
			history(profile.Profile{Key: profile.Key{Cluster: "interactive"}, Runs: 5, MemoryKills: 1, Successes: 4, SuccessesAfterKill: 4, ExecMsP50: new(float64(50)), ExecMsP95: new(float64(80))}),
		}, event.Route, "interactive", ""},
		{"a long queue against a tight SLA", []func(*route.Input){
			set("interactive", map[signal.Name]float64{signal.EstWaitMs: 9000, signal.Queued: 30, signal.Running: 4}),
		}, event.Route, "batch", route.QueueWaitOverSLA},
		{"the same queue, and an SLA that bears it", []func(*route.Input){
			set("interactive", map[signal.Name]float64{signal.EstWaitMs: 9000, signal.Queued: 30, signal.Running: 4}),
			func(in *route.Input) { in.Task.SLASeconds = new(float64(60)) },
		}, event.Route, "interactive", route.LowerCost},
		{"what this router has just sent counts before the signals show it", []func(*route.Input){
			set("interactive", map[signal.Name]float64{signal.DonePerSecond: 2, signal.Running: 4}),
			func(in *route.Input) { in.Inflight = map[string]int{"interactive": 20} },
		}, event.Route, "batch", route.QueueWaitOverSLA},
		{"one pool is down", []func(*route.Input){
			set("interactive", map[signal.Name]float64{signal.Ready: 0, signal.Healthy: 0}),
		}, event.Route, "batch", route.OnlyCandidate},
		{"the other sleeps and is woken", []func(*route.Input){
			killed, set("batch", map[signal.Name]float64{signal.Ready: 0, signal.Healthy: 0}),
		}, event.Route, "batch", route.WakesPool},
		{"it failed there before", []func(*route.Input){func(in *route.Input) {
			in.Attempt, in.Excluded = 2, []event.Target{{Engine: "clickhouse", Cluster: "interactive"}}
			in.LastFailure = &event.Failure{Class: "cluster_down"}
		}}, event.Route, "batch", route.ReroutedAfter},
		{"nothing is left", []func(*route.Input){func(in *route.Input) {
			in.Excluded = []event.Target{{Engine: "clickhouse", Cluster: "interactive"}, {Engine: "clickhouse", Cluster: "batch"}}
		}}, event.Reject, "", route.NoCandidate},
		{"strict: never elsewhere", []func(*route.Input){
			func(in *route.Input) { in.Task.Tenant = "pinned" }, set("interactive", map[signal.Name]float64{signal.Ready: 0}),
		}, event.Reject, "", route.NoCandidateFor},
		{"an intent that nobody has turned into SQL", []func(*route.Input){func(in *route.Input) { in.Task.SQL, in.Task.Intent = "", []byte(`{"metric":"x"}`) }}, event.Reject, "", route.InvalidTask},
		{"past its deadline", []func(*route.Input){func(in *route.Input) { in.Now = now.Add(time.Hour) }}, event.Reject, "", route.DeadlinePassed},
		{"what the request asks for, where the SLA leaves the choice", []func(*route.Input){func(in *route.Input) { in.Task.EngineHint = "batch" }}, event.Route, "batch", route.EngineHintFollowed},
		{"an agent within its budget", []func(*route.Input){agent(budget.Usage{Queries: 19}, false)}, event.Route, "interactive", ""},
		{"an agent over its budget", []func(*route.Input){agent(budget.Usage{Queries: 20}, false)}, event.Reject, "", budget.QueriesExhausted},
		{"a repeat is not charged again", []func(*route.Input){agent(budget.Usage{Queries: 20}, true)}, event.Route, "interactive", ""},
		{"an agent over its bytes", []func(*route.Input){agent(budget.Usage{Bytes: 5e9}, false)}, event.Reject, "", budget.BytesExhausted},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := route.Decide(input(t, c.in...))
			require.Equal(t, c.kind, d.Kind, route.Explain(d))
			require.Equal(t, c.cluster, d.Cluster, route.Explain(d))
			if c.reason != "" {
				require.Contains(t, codes(d), string(c.reason), route.Explain(d))
			}
			require.NotEmpty(t, route.Explain(d))
			require.Equal(t, "t1/"+map[bool]string{true: "2", false: "1"}[d.Attempt == 2], d.DecisionID)
		})
	}
}

func codes(d event.RouteDecision) []string {
	var out []string
	for _, r := range d.Reasons {
		out = append(out, r.Code)
	}
	return out
}

func TestMissingSignalsNeverRemoveAndAreSaid(t *testing.T) {
	d := route.Decide(input(t, func(in *route.Input) { in.Signals = signal.Snapshot{}; in.History.Asked = false }))
	require.Equal(t, event.Route, d.Kind)
	require.Equal(t, "interactive", d.Cluster, "a pool that sleeps at zero and says nothing is taken to be asleep")
	require.Contains(t, d.Unknown, "history (could not be asked)")
	require.Contains(t, d.Unknown, "interactive healthy")
}

// TestWhatIsTakenForGrantedIsSaid: a pool that may sleep and says nothing is not called asleep, and one whose health nobody knows is
// not called healthy.
func TestWhatIsTakenForGrantedIsSaid(t *testing.T) {
	toBatch := func(in *route.Input) { in.Task.Tags = []string{"batch"} }
	d := route.Decide(input(t, toBatch, without("batch", signal.Ready, signal.Healthy)))
	require.Contains(t, route.Explain(d), "batch does not say whether it is ready, is taken to be asleep and is woken, which takes about 4000 ms")
	require.Contains(t, d.Unknown, "batch ready")
	d = route.Decide(input(t, toBatch, set("batch", map[signal.Name]float64{signal.Ready: 0})))
	require.Contains(t, route.Explain(d), "batch is asleep and is woken, which takes about 4000 ms")
	require.NotContains(t, d.Unknown, "batch ready")

	require.Contains(t, codes(route.Decide(input(t))), string(route.ClusterHealthy))
	d = route.Decide(input(t, without("interactive", signal.Healthy)))
	require.Equal(t, "interactive", d.Cluster, "it is ready")
	require.NotContains(t, codes(d), string(route.ClusterHealthy))
	require.Contains(t, d.Unknown, "interactive healthy")
}

func TestAQueueThatNobodySeesIsNotAnEmptyOne(t *testing.T) {
	d := route.Decide(input(t, without("interactive", signal.EstWaitMs, signal.Queued)))
	require.Equal(t, "batch", d.Cluster, route.Explain(d))

	d = route.Decide(input(t, set("interactive", map[signal.Name]float64{signal.Queued: 500, signal.Running: 4, signal.DonePerSecond: 10}),
		without("interactive", signal.EstWaitMs)))
	require.Equal(t, "batch", d.Cluster, "500 queued at 10 a second are 50 s: %s", route.Explain(d))
	wait, known := d.Candidates[0].Estimate.QueueMs.Get()
	require.True(t, known)
	require.InDelta(t, 50_000, wait, 1)

	taken := func(ms string) float64 {
		d := route.Decide(input(t, without("interactive", signal.EstWaitMs, signal.Queued), func(in *route.Input) {
			in.Policy = load(t, twoPools+"thresholds: {unseen_queue_ms: "+ms+"}\n")
		}))
		return hit(&d.Candidates[0])
	}
	require.Greater(t, taken("100"), taken("5000"), "the policy says what it is taken to cost")

	d = route.Decide(input(t, without("interactive", signal.EstWaitMs)))
	require.Equal(t, "interactive", d.Cluster, "a free slot is known to be free: %s", route.Explain(d))
}

// TestFallbacksOfARule are those that could begin soonest, and among equals the cheapest, whatever their order in the policy.
func TestFallbacksOfARule(t *testing.T) {
	d := route.Decide(input(t, func(in *route.Input) {
		in.Policy = load(t, `
engines:
  asleep: {kind: trino, sleeps_at_zero: true}
  unseen: {kind: trino}
  busy: {kind: trino}
  dear: {kind: trino, cost_per_second: 5}
  cheap: {kind: trino}
  named: {kind: trino}
rules: [{name: default, route: named}]
`)
		in.Signals = signal.Snapshot{}
		for name, wait := range map[string]float64{"named": 0, "cheap": 0, "dear": 0, "busy": 900} {
			observe(in, name, map[signal.Name]float64{signal.Ready: 1, signal.Healthy: 1, signal.EstWaitMs: wait})
		}
		observe(in, "asleep", map[signal.Name]float64{signal.Ready: 0, signal.EstWaitMs: 0})
	}))
	var got []string
	for _, f := range d.Fallbacks {
		got = append(got, f.Cluster)
	}
	require.Equal(t, []string{"cheap", "dear", "busy", "unseen", "asleep"}, got, route.Explain(d))
}

func TestFallbacksAreForReadsOnly(t *testing.T) {
	d := route.Decide(input(t))
	require.Equal(t, []event.Target{{Engine: "clickhouse", Cluster: "batch", Queue: "default", Resource: "default"}}, d.Fallbacks)
	d = route.Decide(input(t, func(in *route.Input) { in.Shape.ReadOnly, in.Shape.Statement = false, shape.Insert }))
	require.Empty(t, d.Fallbacks)
}

// TestSeedOrderQuery is the example of the first seed text: two Trino clusters and Spark, 5 GB, a 10 s SLA. Trino takes
// 12 s... of which history on interactive-a says 98 % come in time; interactive-b has a queue of 40 s.
func TestSeedOrderQuery(t *testing.T) {
	p := load(t, `
engines:
  interactive-a: {kind: trino, queue: tenant_a, resource: small, slots: 20}
  interactive-b: {kind: trino, queue: tenant_a, resource: small, slots: 20}
  offline-a: {kind: spark, queue: offline, resource: large, slots: 4, cost_per_second: 1}
rules:
  - {name: default, route: auto}
`)
	sla, at := 10.0, now
	key := func(engine, cluster string) profile.Key {
		return profile.Key{Fingerprint: "pm1-orders", Engine: engine, Cluster: cluster}
	}
	in := route.Input{
		Task: query.Task{
			ID: "orders-1", Dataset: "orders", QueryType: "aggregation", SQL: "SELECT channel, SUM(payment_amount) FROM orders GROUP BY channel",
			Tenant: "tenant_a", User: "user_1001", SLASeconds: &sla, SubmittedAt: &at,
		},
		Attempt: 1, Fingerprint: "pm1-orders", Policy: p, Now: now,
		Shape: shape.Shape{
			Statement: shape.Select, ReadOnly: true, Source: shape.FromTokens, JoinTables: 1, GroupBy: true,
			Tables: []shape.Table{{Name: "orders"}},
		},
		Estimates: map[string]signal.Value{route.ScanBytes: signal.Of(5e9, signal.Bytes, "catalog", now)},
		History: profile.Lookup{Asked: true, Found: map[profile.Key]profile.Profile{
			key("trino", "interactive-a"): {Key: key("trino", "interactive-a"), Window: "7d", Runs: 1000, Successes: 1000, Tasks: 1000, Hits: 980, ExecMsP50: new(float64(4000)), ExecMsP95: new(float64(6000))},
			key("trino", "interactive-b"): {Key: key("trino", "interactive-b"), Window: "7d", Runs: 400, Successes: 400, Tasks: 400, Hits: 390, ExecMsP50: new(float64(4000)), ExecMsP95: new(float64(6000))},
			key("spark", "offline-a"):     {Key: key("spark", "offline-a"), Window: "7d", Runs: 50, Successes: 50, Tasks: 50, Hits: 0, ExecMsP50: new(float64(90_000)), ExecMsP95: new(float64(120_000))},
		}},
		Signals: signal.Snapshot{},
	}
	observe(&in, "interactive-a", map[signal.Name]float64{signal.Healthy: 1, signal.Ready: 1, signal.EstWaitMs: 2000, signal.Queued: 5, signal.Running: 20, signal.Slots: 20})
	observe(&in, "interactive-b", map[signal.Name]float64{signal.Healthy: 1, signal.Ready: 1, signal.EstWaitMs: 40_000, signal.Queued: 100, signal.Running: 20, signal.Slots: 20})
	observe(&in, "offline-a", map[signal.Name]float64{signal.Healthy: 1, signal.Ready: 1, signal.EstWaitMs: 0, signal.Queued: 0, signal.Running: 1, signal.Slots: 4})

	d := route.Decide(in)
	require.Equal(t, event.Target{Engine: "trino", Cluster: "interactive-a", Queue: "tenant_a", Resource: "small"}, d.Target)
	golden(t, "seed_order_query.txt", []byte(route.Explain(d)))
	data, err := json.MarshalIndent(d, "", "  ")
	require.NoError(t, err)
	golden(t, "seed_order_query.json", append(data, '\n'))

	e := route.ExplainInput(in)
	require.Equal(t, d, e.Decision)
	golden(t, "seed_order_explained.txt", []byte(e.Text))
	inPage(t, "../../docs/deciding.md", "example", "```\n"+e.Text+"```\n")
}

// inPage keeps a part of a page that is otherwise written by hand in step.
func inPage(t *testing.T, path, part, want string) {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), "<!-- generated: "+part+" -->\n")
	require.True(t, ok, "%s has no part %s", path, part)
	got, after, ok := strings.Cut(rest, "<!-- end -->")
	require.True(t, ok, "the part %s of %s has no end", part, path)
	if *update {
		got = want
		require.NoError(t, os.WriteFile(path, []byte(before+"<!-- generated: "+part+" -->\n"+want+"<!-- end -->"+after), 0o644))
	}
	require.Equal(t, want, got, "run `go test ./pkg/route -update`")
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Fatalf("%s differs (run with -update after a deliberate change):\n%s", path, diff)
	}
}

func TestADialectNobodyKnowsIsSaid(t *testing.T) {
	said := `the dialect "klingon" (read as any)`
	dialect := func(name string) func(*route.Input) {
		return func(in *route.Input) { in.Task.Dialect = name }
	}
	require.Contains(t, route.Decide(input(t, dialect("klingon"))).Unknown, said)
	for _, name := range []string{"", "auto", "Trino"} {
		require.NotContains(t, strings.Join(route.Decide(input(t, dialect(name))).Unknown, ";"), "dialect", name)
	}
}
