package contrast_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/deploy/policies"
	"github.com/pointsman/pointsman/pkg/contrast"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/route"
)

const text = `
defaults: {sla_seconds: 30}
engines:
  small: {kind: clickhouse, slots: 4, max_memory_per_query: 1 GB, max_queue_wait_ms: 3000, bytes_per_second: 100 MB, cost_per_second: 1}
  large: {kind: spark, slots: 2, bytes_per_second: 60 MB, cost_per_second: 2, spills: true}
thresholds:
  heavy_bytes: 20 GB
  own_limit: {value: 5 GB, min: 1 GB, max: 1 TB}
latches:
  spill: {watch: small_queue_wait_ms, enter_gte: 9000, leave_lte: 1000}
rules:
  - {name: etl, when: {client_tag: [etl]}, route: large}
  - {name: spilled, when: {spill: true}, route: large}
  - {name: huge, when: {estimated_bytes_gt: $own_limit}, route: large}
  - {name: joins, when: {join_tables_gt: 6}, route: large}
  - {name: default, route: auto}
budgets:
  agent_session: {max_queries: 10, max_bytes: 50 GB}
  tenant: {max_queries: 1000}
tenants:
  blue: {thresholds: {own_limit: 2 GB}}
`

func load(t require.TestingT, s string) *policy.Policy {
	p, err := policy.Load("test", []byte(s))
	require.NoError(t, err)
	return p
}

func edited(old, new string) string {
	out := strings.Replace(text, old, new, 1)
	if out == text {
		panic("nothing replaced: " + old)
	}
	return out
}

// The order of keys is no difference in a list of conditions either, whose items have no names.
func TestStructureOfConditions(t *testing.T) {
	of := func(when string) *policy.Policy {
		return load(t, strings.Replace(text, "{client_tag: [etl]}", when, 1))
	}
	a := of("{any_of: [{client_tag: [etl], dataset: [a]}, {dataset: [b]}]}")
	changes, err := contrast.Structure(a, of("{any_of: [{dataset: [a], client_tag: [etl]}, {dataset: [b]}]}"))
	require.NoError(t, err)
	require.Empty(t, changes)
	changes, err = contrast.Structure(a, of("{any_of: [{dataset: [a], client_tag: [etl]}, {dataset: [c]}]}"))
	require.NoError(t, err)
	require.Len(t, changes, 1)
}

func TestStructure(t *testing.T) {
	for name, c := range map[string]struct {
		with string
		want []string
	}{
		"the same":             {text, nil},
		"comments and spacing": {"# a comment\n" + edited("slots: 4, ", "slots:    4, "), nil},
		"order of keys":        {edited("slots: 2, bytes_per_second: 60 MB,", "bytes_per_second: 60 MB, slots: 2,"), nil},
		"a number":             {edited("heavy_bytes: 20 GB", "heavy_bytes: 2 GB"), []string{"~ thresholds.heavy_bytes: 20 GB -> 2 GB"}},
		"a pool's limit":       {edited("max_queue_wait_ms: 3000", "max_queue_wait_ms: 3001"), []string{"~ engines.small.max_queue_wait_ms: 3000 -> 3001"}},
		"a key that is gone":   {edited(", spills: true", ""), []string{"- engines.large.spills: true"}},
		"a new section":        {text + "exploration: {share: 0.1}\n", []string{"+ exploration: {share: 0.1}"}},
		"a condition":          {edited("client_tag: [etl]", "client_tag: [etl, batch]"), []string{"~ rules[etl].when.client_tag: [etl] -> [etl, batch]"}},
		"a rule that is new": {
			edited("  - {name: huge,", "  - {name: new, when: {tenant: red}, route: small}\n  - {name: huge,"),
			[]string{`+ rules[new]: {when: {tenant: red}, route: small}, behind "spilled"`},
		},
		"a rule that is gone": {
			edited("  - {name: joins, when: {join_tables_gt: 6}, route: large}\n", ""),
			[]string{"- rules[joins]: {when: {join_tables_gt: 6}, route: large}"},
		},
		"a rule that moved": {
			strings.Replace(edited("  - {name: joins, when: {join_tables_gt: 6}, route: large}\n", ""), "rules:\n", "rules:\n  - {name: joins, when: {join_tables_gt: 6}, route: large}\n", 1),
			[]string{`~ rules[joins]: behind "huge", is first now`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			changes, err := contrast.Structure(load(t, text), load(t, c.with))
			require.NoError(t, err)
			var have []string
			for _, change := range changes {
				have = append(have, change.String())
			}
			require.Equal(t, c.want, have)
		})
	}
}

