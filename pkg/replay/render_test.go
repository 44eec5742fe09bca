package replay_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/replay"
)

var update = flag.Bool("update", false, "write the golden files")

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
