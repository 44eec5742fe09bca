package policy_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/policy"
)

// seedPolicy is the policy of the article "Query Routing at Machine Scale", unchanged: it must load as it stands.
func seedPolicy(t *testing.T) *policy.Policy {
	t.Helper()
	text, err := os.ReadFile("testdata/routing-policy.yaml")
	require.NoError(t, err)
	p, err := policy.Load("routing-policy.yaml", text)
	require.NoError(t, err)
	return p
}

func TestSeedPolicyLoadsUnchanged(t *testing.T) {
	p := seedPolicy(t)
	require.Len(t, p.Pools, 2)
	interactive, ok := p.Pool("interactive")
	require.True(t, ok)
	require.Equal(t, "dremio", interactive.Kind)
	require.Equal(t, 2*time.Second, interactive.MaxQueueWait)
	require.Equal(t, int64(500e9), interactive.MaxBytesPerQuery)
	batch, _ := p.Pool("batch")
	require.Zero(t, batch.MaxBytesPerQuery, "unlimited")
	require.Len(t, p.Rules, 8)
	require.Equal(t, "default", p.Rules[7].Name)
	require.True(t, p.Rules[7].When.Always())
	require.Equal(t, &budget.Limits{MaxQueries: 200, MaxBytes: 2e12, MaxWall: 10 * time.Minute}, p.Budgets.AgentSession)
	require.Equal(t, 4, p.Budgets.BatchMaxConcurrent)
	require.NotEmpty(t, p.Hash)
}

// known are facts by name. What is not in it is missing.
type known map[string]policy.Fact

func factsOf(t testing.TB, p *policy.Policy, k known) *policy.Facts {
	t.Helper()
	f := p.NewFacts()
	for name, v := range k {
		require.NoError(t, f.SetName(name, v))
	}
	return f
}

// ruleFor is the name of the rule that decides.
func ruleFor(t testing.TB, p *policy.Policy, k known) string {
	t.Helper()
	m := p.Match(factsOf(t, p, k))
	if m.Rule == nil {
		return ""
	}
	return m.Rule.Name
}

var n, b, w, ws = policy.NumberFact, policy.BoolFact, policy.WordFact, policy.WordsFact

func TestMondayMinuteRules(t *testing.T) {
	p := seedPolicy(t)
	for _, c := range []struct {
		name, rule string
		facts      known
	}{
		{"dashboard covered by a reflection", "accelerated", known{"reflection_covers_query": b(true)}},
		{"small scan", "interactive_small", known{"estimated_bytes": n(40e9), "join_tables": n(2), "no_expensive_ops": b(true)}},
		{"medium scan, idle engine", "interactive_medium_if_idle", known{"estimated_bytes": n(200e9), "interactive_queue_wait_ms": n(100), "client_tag": ws("interactive")}},
		{"a year of events", "batch_large", known{"estimated_bytes": n(12e12), "client_tag": ws("interactive"), "interactive_queue_wait_ms": n(0)}},
		{"agent over budget", "agent_over_budget", known{"principal_class": w("agent"), "session_bytes_remaining": n(-1)}},
		{"five tables", "batch_expensive", known{"join_tables": n(5)}},
		{"saturated", "interactive_overloaded_spill", known{"estimated_bytes": n(200e9), "interactive_queue_wait_ms": n(2500), "client_tag": ws("interactive")}},
		{"nothing is known", "default", known{}},
		{"unknown bytes are not few bytes", "default", known{"join_tables": n(2), "no_expensive_ops": b(true)}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.rule, ruleFor(t, p, c.facts)) })
	}
}

