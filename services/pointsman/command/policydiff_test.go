package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/deploy/policies"
	"github.com/pointsman/pointsman/pkg/contrast"
	"github.com/pointsman/pointsman/pkg/replay"
)

// policyFiles writes the shipped policy, and a changed one.
func policyFiles(t *testing.T, old, with string) (a, b string) {
	dir := t.TempDir()
	a, b = filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	changed := strings.Replace(string(policies.Default), old, with, 1)
	require.NotEqual(t, string(policies.Default), changed)
	require.NoError(t, os.WriteFile(a, policies.Default, 0o600))
	require.NoError(t, os.WriteFile(b, []byte(changed), 0o600))
	return a, b
}

func TestPolicyDiff(t *testing.T) {
	a, b := policyFiles(t, "max_queries: 24", "max_queries: 12")
	code, out, stderr := run("policy", "diff", a, b)
	require.Zero(t, code, stderr)
	require.Contains(t, out, "~ budgets.agent_session.max_queries: 24 -> 12")
	require.Contains(t, out, "made-up requests around the thresholds of both lead elsewhere")
	require.Contains(t, out, "queries used by the session 12")

	code, out, stderr = run("policy", "diff", "--exit-code", "-o", "json", a, b)
	require.Equal(t, 4, code)
	require.Contains(t, stderr, "the policies differ: 1 changes in the text")
	var d struct {
		Changes  []contrast.Change
		MadeUp   bool
		Requests replay.Report
	}
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.Equal(t, []contrast.Change{{Kind: contrast.Changed, Path: "budgets.agent_session.max_queries", Before: "24", After: "12"}}, d.Changes)
	require.True(t, d.MadeUp)
	require.NotZero(t, d.Requests.Changed)
	for _, move := range d.Requests.Moves {
		require.True(t, strings.HasPrefix(move.To, "rejected"), "a smaller budget moves nothing elsewhere: %v", move)
	}

	code, out, _ = run("policy", "diff", "--exit-code", a, a)
	require.Zero(t, code)
	require.Contains(t, out, "The texts say the same.")
	code, out, _ = run("policy", "diff", "--output", "markdown", a, b)
	require.Zero(t, code)
	require.Contains(t, out, "```diff\n~ budgets.agent_session.max_queries: 24 -> 12\n```")
}

func TestNoSamplesAreNone(t *testing.T) {
	a, b := policyFiles(t, "max_queries: 24", "max_queries: 12")
	_, out, _ := run("policy", "diff", a, b, "--samples=0")
	require.NotContains(t, out, "In words")
	require.Contains(t, out, "lead elsewhere")
}

// A flag that chooses among recorded requests is not silently without effect on made-up ones.
func TestPolicyDiffOfARecordThatIsNowhere(t *testing.T) {
	a, b := policyFiles(t, "max_queries: 24", "max_queries: 12")
	for _, flag := range []string{"--from=24h", "--to=1h", "--tenant=t", "--fingerprint=pm1-aa", "--prefix=x."} {
		code, out, stderr := run("policy", "diff", a, b, flag)
		require.Equal(t, 2, code, flag)
		require.Contains(t, stderr, "--brokers", flag)
		require.Empty(t, out)
	}
}

func TestExplainOfARecordedTaskIsAskedByItsID(t *testing.T) {
	for _, flag := range []string{"--data=" + t.TempDir(), "--brokers=127.0.0.1:1", "--from=1h"} {
		code, _, stderr := run("explain", flag, "SELECT 1")
		require.Equal(t, 2, code, flag)
		require.Contains(t, stderr, "--task", flag)
	}
}

func TestReplayAndPolicyDiffOnBadInput(t *testing.T) {
	a, _ := policyFiles(t, "max_queries: 24", "max_queries: 12")
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("engines: 7\n"), 0o600))
	empty := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"a policy with faults":        {[]string{"replay", "--policy", bad}, 2, "the policy has faults"},
		"a policy that is not there":  {[]string{"replay", "--policy", "nowhere.yaml"}, 2, "nowhere.yaml"},
		"a diff with faults":          {[]string{"policy", "diff", a, bad}, 2, "the policy has faults"},
		"a diff of one":               {[]string{"policy", "diff", a}, 2, "expected"},
		"no data":                     {[]string{"replay", "--data", empty}, 2, "is no data folder"},
		"no folder":                   {[]string{"replay", "--data", filepath.Join(empty, "no")}, 2, "no"},
		"both places":                 {[]string{"replay", "--data", empty, "--brokers", "127.0.0.1:1"}, 2, "together"},
		"a share that is none":        {[]string{"replay", "--max-changed", "a lot"}, 2, "--max-changed"},
		"a share above all":           {[]string{"replay", "--max-changed", "101%"}, 2, "--max-changed"},
		"a share that is no number":   {[]string{"replay", "--max-changed", "NaN%"}, 2, "--max-changed"},
		"a number below nothing":      {[]string{"replay", "--max-changed", "-1"}, 2, "max-changed"},
		"a time that is none":         {[]string{"replay", "--from", "noon"}, 2, "--from"},
		"times the wrong way round":   {[]string{"replay", "--from", "2026-11-30", "--to", "2026-11-29"}, 2, "is not before"},
		"an output that there is not": {[]string{"replay", "-o", "xml"}, 2, "xml"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := run(c.args...)
			require.Equal(t, c.code, code, stderr)
			require.Contains(t, stderr, c.says)
		})
	}
}