// TestStructureOfWhateverIsReversed: what is added one way is removed the other way.
func TestStructureReversed(t *testing.T) {
	a := load(t, text)
	b := load(t, edited(", spills: true", "")+"exploration: {share: 0.1}\n")
	forth, err := contrast.Structure(a, b)
	require.NoError(t, err)
	back, err := contrast.Structure(b, a)
	require.NoError(t, err)
	swap := map[contrast.Kind]contrast.Kind{contrast.Added: contrast.Removed, contrast.Removed: contrast.Added, contrast.Changed: contrast.Changed, contrast.Moved: contrast.Moved}
	for _, c := range forth {
		require.True(t, slices.ContainsFunc(back, func(o contrast.Change) bool { return o.Path == c.Path && o.Kind == swap[c.Kind] }), c)
	}
}

// differing decides all that the grid makes up by both policies, and returns what differs in where it leads.
func differing(t require.TestingT, a, b *policy.Policy) (out []contrast.Made) {
	made, _ := contrast.Grid(a, b)
	for _, m := range made {
		x, y := m.Input, m.Input
		x.Policy, y.Policy = a, b
		if d, e := route.Decide(x), route.Decide(y); d.Target != e.Target || d.Kind != e.Kind {
			out = append(out, m)
		}
	}
	return out
}

// TestGridFindsWhatChanged: each of these edits changes what some request gets, and the grid has one that shows it.
func TestGridFindsWhatChanged(t *testing.T) {
	a := load(t, text)
	require.Empty(t, differing(t, a, a))
	for name, with := range map[string]string{
		"a rule's threshold, by a byte": edited("value: 5 GB", "value: 5000000001"),
		"a rule's threshold, a lot":     edited("value: 5 GB", "value: 50 GB"),
		"a tenant's threshold":          edited("own_limit: 2 GB", "own_limit: 3 GB"),
		"a count":                       edited("join_tables_gt: 6", "join_tables_gt: 7"),
		"a word more":                   edited("client_tag: [etl]", "client_tag: [etl, nightly]"),
		"a rule that is new":            edited("  - {name: huge,", "  - {name: new, when: {tenant: red}, route: large}\n  - {name: huge,"),
		"a rule that is gone":           edited("  - {name: etl, when: {client_tag: [etl]}, route: large}\n", ""),
		"a rule that rejects":           edited("  - {name: etl, when: {client_tag: [etl]}, route: large}", "  - {name: etl, when: {client_tag: [etl]}, route: reject, reason: no}"),
		"a rule on a latch":             edited("when: {spill: true}", "when: {spill: false}"),
		"a pool's longest queue":        edited("max_queue_wait_ms: 3000", "max_queue_wait_ms: 4000"),
		"a pool's memory":               edited("max_memory_per_query: 1 GB", "max_memory_per_query: 2 GB"),
		"a pool for some tenants":       edited("spills: true}", "spills: true, tenants: [red]}"),
		"a session's queries":           edited("max_queries: 10,", "max_queries: 11,"),
		"a session's bytes":             edited("max_bytes: 50 GB", "max_bytes: 40 GB"),
		"a tenant's quota":              edited("tenant: {max_queries: 1000}", "tenant: {max_queries: 999}"),
		"a pool that is gone":           strings.ReplaceAll(edited("  large: {kind: spark, slots: 2, bytes_per_second: 60 MB, cost_per_second: 2, spills: true}\n", ""), "route: large", "route: small"),
	} {
		t.Run(name, func(t *testing.T) {
			b := load(t, with)
			require.NotEmpty(t, differing(t, a, b))
			require.NotEmpty(t, differing(t, b, a))
		})
	}
}

