package policy

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the generated parts of docs/policy.md again")

const page = "../../docs/policy.md"

// keys is a table of the keys of a mapping.
func keys(list []described) string {
	var b strings.Builder
	b.WriteString("| key | value | default | |\n|---|---|---|---|\n")
	for _, k := range list {
		def := k.form.def
		if k.form.required {
			def = "required"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.key, k.form.name, def, k.about)
	}
	return b.String()
}

func factRows(list []FactSpec, prefix string) string {
	var b strings.Builder
	b.WriteString("| fact | kind | unit | |\n|---|---|---|---|\n")
	for _, s := range list {
		fmt.Fprintf(&b, "| `%s%s` | %s | %s | %s |\n", prefix, s.Name, s.Kind, s.Unit, s.About)
	}
	return b.String()
}

// parts are the generated parts of the page, by the name in their marks.
func parts() map[string]string {
	return map[string]string{
		"sections":     keys(describe(sections)),
		"engines":      keys(describe(poolOptions)),
		"queues":       keys(describe(queueOptions)),
		"rules":        keys(describe(ruleOptions)),
		"tests":        keys(describe(testOptions)),
		"defaults":     keys(describe(defaultOptions)),
		"thresholds":   keys(describe(thresholdOptions)),
		"own":          keys(describe(namedOptions)),
		"latches":      keys(describe(latchOptions)),
		"tenants":      keys(describe(tenantOptions)),
		"budgets":      keys(describe(budgetOptions)),
		"sessions":     keys(describe(sessionBudgetOptions)),
		"principals":   keys(describe(batchPrincipalOptions)),
		"quotas":       keys(describe(tenantQuotaOptions)),
		"exploration":  keys(describe(explorationOptions)),
		"facts":        factRows(TaskFacts[:], ""),
		"facts-pools":  factRows(PoolFacts[:], "<pool>_"),
		"full-example": "```yaml\n" + example + "```\n",
	}
}

var mark = regexp.MustCompile(`(?s)(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)`)

var example = func() string {
	text, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		panic(err)
	}
	return string(text)
}()

// TestPolicyPage keeps the tables of docs/policy.md those that policies are read by, and its examples policies that load.
func TestPolicyPage(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	parts, seen := parts(), map[string]bool{}
	want := mark.ReplaceAllStringFunc(string(text), func(s string) string {
		m := mark.FindStringSubmatch(s)
		part, ok := parts[m[2]]
		require.True(t, ok, "no part is called %s", m[2])
		seen[m[2]] = true
		return m[1] + part + m[3]
	})
	for name := range parts {
		require.True(t, seen[name], "the page lacks the mark of %s", name)
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "run `go generate ./pkg/policy`")
}

var fence = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestPageExamplesLoad: a fragment is a section of a policy, or a list of rules; it has to be right in a policy that has the rest.
func TestPageExamplesLoad(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	n := 0
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		fragment := m[1]
		if strings.Contains(fragment, "cases:") || strings.HasPrefix(fragment, "# yaml-language-server") {
			continue // package scenario has those
		}
		n++
		whole := fragment
		if !strings.Contains(fragment, "engines:") {
			whole = "engines:\n  interactive: {kind: dremio, slots: 8}\n  batch: {kind: spark}\n  night: {kind: trino}\n" + whole
		}
		if !strings.Contains(fragment, "rules:\n") {
			whole += "rules:\n  - {name: default, route: auto}\n"
		} else if !strings.Contains(fragment, "name: default") {
			whole = appendRule(whole)
		}
		_, err := Load("docs/policy.md", []byte(whole))
		require.NoError(t, err, whole)
	}
	require.Greater(t, n, 5)
}

// appendRule puts a default behind the rules of a fragment.
func appendRule(text string) string {
	lines := strings.SplitAfter(text, "\n")
	at := -1
	for i, l := range lines {
		if l == "rules:\n" {
			at = i + 1
			for at < len(lines) && (strings.HasPrefix(lines[at], " ") || strings.HasPrefix(lines[at], "#") || lines[at] == "\n") {
				at++
			}
		}
	}
	return strings.Join(lines[:at], "") + "  - {name: default, route: auto}\n" + strings.Join(lines[at:], "")
}

const schemaFile = "../../deploy/policies/policy.schema.json"

// TestSchemaFile keeps the schema that editors find beside the policies.
func TestSchemaFile(t *testing.T) {
	if *update {
		require.NoError(t, os.WriteFile(schemaFile, Schema(), 0o644))
	}
	have, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	require.Equal(t, string(have), string(Schema()), "run `go generate ./pkg/policy`")
}
