package scenario_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/scenario"
)

func load(t *testing.T, file string) *policy.Policy {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	p, err := policy.Load(file, text)
	require.NoError(t, err)
	return p
}

func cases(t *testing.T, file string) scenario.File {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	f, err := scenario.Read(file, text)
	require.NoError(t, err)
	return f
}

// TestShippedPolicies runs the cases beside the policies of this repository.
func TestShippedPolicies(t *testing.T) {
	for _, stem := range []string{"../../deploy/policies/default", "../../deploy/policies/lakehouse", "../policy/testdata/routing-policy"} {
		p, f := load(t, stem+".yaml"), cases(t, stem+".test.yaml")
		require.GreaterOrEqual(t, len(f.Cases), 10)
		for _, r := range scenario.Run(p, f) {
			t.Run(r.Name, func(t *testing.T) { require.Empty(t, r.Differences, "line %d\n%s", r.Line, r.Why) })
		}
	}
}

const text = `cases:
  - name: wrong in every way
    request: {tenant: t}
    facts: {estimated_bytes: 12 TB}
    expect: {rule: interactive_small, kind: reject, pool: interactive, reason: no_candidate, tags: [x], notify: false, verdict: light}

  - name: no such fact
    facts: {estimated_bites: 1}
    expect: {kind: route}
  - name: a wrong kind
    facts: {has_udf: 7}
    expect: {kind: route}
  - name: no such pool
    failed: [nowhere]
    expect: {kind: route}
`

func TestFailuresSayWhatAndWhy(t *testing.T) {
	f, err := scenario.Read("x.test.yaml", []byte(text))
	require.NoError(t, err)
	got := scenario.Run(load(t, "../policy/testdata/routing-policy.yaml"), f)
	require.Equal(t, 2, got[0].Line)
	require.Equal(t, 7, got[1].Line)
	var lines []string
	for _, r := range got {
		require.False(t, r.Passed())
		for _, d := range r.Differences {
			line, _, _ := strings.Cut(d.String(), ", only_candidate") // whatever other reasons it has
			lines = append(lines, line)
		}
	}
	require.Equal(t, []string{
		"rule    want interactive_small, got batch_large",
		"kind    want reject, got route",
		"pool    want interactive, got batch",
		"verdict want light, got heavy",
		"reason  want no_candidate, got rule_matched",
		"tags    want x, got none",
		"notify  want false, got true",
		`case    want one that can be made, got facts.estimated_bites: no such fact as "estimated_bites"; did you mean estimated_bytes?`,
		"case    want one that can be made, got facts.has_udf: 7 is no true or false",
		`case    want one that can be made, got failed: there is no pool "nowhere"`,
	}, lines)
	require.Contains(t, got[0].Why, "interactive_small did not match: wants estimated_bytes is below 50 GB, but it is 12 TB")
}

func TestFaultsOfCases(t *testing.T) {
	for text, want := range map[string]string{
		"cases: []\n":                                              "there are no cases",
		"cases:\n  - expect: {kind: route}\n":                      "x:2: a case has no name",
		"cases:\n  - {name: a, sql: SELECT 1}\n":                   "expects nothing",
		"cases:\n  - {name: a, exspect: {}}\n":                     "exspect",
		"cases: 7\n":                                               "cases",
		"cases:\n  - {name: a, expect: {kind: x}}":                 `"x" is not route or reject`,
		"cases:\n  - {name: a, signals: x, expect: {kind: route}}": `"x" is not idle or none`,
		"cases:\n  - {name: a, expect: {kind: route}}\n\n  - {name: a, expect: {kind: route}}\n": `x:4: the name "a" is used twice`,
		"cases:\n  - {name: a, request: {tenannt: x}, expect: {kind: route}}\n":                  "tenannt",
		"cases: [": "x",
	} {
		_, err := scenario.Read("x", []byte(text))
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(text)
	p, err := policy.Load("p", []byte("engines: {a: {kind: x}}\nrules: [{name: d, route: a}]\n"))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 || strings.Count(text, "[")+strings.Count(text, "{") > 200 {
			return
		}
		file, err := scenario.Read("x", []byte(text))
		if err == nil {
			require.Len(t, scenario.Run(p, file), len(file.Cases))
		}
	})
}

// TestPageExample: the case in docs/policy.md is one, and passes with the article's policy.
func TestPageExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/policy.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(page), "```yaml\ncases:")
	require.True(t, ok)
	text, _, _ := strings.Cut("cases:"+rest, "```")
	f, err := scenario.Read("docs/policy.md", []byte(text))
	require.NoError(t, err)
	for _, r := range scenario.Run(load(t, "../policy/testdata/routing-policy.yaml"), f) {
		require.Empty(t, r.Differences, r.Why)
	}
}