// TestGridFindsAnyThreshold moves a rule's threshold by whatever, and looks for a request between the two.
func TestGridFindsAnyThreshold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := rapid.Int64Range(1_000_000, 1_000_000_000_000).Draw(rt, "x")
		y := x + rapid.Int64Range(1, 1_000_000_000).Draw(rt, "more")
		of := func(n int64) *policy.Policy {
			return load(rt, fmt.Sprintf("engines: {small: {kind: clickhouse}, large: {kind: clickhouse}}\nrules:\n  - {name: huge, when: {estimated_bytes_gt: %d}, route: large}\n  - {name: default, route: small}\n", n))
		}
		require.NotEmpty(rt, differing(rt, of(x), of(y)))
	})
}

func TestGridIsTheSameEachTimeAndDecides(t *testing.T) {
	a, b := load(t, text), load(t, string(policies.Default))
	once, unable := contrast.Grid(a, b)
	again, _ := contrast.Grid(a, b)
	require.Equal(t, once, again)
	require.Empty(t, unable)
	require.Less(t, len(once), 20_000)
	ids := map[string]bool{}
	for _, m := range once {
		require.NotEmpty(t, m.Facts)
		require.False(t, ids[m.Input.Task.ID])
		ids[m.Input.Task.ID] = true
		m.Input.Policy = a
		_, err := event.Marshal(m.Input)
		require.NoError(t, err)
		_, err = event.Marshal(route.Decide(m.Input))
		require.NoError(t, err)
	}
}

// TestEveryFactCanBeMadeUp: a fact that rules may test and that the grid can't vary is a blind spot, and is said.
func TestEveryFactCanBeMadeUp(t *testing.T) {
	blind := map[string]bool{"rule_tags": true} // set by rules, not by requests
	for _, spec := range policy.TaskFacts {
		test := map[policy.Kind]string{policy.NumberKind: "_gt: 3", policy.BoolKind: ": true", policy.WordKind: ": x", policy.WordsKind: ": x"}[spec.Kind]
		if word, ok := map[string]string{"principal_class": "agent", "consistency": "strong", "statement": "insert"}[spec.Name]; ok {
			test = ": " + word // their words are a closed list
		}
		text := "engines: {small: {kind: clickhouse}}\nrules:\n  - {name: tags, when: {tenant: a}, tags: [x]}\n  - {name: one, when: {" + spec.Name + test + "}, route: small}\n  - {name: default, route: auto}\n"
		p, err := policy.Load("test", []byte(text))
		require.NoError(t, err, spec.Name)
		_, unable := contrast.Grid(p, p)
		require.Equal(t, blind[spec.Name], len(unable) > 0, "%s: %v", spec.Name, unable)
	}
	for _, spec := range policy.PoolFacts {
		test := map[policy.Kind]string{policy.NumberKind: "_gt: 3", policy.BoolKind: ": true"}[spec.Kind]
		p := load(t, "engines: {small: {kind: clickhouse}}\nrules:\n  - {name: one, when: {small_"+spec.Name+test+"}, route: small}\n  - {name: default, route: auto}\n")
		_, unable := contrast.Grid(p, p)
		require.Empty(t, unable, spec.Name)
	}
	p := load(t, "engines: {small: {kind: clickhouse}}\nrules:\n  - {name: one, when: {expr: \"attempt > 1\"}, route: small}\n  - {name: default, route: auto}\n")
	_, unable := contrast.Grid(p, p)
	require.Equal(t, []string{"`attempt > 1`"}, unable)
}
