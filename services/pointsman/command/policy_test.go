package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const goodPolicy = `engines: {a: {kind: trino}, b: {kind: spark}}
rules:
  - {name: etl, when: {client_tag: etl}, route: b}
  - {name: default, route: a}
tenants:
  big: {defaults: {sla_seconds: 99}}
`

// written writes files into a folder of the test, and returns it.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestPolicyLintAsJSON(t *testing.T) {
	dir := written(t, map[string]string{
		"good.yaml": goodPolicy,
		"bad.yaml":  "engines: {a: {kind: x}}\nrules:\n  - {name: default, rout: a}\n",
		"warn.yaml": goodPolicy + "thresholds: {t: {value: 1, min: 0, max: 2}}\n",
	})
	code, out, _ := run("policy", "lint", "-o", "json", filepath.Join(dir, "bad.yaml"), filepath.Join(dir, "good.yaml"), filepath.Join(dir, "warn.yaml"))
	require.Equal(t, 1, code)
	var got []struct {
		OK       bool
		Hash     string
		Rules    int
		Faults   []struct{ Line, Column int }
		Warnings []struct{ Path string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Len(t, got, 3)
	require.False(t, got[0].OK)
	require.NotEmpty(t, got[0].Faults)
	require.Equal(t, 3, got[0].Faults[0].Line)
	require.True(t, got[1].OK)
	require.Equal(t, 2, got[1].Rules)
	require.NotEmpty(t, got[1].Hash)
	require.True(t, got[2].OK)
	require.Equal(t, "thresholds.t", got[2].Warnings[0].Path)

	code, out, _ = run("policy", "lint", filepath.Join(dir, "warn.yaml"))
	require.Zero(t, code)
	require.Contains(t, out, "warning: thresholds.t")
	code, _, _ = run("policy", "lint", "--strict", filepath.Join(dir, "warn.yaml"))
	require.Equal(t, 1, code)
}

func TestPolicyExplain(t *testing.T) {
	dir := written(t, map[string]string{"p.yaml": goodPolicy, "bad.yaml": "rules: 7"})
	code, out, _ := run("policy", "explain", filepath.Join(dir, "p.yaml"))
	require.Zero(t, code)
	require.Contains(t, out, "1. etl: if client_tag is etl, it goes to b.\n")
	require.Contains(t, out, "2. default: everything else goes to a.\n")
	require.Contains(t, out, "Tenant big\n  SLA 1m39s")
	code, out, _ = run("policy", "explain", "--tenant", "big", filepath.Join(dir, "p.yaml"))
	require.Zero(t, code)
	require.Contains(t, out, "  SLA 1m39s")
	code, _, stderr := run("policy", "explain", filepath.Join(dir, "bad.yaml"))
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "bad.yaml:1:8: rules: must be a list")
}

func TestPolicyTest(t *testing.T) {
	dir := written(t, map[string]string{
		"p.yaml":         goodPolicy,
		"p.test.yaml":    "cases:\n  - {name: one, request: {tags: [etl]}, expect: {rule: etl, pool: b}}\n  - {name: two, expect: {pool: b}}\n",
		"q.yaml":         "engines: {b: {kind: spark}}\nrules: [{name: default, route: b}]\n",
		"only.test.yaml": "policy: p.yaml\ncases:\n  - {name: one, request: {tags: [etl]}, expect: {rule: etl}}\n",
		"bad.yaml":       goodPolicy,
		"bad.test.yaml":  "cases: 7\n",
		"alone.yaml":     goodPolicy,
	})
	in := func(name string) string { return filepath.Join(dir, name) }
	code, out, stderr := run("policy", "test", in("p.yaml"), in("only.test.yaml"))
	require.Equal(t, 1, code)
	require.Contains(t, out, "FAIL "+in("p.test.yaml")+":3: two\n  pool    want b, got a\n    | ")
	require.Contains(t, out, in("p.test.yaml")+": 1 of 2 cases passed with "+in("p.yaml"))
	require.Contains(t, out, in("only.test.yaml")+": 1 of 1 cases passed")
	require.Contains(t, stderr, "1 of 3 cases failed")

	code, out, _ = run("policy", "test", "--policy", in("q.yaml"), "-o", "json", in("p.test.yaml"))
	require.Equal(t, 1, code, "another policy")
	var got []struct {
		Passed int
		Failed []struct {
			Name        string
			Differences []struct{ What, Want, Got string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, 1, got[0].Passed)
	require.Equal(t, "one", got[0].Failed[0].Name)
	require.Equal(t, "default", got[0].Failed[0].Differences[0].Got)

	for file, want := range map[string]string{"bad.yaml": "the cases have faults", "alone.yaml": "alone.test.yaml"} {
		code, _, stderr = run("policy", "test", in(file))
		require.Equal(t, 2, code, file)
		require.Contains(t, stderr, want)
	}
}

func TestPolicySchema(t *testing.T) {
	code, out, _ := run("policy", "schema")
	require.Zero(t, code)
	var got struct{ Properties map[string]any }
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Contains(t, got.Properties, "latches")
}
