package policy_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/deploy/policies"
	"github.com/pointsman/pointsman/pkg/policy"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(policy.Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("policy.json", doc))
	s, err := c.Compile("policy.json")
	require.NoError(t, err)
	return s
}

// instance reads YAML the way an editor does before it checks the schema.
func instance(t *testing.T, text []byte) any {
	t.Helper()
	data, err := yaml.YAMLToJSON(text)
	require.NoError(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return v
}

func TestSchemaTakesWhatLoadTakes(t *testing.T) {
	s := compiled(t)
	for name, text := range map[string][]byte{
		"default": policies.Default, "article": read(t, "testdata/routing-policy.yaml"), "full": read(t, "testdata/full.yaml"),
	} {
		_, err := policy.Load(name, text)
		require.NoError(t, err, name)
		require.NoError(t, s.Validate(instance(t, text)), name)
	}
}

// TestSchemaRefuses has the faults that a schema can say. Load refuses them too.
func TestSchemaRefuses(t *testing.T) {
	s := compiled(t)
	const head, tail = "engines: {a: {kind: x}, b: {kind: y}}\n", "rules: [{name: d, route: auto}]\n"
	rule := func(when string) string {
		return head + "rules: [{name: r, when: " + when + ", route: a}, {name: d, route: auto}]\n"
	}
	_, err := policy.Load("p.yaml", []byte(rule("{has_udf: true}")))
	require.NoError(t, err)
	require.NoError(t, s.Validate(instance(t, []byte(rule("{has_udf: true}")))))
	for name, text := range map[string]string{
		"no engines":          tail,
		"no rules":            head,
		"unknown section":     head + tail + "rulez: []\n",
		"unknown pool key":    "engines: {a: {kind: x, slotz: 3}}\n" + tail,
		"no kind":             "engines: {a: {slots: 3}}\n" + tail,
		"pool's name":         "engines: {A B: {kind: x}}\n" + tail,
		"slots below 1":       "engines: {a: {kind: x, slots: 0}}\n" + tail,
		"slots not whole":     "engines: {a: {kind: x, slots: 1.5}}\n" + tail,
		"no size":             "engines: {a: {kind: x, max_bytes_per_query: lots}}\n" + tail,
		"negative span":       "engines: {a: {kind: x, wake_ms: -1}}\n" + tail,
		"no name":             head + "rules: [{route: auto}]\n",
		"unknown rule key":    head + "rules: [{name: d, route: auto, then: b}]\n",
		"rule is no mapping":  head + "rules: [d]\n",
		"on_missing":          head + "rules: [{name: r, when: {has_udf: true}, on_missing: maybe, route: a}, {name: d, route: auto}]\n",
		"no such fact":        rule("{estimated_bites_lt: 5}"),
		"fact's kind":         rule("{has_udf: 5}"),
		"word compared":       rule("{tenant_lt: x}"),
		"number as word":      rule("{join_tables: many}"),
		"empty condition":     rule("{}"),
		"empty any_of":        rule("{any_of: []}"),
		"any_of no list":      rule("{any_of: {has_udf: true}}"),
		"no value":            rule("{join_tables_gt: {on_missing: match}}"),
		"empty words":         rule("{tenant: []}"),
		"known":               rule("{tenant_known: 1}"),
		"pool's fact's kind":  rule("{a_healthy: 3}"),
		"threshold's range":   head + tail + "thresholds: {sla_target: 7}\n",
		"threshold unknown":   head + tail + "thresholds: {mine: 5}\n",
		"own without range":   head + tail + "thresholds: {mine: {value: 5}}\n",
		"latch without watch": head + tail + "latches: {l: {enter_gte: 5, leave_lt: 3}}\n",
		"latch's key":         head + tail + "latches: {l: {watch: a_load, enter: 5, leave_lt: 3}}\n",
		"no_candidate":        head + tail + "defaults: {no_candidate: shrug}\n",
		"unknown budget":      head + tail + "budgets: {nobody: {max_queries: 1}}\n",
		"exploration":         head + tail + "exploration: {share: 2}\n",
		"tenant":              head + tail + "tenants: {t: {budget: 1}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Load("p.yaml", []byte(text))
			require.Error(t, err, "Load")
			require.Error(t, s.Validate(instance(t, []byte(text))), "schema")
		})
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}
