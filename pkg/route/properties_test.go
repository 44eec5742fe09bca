package route_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
)

// drawn varies everything a decision depends on.
func drawn(t *rapid.T, tb testing.TB) route.Input {
	in := input(tb)
	in.Task.SLASeconds = new(rapid.Float64Range(0.1, 100).Draw(t, "sla"))
	if rapid.Bool().Draw(t, "bytesKnown") {
		in.Estimates[route.ScanBytes] = signal.Of(rapid.Float64Range(0, 1e12).Draw(t, "bytes"), signal.Bytes, "catalog", now)
	} else {
		delete(in.Estimates, route.ScanBytes)
	}
	in.History.Asked = rapid.Bool().Draw(t, "asked")
	for _, c := range []string{"interactive", "batch"} {
		delete(in.Signals, c)
		values := map[signal.Name]float64{}
		for _, name := range []signal.Name{signal.Ready, signal.Healthy, signal.Running, signal.Queued, signal.Slots, signal.EstWaitMs} {
			if rapid.Bool().Draw(t, c+string(name)) {
				values[name] = float64(rapid.IntRange(0, 20000).Draw(t, c+string(name)+"v"))
			}
		}
		observe(&in, c, values)
		if in.History.Asked && rapid.Bool().Draw(t, c+"hist") {
			p := profile.Profile{Key: profile.Key{Cluster: c}, Runs: rapid.Int64Range(1, 50).Draw(t, c+"runs")}
			p.Successes = rapid.Int64Range(0, p.Runs).Draw(t, c+"ok")
			p.MemoryKills = rapid.Int64Range(0, p.Runs-p.Successes).Draw(t, c+"kills")
			p.ExecMsP50 = new(rapid.Float64Range(1, 1e5).Draw(t, c+"p50"))
			history(p)(&in)
		}
		if rapid.IntRange(0, 3).Draw(t, c+"out") == 0 {
			in.Excluded = append(in.Excluded, event.Target{Engine: "clickhouse", Cluster: c})
		}
	}
	return in
}

func TestDecideProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawn(rt, t)
		d := route.Decide(in)
		again, err := json.Marshal(route.Decide(in))
		require.NoError(rt, err)
		first, err := json.Marshal(d)
		require.NoError(rt, err)
		require.Equal(rt, string(first), string(again), "equal inputs give equal bytes")

		require.NotEmpty(rt, d.Reasons, "every decision has a reason")
		winners := 0
		for _, c := range d.Candidates {
			require.Falsef(rt, c.Filtered != nil && c.Rank != 0, "a filtered candidate has no rank: %+v", c)
			if c.Rank == 1 {
				winners++
				require.Equal(rt, d.Target, c.Target)
				require.False(rt, slices.ContainsFunc(in.Excluded, func(x event.Target) bool { return x.Cluster == c.Cluster }))
				require.Equal(rt, 1.0, c.Propensity)
			}
			if c.Rank > 1 {
				require.NotNil(rt, c.LostBy)
			}
		}
		if d.Kind == event.Route {
			require.Equal(rt, 1, winners)
		} else {
			require.Zero(rt, winners)
			require.NotNil(rt, d.Rejection)
			require.NotEmpty(rt, d.Rejection.Message)
		}
	})
}

// TestLongerQueueNeverAttracts: more wait on a pool never moves a query to it.
func TestLongerQueueNeverAttracts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawn(rt, t)
		in.Policy = load(t, twoPools)
		wait := rapid.Float64Range(0, 20000).Draw(rt, "wait")
		set("interactive", map[signal.Name]float64{signal.EstWaitMs: wait})(&in)
		before := route.Decide(in)
		set("interactive", map[signal.Name]float64{signal.EstWaitMs: wait + rapid.Float64Range(0, 60000).Draw(rt, "more")})(&in)
		after := route.Decide(in)
		if before.Cluster == "batch" && before.Kind == event.Route {
			require.Equal(rt, "batch", after.Cluster, "%s\n%s", route.Explain(before), route.Explain(after))
		}
	})
}

func TestEveryReasonHasATemplateAndFillsIt(t *testing.T) {
	for code, template := range route.Templates {
		require.NotEmpty(t, template, code)
	}
	rapid.Check(t, func(rt *rapid.T) {
		d := route.Decide(drawn(rt, t))
		all := slices.Clone(d.Reasons)
		for _, c := range d.Candidates {
			if c.Filtered != nil {
				all = append(all, c.Filtered.Reason)
			}
			if c.LostBy != nil {
				all = append(all, event.Reason{Code: c.LostBy.Code, Text: route.LossText(&d, &c)})
			}
		}
		for _, r := range all {
			require.NotEmpty(rt, r.Text, r.Code)
			require.NotContains(rt, r.Text, "{", r.Code)
		}
	})
}

// TestReasonsPage keeps docs/reasons.md in step with the table.
func TestReasonsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Reasons\n\nEvery decision carries reasons from this closed list. Generated from `pkg/route`; do not edit.\n\n| code | text |\n|---|---|\n")
	codes := make([]string, 0, len(route.Templates))
	for code := range route.Templates {
		codes = append(codes, string(code))
	}
	slices.Sort(codes)
	for _, code := range codes {
		b.WriteString("| `" + code + "` | " + route.Templates[route.Code(code)] + " |\n")
	}
	const path = "../../docs/reasons.md"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "run `go test ./pkg/route -update`")
}