func TestEveryFaultIsListedWithItsPlace(t *testing.T) {
	_, err := policy.Load("p.yaml", []byte(`engines:
  interactive:
    kind: clickhouse
    max_memory: 3
  batch:
    max_bytes_per_query: lots
rules:
  - name: a
    when:
      estimated_bites_lt: 50 GB
      tenant_lt: x
    route: nowhere
  - name: b
    route: auto
  - name: b
    route: batch
thresholds:
  sla_target: 7
bogus: 1
`))
	var faults policy.FaultList
	require.ErrorAs(t, err, &faults)
	var got []string
	for _, f := range faults {
		got = append(got, f.String())
	}
	require.Equal(t, []string{
		`p.yaml:4:5: engines.interactive.max_memory: unknown key of an engine; did you mean max_memory_per_query?`,
		"p.yaml:5:3: engines.batch: `kind` is missing: say which engine it is, e.g. kind: clickhouse",
		"p.yaml:6:26: engines.batch.max_bytes_per_query: \"lots\" is no size: write it like `50 GB` or `512 MiB`",
		`p.yaml:10:7: rules[0].when.estimated_bites_lt: no such fact as "estimated_bites"; did you mean estimated_bytes?`,
		`p.yaml:11:7: rules[0].when.tenant_lt: tenant is word and can't be compared with lt`,
		`p.yaml:12:12: rules[0].route: "nowhere" is no engine of this policy (interactive, batch), nor auto, nor reject`,
		`p.yaml:15:5: rules[2]: the name "b" is used by the rule in line 13 already`,
		`p.yaml:15:5: rules[2]: unreachable: rule "b" above has no condition and takes everything`,
		`p.yaml:18:15: thresholds.sla_target: 7 is outside the range 0.01 to 0.999`,
		`p.yaml:19:1: bogus: unknown key; known are budgets, defaults, engines, exploration, latches, rules, summaries, tenants, thresholds`,
	}, got)
}

func TestRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty":      "",
		"not yaml":   "rules: [",
		"a list":     "- a\n- b\n",
		"no default": "engines: {a: {kind: x}}\nrules:\n  - name: a\n    when: {has_udf: true}\n    route: a\n",
		"no engine":  "rules:\n  - name: a\n    route: auto\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Load("p.yaml", []byte(text))
			var faults policy.FaultList
			require.ErrorAs(t, err, &faults)
			require.NotEmpty(t, faults)
		})
	}
}

func tenantsOf(p *policy.Policy) []*policy.Policy {
	var out []*policy.Policy
	for _, name := range p.Tenants() {
		out = append(out, p.For(name))
	}
	return out
}

func FuzzLoad(f *testing.F) {
	text, err := os.ReadFile("testdata/routing-policy.yaml")
	require.NoError(f, err)
	f.Add(string(text))
	f.Add("engines: {a: {kind: x}}\nrules: [{name: d, route: auto}]")
	for _, file := range []string{"testdata/full.yaml", "testdata/routing-policy.test.yaml"} {
		f.Add(string(read(f, file)))
	}
	for _, seed := range []string{
		"engines: &a {a: &b {kind: x, <<: *b}}\nrules: *a", "rules: [*x]", "engines: {a: {kind: x}}\nrules: [{name: r, when: {expr: '1 == 1'}, route: a}, {name: d, tags: [a], route: a}]",
		"? {a: b}\n: c", "!!map {}", "a: !x y", "rules:\n- name: r\n  when: {not: {not: {any_of: []}}}", "latches: {l: {watch: a_load, enter_gte: $x, leave_lt: .inf}}\nengines: {a: {}}",
		"thresholds: {t: {value: 1e999, min: -0, max: .nan}}", "tenants: {t: {rules: [{name: x, tags: [y]}]}}", "\xef\xbb\xbfengines:", "engines: {a: {slots: 0x10, wake_ms: 1_000}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := policy.Load("p.yaml", []byte(text))
		if (p == nil) == (err == nil) {
			t.Fatalf("a policy or faults, never both or neither: %v %v", p, err)
		}
		if p == nil {
			return
		}
		// What loads can be used: matched, traced, told, for every tenant.
		for _, view := range append([]*policy.Policy{p}, tenantsOf(p)...) {
			m := view.Match(view.NewFacts())
			decided := 0
			for _, r := range view.Trace(view.NewFacts()) {
				if _ = r.String(); r.Result == policy.RuleDecided {
					decided++
				}
			}
			if m.Rule == nil || decided != 1 || view.Describe() == "" {
				t.Fatalf("a policy always decides: %+v, %d", m, decided)
			}
		}
	})
}
