package route_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
)

// TestEachFlip has one case for each change that a decision may name: batch loses, and would win or be level with that change.
func TestEachFlip(t *testing.T) {
	type edit = func(*route.Input)
	ran := func(cluster string, runs, ok int64, p50 float64) edit {
		return func(in *route.Input) {
			history(profile.Profile{Key: profile.Key{Cluster: cluster}, Runs: runs, Successes: ok, ExecMsP50: &p50, ExecMsP95: new(2 * p50)})(in)
		}
	}
	same := func(in *route.Input) {
		in.Policy = load(t, "engines:\n  interactive: {kind: clickhouse, slots: 4}\n  batch: {kind: clickhouse, slots: 4}\nrules: [{name: default, route: auto}]\n")
	}
	for what, edits := range map[string][]edit{
		route.FlipQueue:   {set("batch", map[signal.Name]float64{signal.EstWaitMs: 60_000})},
		route.FlipSLA:     {ran("interactive", 100, 100, 100), ran("batch", 100, 100, 9000)},
		route.FlipSuccess: {ran("interactive", 100, 100, 100), ran("batch", 100, 40, 100)},
		route.FlipHealth:  {same, without("batch", signal.Healthy, signal.Ready)},
		route.FlipCost:    {},
		route.FlipQueries: {same, set("batch", map[signal.Name]float64{signal.Running: 3})},
		route.FlipHint:    {same, func(in *route.Input) { in.Task.EngineHint = "interactive" }},
		route.FlipRun:     {ran("interactive", 100, 100, 20_000), ran("batch", 100, 100, 60_000)},
	} {
		t.Run(what, func(t *testing.T) {
			in := input(t, edits...)
			d := route.Decide(in)
			require.Equal(t, "interactive", d.Cluster, route.Explain(d))
			loser := &d.Candidates[1]
			require.NotNil(t, loser.LostBy.Flip, route.Explain(d))
			require.Equal(t, what, loser.LostBy.Flip.What, route.Explain(d))
			then := route.Decide(route.WithFlip(in, loser, *loser.LostBy.Flip))
			factor := factorOf[loser.LostBy.Code]
			require.LessOrEqual(t, band(&then.Candidates[1], factor), band(&then.Candidates[0], factor), route.Explain(then))

			e := route.ExplainInput(in)
			require.Len(t, e.Counterfactuals, 1)
			require.Equal(t, then.Target, e.Counterfactuals[0].GoesTo)
			require.Contains(t, e.Text, e.Counterfactuals[0].Text)
			require.Equal(t, d.Target, route.Decide(in).Target, "the input itself stays as it is")
		})
	}
}
